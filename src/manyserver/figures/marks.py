"""What figures are made of: panels, lines of theory, markers of simulation, legends."""

import math
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from matplotlib.ticker import LogFormatter, MaxNLocator

from manyserver.figures.base import Curve
from manyserver.figures.style import WIDTHS, Look

__all__ = [
    "COLUMNS",
    "clip_bars",
    "corner_text",
    "entry",
    "exact_entry",
    "grid",
    "legend",
    "level",
    "line_entry",
    "markers",
    "method_entries",
    "panels",
    "plain_numbers",
    "rings",
    "share_vertical",
    "slope_entry",
    "slope_guide",
    "theory",
    "upper_bound_entry",
    "upper_bounds",
    "whole_numbers",
    "without_spare",
]

GREY = "0.35"
GUIDE = (0, (4, 2))
RING: dict[str, Any] = {
    "marker": "o",
    "markersize": 6.5,
    "markerfacecolor": "none",
    "markeredgecolor": "0.1",
    "markeredgewidth": 0.7,
}
COLUMNS = {"column": 1, "page": 3}
"""Most panels beside each other."""
LEGEND_ROW = 0.16
LEGEND_HANDLE = 0.41
TITLE = 0.2
"""Inches: height of a row, width of a handle with the gaps around it, height of a title."""


def grid(
    rows: int, columns: int, width: str, height: float, **subplots: Any
) -> tuple[Figure, np.ndarray]:
    """Make a figure of panels, shape (row, column), that makes room for what is outside them.

    Parameters
    ----------
    rows, columns : int
        Number of panels.
    width : {"column", "page"}
        Of the whole figure.
    height : float
        Of one row, in inches.
    **subplots
        As for :meth:`matplotlib.figure.Figure.subplots`.
    """
    figure = Figure(figsize=(WIDTHS[width], height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **subplots)


def panels(
    count: int, width: str, height: float, x_label: str, y_label: str, **subplots: Any
) -> tuple[Figure, list[Axes]]:
    """Make a figure of `count` panels in rows of up to three that share their axis labels."""
    rows = math.ceil(count / COLUMNS[width])
    columns = math.ceil(count / rows)
    figure, axes = grid(rows, columns, width, height, **subplots)
    found: list[Axes] = without_spare(axes.ravel(), count).tolist()
    for lowest in found[-columns:]:
        lowest.tick_params(labelbottom=True)
    if count == 1:
        found[0].set(xlabel=x_label, ylabel=y_label)
    else:
        figure.supxlabel(x_label, fontsize="medium")
        figure.supylabel(y_label, fontsize="medium")
    return figure, found


def without_spare(axes: np.ndarray, count: int) -> np.ndarray:
    """Remove the panels after the first `count` from their figure."""
    for spare in axes[count:].flat:
        spare.remove()
    return axes[:count]


def share_vertical(row: Iterable[Axes]) -> None:
    """Give empty panels beside each other one vertical axis, labelled at the first."""
    first, *others = row
    for axes in others:
        axes.sharey(first)
        axes.tick_params(labelleft=False)


def theory(axes: Axes, curve: Curve, look: Look) -> bool:
    """Draw a curve of theory as a line; return whether there was one."""
    curve = curve.known
    axes.plot(curve.x, curve.values, color=look.colour, linestyle=look.line, zorder=2)
    return bool(curve.x.size)


def level(axes: Axes, value: float, look: Look) -> None:
    """Draw a value that does not depend on the horizontal axis as a line across the panel."""
    axes.axhline(value, color=look.colour, linestyle=look.line, linewidth=0.9, zorder=1)


def markers(axes: Axes, curve: Curve, look: Look, bars: np.ndarray | None = None) -> bool:
    """Draw simulated values as markers with their half-widths as bars; return whether any.

    `bars`, shape (2, point), are lengths below and above, where they differ.
    """
    there = np.isfinite(curve.values)
    curve = curve.at(there)
    if curve.x.size:
        axes.errorbar(
            curve.x,
            curve.values,
            yerr=curve.half_widths if bars is None else bars[:, there],
            fmt=look.marker,
            color=look.colour,
            markerfacecolor="white" if look.hollow else look.colour,
            markeredgewidth=0.6,
            elinewidth=0.8,
            capsize=2.2,
            capthick=0.8,
            zorder=3,
        )
    return bool(curve.x.size)


def upper_bounds(axes: Axes, curve: Curve, look: Look) -> bool:
    """Draw values within their half-widths as the upper ends of their intervals."""
    axes.plot(
        curve.x,
        curve.values + curve.half_widths,
        linestyle="none",
        marker=r"$\downarrow$",
        markersize=5,
        color=look.colour,
        markeredgewidth=0,
    )
    return bool(curve.x.size)


def slope_guide(axes: Axes, slope: float) -> None:
    """Draw a straight line of a given slope above all points of a log-log panel."""
    drawn = [np.asarray(line.get_xydata()) for line in axes.get_lines()]
    points = np.concatenate(drawn) if drawn else np.empty((0, 2))
    points = points[np.all(np.isfinite(points) & (points > 0), axis=1)]
    if len(points):
        x, y = points.T
        ends = np.array([x.min(), x.max()])
        height = 1.5 * np.max(y * x**-slope)
        axes.plot(ends, height * ends**slope, color=GREY, linestyle=GUIDE, linewidth=0.7)


def clip_bars(row: Iterable[Axes]) -> None:
    """Keep bars that reach down to nothing from taking most of a shared logarithmic axis."""
    row = list(row)
    lowest = [
        np.min(container.lines[0].get_ydata())
        for axes in row
        for container in axes.containers
        if isinstance(container, ErrorbarContainer)
    ]
    if lowest:
        row[0].set_ylim(bottom=0.3 * min(lowest))


def plain_numbers(axes: Axes) -> None:
    """Label a logarithmic vertical axis with numbers, not with powers of ten."""
    axes.yaxis.set_major_formatter(LogFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.2, 0.5)))


def rings(axes: Axes, curve: Curve) -> bool:
    """Draw exact values as rings around the markers of other methods; return whether any."""
    axes.plot(curve.x, curve.values, linestyle="none", zorder=4, **RING)
    return bool(curve.x.size)


def corner_text(
    axes: Axes, heading: str, lines: list[tuple[str, Look]], left: bool = False
) -> None:
    """Write lines, each in the colour of a curve, in a lower corner of a panel."""
    texts = [(heading, GREY), *((text, look.colour) for text, look in lines)]
    for place, (text, colour) in enumerate(reversed(texts)):
        axes.annotate(
            text,
            xy=(0.03 if left else 0.98, 0.0),
            xycoords="axes fraction",
            xytext=(0, 0.4 + 1.2 * place),
            textcoords="offset fontsize",
            horizontalalignment="left" if left else "right",
            fontsize="small",
            color=colour,
        )


def whole_numbers() -> MaxNLocator:
    """Return a locator of ticks at whole numbers."""
    return MaxNLocator(integer=True)


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


def line_entry(label: str) -> Line2D:
    """Return a legend entry that says what lines are."""
    return Line2D([], [], color=GREY, label=label)


def slope_entry(slope: float) -> Line2D:
    """Return the legend entry of :func:`slope_guide`."""
    return Line2D([], [], color=GREY, linestyle=GUIDE, linewidth=0.7, label=f"slope ${slope:g}$")


def upper_bound_entry() -> Line2D:
    """Return the legend entry of :func:`upper_bounds`."""
    label = "upper bound (95 %)"
    return Line2D([], [], color=GREY, linestyle="none", marker=r"$\downarrow$", label=label)


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
    if not text.strip():
        return 0.0
    font = FontProperties(size=mpl.rcParams["legend.fontsize"])
    return float(TextPath((0, 0), text, prop=font).get_extents().width) / 72
