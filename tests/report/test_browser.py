"""The report in Chromium: ``pytest -m browser``, with the group ``browser`` of pyproject.toml."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
SHOWN = "[...document.querySelectorAll('tr[data-verdict]')].filter(row => row.offsetParent).length"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without one on the path, that which `playwright install chromium` brings.
        found = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield found
        found.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_it_fits_complains_of_nothing_and_asks_for_nothing(
    results: Path, browser: "Browser", scheme: str, size: dict[str, int]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(viewport=size, color_scheme=scheme)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    address = (results / "report.html").as_uri()
    page.goto(address)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate(OVERFLOW) == 0
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [address]
    violations = Axe().run(page).response["violations"]
    assert [(one["impact"], one["id"], one["nodes"][0]["html"]) for one in violations] == []
    page.close()


def test_claims_are_filtered_by_the_keyboard(results: Path, browser: "Browser") -> None:
    page = browser.new_page(viewport=DESK)
    page.goto((results / "report.html").as_uri())
    page.keyboard.press("Tab")
    assert focused(page) == "#main"
    page.keyboard.press("Enter")
    everything = page.evaluate(SHOWN)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "confirmed"
    confirmed = page.locator("tr[data-verdict=confirmed]").count()
    page.keyboard.press("Space")
    assert page.evaluate(SHOWN) == everything - confirmed < everything
    page.keyboard.press("Space")
    assert page.evaluate(SHOWN) == everything
    page.close()


def test_on_paper_all_is_open(results: Path, browser: "Browser") -> None:
    page = browser.new_page()
    page.goto((results / "report.html").as_uri())
    closed = page.locator("details:not([open])").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert closed > 0 and page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == closed
    page.close()


def test_without_scripts_it_shows_the_same(results: Path, browser: "Browser") -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((results / "report.html").as_uri())
    rows = page.locator("tr[data-verdict]")
    assert rows.count() > 100 and rows.last.is_visible()
    assert page.locator(".counts").is_visible() and not page.locator(".filter").is_visible()
    context.close()


def focused(page: "Page") -> str | None:
    found = page.evaluate("document.activeElement.getAttribute('href')")
    return None if found is None else str(found)
