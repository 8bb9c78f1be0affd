"""What figures are made of: panels, lines of theory, markers of simulation."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import ListedColormap
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import (
    FormatStrFormatter,
    LogFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)

from manyserver.figures.base import Curve
from manyserver.figures.drawing.style import WIDTHS, Look

__all__ = [
    "COLUMNS",
    "clip_bars",
    "corner_text",
    "few_numbers",
    "grid",
    "joined",
    "level",
    "markers",
    "panels",
    "plain_numbers",
    "ringed_bars",
    "rings",
    "room_below",
    "share_vertical",
    "slope_guide",
    "theory",
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
LIMITS: tuple[Any, ...] = ((0, (5, 2)), (0, (1, 1)), (0, (4, 1, 1, 1)))
"""Lines of what bounds a quantity, or is its limit."""
PALE = ListedColormap(sns.light_palette("#4878a8", 24).as_hex()[:14])
"""Colours that lines can be drawn on."""
COLUMNS = {"column": 1, "page": 3}
"""Most panels beside each other."""
PANEL = 0.72
"""Part of the height of a row that a panel takes, about."""


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


def joined(axes: Axes, curve: Curve, look: Look) -> bool:
    """Draw values without errors as markers joined by a line; return whether there were any."""
    curve = curve.known
    axes.plot(
        curve.x,
        curve.values,
        color=look.colour,
        linestyle=look.line,
        linewidth=0.9,
        marker=look.marker,
        markersize=3,
        markeredgewidth=0,
        zorder=2,
    )
    return bool(curve.x.size)


def ringed_bars(axes: Axes, curve: Curve, look: Look) -> bool:
    """Draw simulated values as rings with bars around other markers; return whether any.

    Values without a half-width are not drawn.
    """
    curve = curve.known
    curve = curve.at(curve.half_widths > 0)
    if curve.x.size:
        axes.errorbar(
            curve.x,
            curve.values,
            yerr=curve.half_widths,
            linestyle="none",
            color=look.colour,
            **{**RING, "markeredgecolor": look.colour, "markersize": 5},
            elinewidth=0.8,
            capsize=2.2,
            capthick=0.8,
            zorder=4,
        )
    return bool(curve.x.size)


def room_below(axes: Axes, lines: int, share: float = 0.45) -> None:
    """Make room for :func:`corner_text` in the lower left corner of a logarithmic panel.

    `share` is the part of the width that the text takes. Sizes are settled when the figure is
    drawn, so a panel is taken as that part of its row that the layouts here leave it.
    """
    drawn = [np.asarray(line.get_xydata()) for line in axes.get_lines()]
    points = np.concatenate(drawn)
    points = np.log(points[np.all(np.isfinite(points) & (points > 0), axis=1)])
    figure, place = axes.get_figure(root=True), axes.get_subplotspec()
    assert figure is not None
    rows = 1 if place is None else place.get_gridspec().nrows
    font = FontProperties(size="small").get_size_in_points()
    part = min(0.7, 1.2 * (lines + 0.6) * font / 72 / (PANEL * figure.get_figheight() / rows))
    left, right = points[:, 0].min(), points[:, 0].max()
    under = points[points[:, 0] <= left + share * (right - left), 1].min()
    low, high = points[:, 1].min(), points[:, 1].max()
    wanted = high - (high - under) / (1 - part)
    margin = 0.05 * (high - low)
    axes.set_ylim(float(np.exp(min(low - margin, wanted))), float(np.exp(high + margin)))


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
            marker=look.marker,
            linestyle="none",
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


class _Plain(LogFormatter):
    """Writes 0.9 where matplotlib writes 9e-01."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick; empty for one without."""
        return f"{x:g}" if super().__call__(x, pos) else ""


def plain_numbers(axes: Axes) -> None:
    """Label a logarithmic vertical axis with numbers, not with powers of ten."""
    axes.yaxis.set_major_formatter(_Plain())
    axes.yaxis.set_minor_formatter(_Plain(minor_thresholds=(1.2, 0.5)))


def few_numbers(axis: Axis) -> None:
    """Label a short logarithmic axis with numbers at 1, 2 and 5 times powers of ten."""
    if np.isinf(axis.get_minpos()):
        return  # Nothing is drawn, which this locator does not bear.
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


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


def whole_numbers(axis: Axis) -> None:
    """Put the ticks of a linear axis at whole numbers."""
    if axis.get_scale() == "linear":
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=2))
