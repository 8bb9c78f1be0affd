"use strict";
// Without it the page shows the same, all of it.
const filter = document.querySelector(".filter");
if (filter) {
  filter.hidden = false;
  filter.addEventListener("change", () => {
    const shown = new Set([...filter.querySelectorAll("input:checked")].map((box) => box.value));
    for (const row of document.querySelectorAll("tr[data-verdict]")) {
      row.hidden = !shown.has(row.dataset.verdict);
    }
  });
}
// On paper there is nothing to open.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const one of closed) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of closed) one.open = false;
});
