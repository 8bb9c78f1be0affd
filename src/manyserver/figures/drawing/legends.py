"""What legends are made of: entries for curves and for the meaning of marks."""

from functools import cache
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath

from manyserver.figures.drawing.marks import GREY, GUIDE, PALE, RING
from manyserver.figures.drawing.style import Look

__all__ = [
    "asymptote_entry",
    "entry",
    "exact_entry",
    "fill_entry",
    "hollow_entry",
    "legend",
    "line_entry",
    "method_entries",
    "patch_entry",
    "simulation_entry",
    "slope_entry",
    "text_entry",
    "upper_bound_entry",
]

LEGEND_ROW = 0.16
LEGEND_HANDLE = 0.41
TITLE = 0.2
"""Inches: height of a row, width of a handle with the gaps around it, height of a title."""


def entry(look: Look, line: bool = True, marker: bool = True) -> Line2D:
    """Return a legend entry for a look."""
    return Line2D(
        [],
        [],
        color=look.colour,
        linestyle=look.line if line else "none",
        marker=look.marker if marker else "none",
        markerfacecolor="white" if look.hollow else look.colour,
        label=look.label,
    )


def method_entries(limit: bool, finite: bool, n_servers: float | None = None) -> list[Line2D]:
    """Return legend entries that say what lines and markers are."""
    found = []
    if limit:
        found.append(Line2D([], [], color=GREY, label=r"mean field, $N \to \infty$"))
    if finite:
        size = "" if n_servers is None else f", $N = {n_servers:.0f}$"
        label = f"simulation{size} (95 %)"
        found.append(Line2D([], [], color=GREY, linestyle="none", marker="o", label=label))
    return found


def exact_entry() -> Line2D:
    """Return the legend entry of :func:`rings`."""
    return Line2D([], [], linestyle="none", label="exact chain", **RING)


def line_entry(label: str, line: Any = "-") -> Line2D:
    """Return a legend entry that says what lines are."""
    return Line2D([], [], color=GREY, linestyle=line, label=label)


def hollow_entry(label: str) -> Line2D:
    """Return a legend entry that says what hollow markers are."""
    face: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 0.6}
    return Line2D([], [], color=GREY, linestyle="none", marker="o", label=label, **face)


def patch_entry(label: str, colour: str) -> Line2D:
    """Return a legend entry for cells of one colour."""
    return Line2D([], [], linestyle="none", marker="s", markersize=7, color=colour, label=label)


def text_entry(text: str) -> Line2D:
    """Return a legend entry of text alone."""
    return Line2D([], [], linestyle="none", label=text)


def slope_entry(slope: float) -> Line2D:
    """Return the legend entry of :func:`slope_guide`."""
    return Line2D([], [], color=GREY, linestyle=GUIDE, linewidth=0.7, label=f"slope ${slope:g}$")


def upper_bound_entry() -> Line2D:
    """Return the legend entry of :func:`upper_bounds`."""
    label = "upper bound (95 %)"
    return Line2D([], [], color=GREY, linestyle="none", marker=r"$\downarrow$", label=label)


def simulation_entry() -> Line2D:
    """Return the legend entry of :func:`ringed_bars`."""
    ring = {**RING, "markeredgecolor": GREY, "markersize": 5}
    return Line2D([], [], linestyle="none", label="simulation (95 %)", **ring)


def asymptote_entry(label: str) -> Line2D:
    """Return the legend entry of a dashed line in the colour of its curve."""
    return Line2D([], [], color=GREY, linestyle=GUIDE, linewidth=0.7, label=label)


def fill_entry(label: str) -> Line2D:
    """Return the legend entry of coloured areas."""
    colour = PALE(0.6)
    return Line2D([], [], linestyle="none", marker="s", markersize=6, color=colour, label=label)


def legend(figure: Figure, curves: list[Line2D], meanings: list[Line2D], title: str = "") -> None:
    """Put a legend, and a title, above all panels, and make the figure that much taller.

    `curves` fill rows from the left; `meanings`, what lines and markers are, follow in rows of
    their own.
    """
    columns = max(len(curves), len(meanings))
    while columns > 1 and _width(_rows(curves, meanings, columns)) > figure.get_figwidth() - 0.1:
        columns -= 1
    rows = _rows(curves, meanings, columns)
    extra = LEGEND_ROW * (len(rows) + 1) + TITLE * bool(title)
    figure.set_figheight(figure.get_figheight() + extra)
    # matplotlib fills column by column.
    handles = [row[column] for column in range(columns) for row in rows]
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)
    if title:
        figure.suptitle(title)


def _rows(curves: list[Line2D], meanings: list[Line2D], columns: int) -> list[list[Line2D]]:
    blanks = [Line2D([], [], linestyle="none", label=" ") for _ in range(columns)]
    return [
        [*handles[start : start + columns], *blanks][:columns]
        for handles in (curves, meanings)
        for start in range(0, len(handles), columns)
    ]


def _width(rows: list[list[Line2D]]) -> float:
    """Width of a legend in inches."""
    columns = zip(*rows, strict=True)
    return sum(LEGEND_HANDLE + max(map(_text_width, column)) for column in columns)


def _text_width(handle: Line2D) -> float:
    text = str(handle.get_label())
    return _width_of(text, mpl.rcParams["legend.fontsize"]) if text.strip() else 0.0


@cache
def _width_of(text: str, size: float) -> float:
    font = FontProperties(size=size)
    return float(TextPath((0, 0), text, prop=font).get_extents().width) / 72
