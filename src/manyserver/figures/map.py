"""Maps over any two axes: which policy wins where, by how much, or a quantity itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.axes import own_axes
from manyserver.analysis.curves import method_of, points, rate_dimension
from manyserver.analysis.messages import messages_at
from manyserver.figures.base import (
    FigureKind,
    FigureOptions,
    check_axis,
    chosen,
    heading,
    numeric_axes,
    x_label,
)
from manyserver.methods import METHOD, Role
from manyserver.variables import MeanName

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["MapFigure", "Options", "Winner", "winner"]

SERVERS = "n_servers"
EQUAL = 1e-9
"""Values without errors that differ by less, relatively, are equal."""
MOST_NUMBERED = 160
"""Cells of a panel in which numbers are written; more are drawn as areas with boundaries."""
PALE, AREA = 0.25, 0.6
"""How far towards white the colours of cells with numbers in them go, and those of areas."""
ALIKE = 1e-6
"""Values that differ by less, relatively, are in no area of either."""


class Options(FigureOptions):
    """What is drawn, and how."""

    quantity: MeanName = "sojourn_mean"
    """The variable that is drawn, or of which the least wins."""
    x: str | None = None
    """The horizontal axis: the swept one of `load` and `arrival_rate`, which is the default,
    `n_servers`, or an axis of the study's own."""
    y: str = "n_servers"
    """The vertical axis, another one of these."""
    show: Literal["winner", "margin", "value"] = "winner"
    """Which policy wins; by how much the first of two policies is worse than the second one; or
    the variable itself, with a panel for each policy."""
    n_servers: int | None = None
    """Number of servers of the simulation that is drawn, if that is no axis; the limit if left
    out."""
    x_scale: Literal["linear", "log"] = "linear"
    """Scale of the horizontal axis of a map without numbers in it."""
    y_scale: Literal["linear", "log"] = "linear"
    """Scale of its vertical axis."""
    most_messages: float | None = Field(default=None, ge=0)
    """Policies that need more messages per job at a point do not take part there."""


@dataclass(frozen=True)
class Winner:
    """Who wins at one point.

    Attributes
    ----------
    place : int
        Of the policy with the least value.
    rivals : tuple of int
        The policies that are not worse than it at 95 %, the best first.
    margin : float
        How much worse the best of the other policies is, relatively; NaN if there is none.
    """

    place: int
    rivals: tuple[int, ...]
    margin: float


def winner(values: np.ndarray, half_widths: np.ndarray, trusted: np.ndarray) -> Winner | None:
    """Find the least of independent values.

    Parameters
    ----------
    values : numpy.ndarray, shape (policy,)
        NaN takes no part.
    half_widths : numpy.ndarray, shape (policy,)
        Of 95 % intervals; 0 where there is no error.
    trusted : numpy.ndarray of bool, shape (policy,)
        A value that is not never differs significantly from another one.

    Returns
    -------
    Winner or None
        None if there is no value.

    Examples
    --------
    >>> best = winner(np.array([2.0, 1.0, 1.01]), np.array([0.1, 0.01, 0.01]), np.ones(3, bool))
    >>> best.place, best.rivals, round(best.margin, 3)
    (1, (2,), 0.01)
    """
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        return None
    order = known[np.argsort(values[known], kind="stable")]
    best, others = int(order[0]), order[1:]
    apart = np.maximum(
        np.hypot(half_widths[others], half_widths[best]), EQUAL * np.abs(values[best])
    )
    close = (values[others] - values[best] <= apart) | ~trusted[others] | ~trusted[best]
    margin = float(values[others[0]] / values[best] - 1) if others.size else np.nan
    return Winner(best, tuple(map(int, others[close])), margin)


class MapFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "map"
    title = "Maps over any two axes: which policy wins where, by how much, or the variable itself."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as a simulation or the mean field."""
        yield study.lacks(Role.LIMIT, Role.SIMULATION)
        if (options.x or study.rate_axis) == options.y:
            yield f"another vertical axis than {options.y}"
        if options.show == "margin":
            yield "" if len({p.labels["policy"] for p in study.chosen}) == 2 else "two policies"

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one panel for all that is no axis; see :class:`Options`.

        A small map of winners has a cell for every point: its colour is that of the policy with the
        least value, the number by how many per cent the runner-up is worse. If the two do not
        differ at 95 %, the lower right half of the cell has the colour of the runner-up; if more
        policies do not, the number is followed by how many there are. Empty cells have no value,
        and the limit is the row above. A map of more points shows areas, and between them the lines
        on which two policies are equal, by linear interpolation.

        Raises
        ------
        ValueError
            If a label or an axis is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        x, y = options.x or rate_dimension(cube), options.y
        numbers = numeric_axes(cube)
        check_axis("x", x, numbers)
        check_axis("y", y, numbers)
        cube = _at_servers(chosen(cube, options, keep=own_axes(cube)), x, y, options)
        fixed = [axis for axis in ("system", *numbers) if axis in cube.dims and axis not in (x, y)]
        if options.show == "value":
            fixed.insert(1, "policy")
        panels = [
            (here, panel)
            for here in points(cube, *fixed)
            if np.isfinite((panel := _panel(here, x, options)).values).any()
        ]
        if not panels:
            raise ValueError(f"{options.quantity}: the cube holds no value to draw")
        numbered = options.show == "winner" and cube.sizes[x] * cube.sizes[y] <= MOST_NUMBERED
        figure, drawn = marks.panels(
            len(panels),
            options.width,
            height=0.55 + 0.3 * max(4, cube.sizes[y]) if numbered else 2.2,
            x_label=x_label(cube, x),
            y_label=x_label(cube, y),
            sharex=True,
            sharey=True,
        )
        looks = style.looks(cube)
        for (here, _), axes in zip(panels, drawn, strict=True):
            axes.set_title(heading(here, cube, fixed))
        if options.show == "winner":
            entries, meanings = _draw_winners(panels, drawn, looks, x, options, numbered)
            legends.legend(figure, entries, meanings, options.title)
        else:
            _draw_contours(figure, panels, drawn, looks, x, options)
        return figure


def _at_servers(cube: "xr.Dataset", x: str, y: str, options: Options) -> "xr.Dataset":
    """Keep one method everywhere: the limit, or simulation with some number of servers."""
    n = cube[SERVERS].values
    if SERVERS in (x, y):
        return cube
    wanted = np.inf if options.n_servers is None and np.inf in n else options.n_servers
    wanted = n.max() if wanted is None else float(wanted)
    if wanted not in n:
        there = ", ".join(f"{number:g}" for number in n)
        raise ValueError(f"n_servers = {wanted:g}: is not in the cube; must be one of {there}")
    return cube.sel({SERVERS: wanted})


def _draw_winners(
    panels: "list[tuple[xr.Dataset, _Panel]]",
    drawn: "list[Axes]",
    looks: "list[Look]",
    x: str,
    options: Options,
    numbered: bool,
) -> "tuple[list[Line2D], list[Line2D]]":
    """Draw who wins; return the entries of the legend, and what else it explains."""
    from manyserver.figures.drawing import legends

    split = False
    seen: set[int] = set()
    narrow = options.width == "column" or len(panels) > 1
    for (here, panel), axes in zip(panels, drawn, strict=True):
        if not numbered:
            seen |= _draw_areas(axes, here, panel.values, looks, x, options)
            continue
        found = _races(panel)
        seen |= {best.place for best in found.values()}
        for (row, column), best in found.items():
            colours = [looks[best.place], *(looks[place] for place in best.rivals[:1])]
            _draw_cell(axes, row, column, [look.colour for look in colours])
            _write(axes, row, column, best, 5.0 if narrow else 6.5)
            seen |= set(best.rivals[:1])
            split |= bool(best.rivals)
        _finish(axes, here[x].values, np.sort(here[options.y].values))
    pale = PALE if numbered else AREA
    entries = [_patch_entry(look, pale) for place, look in enumerate(looks) if place in seen]
    if not numbered:
        return entries, [
            legends.line_entry("equal"),
            legends.line_entry(r"white: equal to $10^{-6}$, or no value", "none"),
        ]
    meanings = [legends.line_entry("number: runner-up worse by, in %", "none")]
    if split:
        meanings.append(legends.line_entry("split cell: not different at 95 %", "none"))
    return entries, meanings


def _draw_areas(
    axes: "Axes",
    here: "xr.Dataset",
    values: np.ndarray,
    looks: "list[Look]",
    x: str,
    options: Options,
) -> set[int]:
    """Draw the areas in which policies win, and lines where two are equal; return who wins."""
    from matplotlib.colors import ListedColormap

    columns, rows = here[x].values, np.sort(here[options.y].values)
    ranked = np.sort(np.where(np.isnan(values), np.inf, values), axis=0)
    winners = np.argmin(np.where(np.isnan(values), np.inf, values), axis=0).astype(float)
    winners[np.isinf(ranked[0])] = np.nan
    if len(values) > 1:
        winners[ranked[1] <= ranked[0] * (1 + ALIKE)] = np.nan
    colours = ListedColormap([_pale(look.colour, AREA) for look in looks])
    axes.pcolormesh(
        columns, rows, winners, cmap=colours, vmin=-0.5, vmax=len(looks) - 0.5, rasterized=True
    )
    for place in range(len(values)):
        others = np.delete(values, place, axis=0)
        best = np.min(others, axis=0, where=np.isfinite(others), initial=np.inf)
        _draw_zeros(axes, columns, rows, values[place] / best - 1)
    axes.set_xscale(options.x_scale)
    axes.set_yscale(options.y_scale)
    return {int(place) for place in winners[np.isfinite(winners)]}


def _draw_zeros(axes: "Axes", columns: np.ndarray, rows: np.ndarray, lead: np.ndarray) -> None:
    """Draw where a relative difference changes its sign, unless it is next to nothing around."""
    from scipy.ndimage import binary_dilation

    known = np.isfinite(lead)
    around = np.ones((3, 3), dtype=bool)
    below, above = (known & (sign * lead > ALIKE) for sign in (-1, 1))
    between = binary_dilation(below, around) & binary_dilation(above, around)
    lead = np.where(known & (below | above | between), lead, np.nan)
    if np.nanmin(lead, initial=0) < 0 < np.nanmax(lead, initial=0):
        axes.contour(columns, rows, lead, levels=[0], colors="0.2", linewidths=0.9)


def _draw_contours(
    figure: "Figure",
    panels: "list[tuple[xr.Dataset, _Panel]]",
    drawn: "list[Axes]",
    looks: "list[Look]",
    x: str,
    options: Options,
) -> None:
    """Draw filled contours of the margin, or of the variable."""
    from matplotlib.ticker import MaxNLocator

    from manyserver.figures.drawing import style

    margin = options.show == "margin"
    grids = [panel.values for _, panel in panels]
    shown = [100 * (grid[0] / grid[1] - 1) if margin else grid[0] for grid in grids]
    low = min(float(np.nanmin(values)) for values in shown)
    high = max(float(np.nanmax(values)) for values in shown)
    if margin:
        high = max(abs(low), abs(high))
        low = -high
    levels = MaxNLocator(13).tick_values(low, high)
    for (here, _), values, axes in zip(panels, shown, drawn, strict=True):
        rows = np.sort(here[options.y].values)
        filled = axes.contourf(
            here[x].values, rows, values, levels=levels, cmap="RdBu_r" if margin else "viridis_r"
        )
        if margin:
            _draw_zeros(axes, here[x].values, rows, values / 100)
        axes.set_xscale(options.x_scale)
        axes.set_yscale(options.y_scale)
    bar = figure.colorbar(filled, ax=drawn)
    bar.set_label(
        f"{looks[0].label} worse than\n{looks[1].label} by, in %"
        if margin
        else style.variable_label(options.quantity)
    )
    if options.title:
        figure.suptitle(options.title)


@dataclass(frozen=True)
class _Panel:
    """Values of a panel, their half-widths, and whether they can be trusted.

    All have the shape (policy, row, column).
    """

    values: np.ndarray
    half_widths: np.ndarray
    trusted: np.ndarray


def _panel(here: "xr.Dataset", x: str, options: Options) -> _Panel:
    """Read all of a panel: the limit where there is no number of servers, else simulation."""
    import xarray as xr

    here = here if "policy" in here.dims else here.expand_dims("policy")
    servers = np.atleast_1d(here[SERVERS].values)
    parts = []
    for n in servers:
        method = method_of(here, Role.LIMIT if np.isinf(n) else Role.SIMULATION)
        part = here.sel({SERVERS: n}) if SERVERS in here.dims else here
        if method:
            parts.append(part.sel({METHOD: method}).drop_vars(METHOD))
    if SERVERS in here.dims and parts:
        joined = xr.concat(parts, SERVERS, coords="minimal", compat="override", join="override")
        here = joined.reindex({SERVERS: servers})
    elif parts:
        (here,) = parts
    here = here.sortby(options.y)

    def read(name: str, default: float) -> np.ndarray:
        if name not in here or METHOD in here.dims:
            return np.full([here.sizes[dim] for dim in ("policy", options.y, x)], default)
        return np.array(here[name].transpose("policy", options.y, x).values, dtype=float)

    values = read(options.quantity, np.nan)
    if options.most_messages is not None:
        for place in np.ndindex(values.shape):
            point = here.isel(dict(zip(("policy", options.y, x), place, strict=True)))
            # Messages in the limit are a sum of flows; the tolerance is that of rounding.
            if not messages_at(point)[0] <= options.most_messages * (1 + EQUAL):
                values[place] = np.nan
    half_widths = np.nan_to_num(read(f"{options.quantity}_half_width", 0.0))
    return _Panel(values, half_widths, read("interval_reliable", 1.0) != 0)


def _races(panel: _Panel) -> dict[tuple[int, int], Winner]:
    """Find the winners of one panel by row and column."""
    found: dict[tuple[int, int], Winner] = {}
    _, rows, columns = panel.values.shape
    for row, column in np.ndindex(rows, columns):
        here = (slice(None), row, column)
        best = winner(panel.values[here], panel.half_widths[here], panel.trusted[here])
        if best is not None:
            found[row, column] = best
    return found


def _draw_cell(axes: "Axes", row: int, column: int, colours: list[Any]) -> None:
    from matplotlib.patches import Polygon

    left, low = column - 0.5, row - 0.5
    corners = [(left, low), (left, low + 1), (left + 1, low + 1), (left + 1, low)]
    pale = [_pale(colour) for colour in colours]
    axes.add_patch(Polygon(corners, facecolor=pale[0], edgecolor="white", linewidth=1.2))
    if len(pale) > 1:
        half = [corners[0], corners[2], corners[3]]
        axes.add_patch(Polygon(half, facecolor=pale[1], edgecolor="white", linewidth=0.6))


def _pale(colour: Any, part: float = PALE) -> tuple[float, float, float]:
    red, green, blue = (1 - (1 - part) * (1 - own) for own in colour)
    return red, green, blue


def _write(axes: "Axes", row: int, column: int, best: Winner, size: float) -> None:
    from matplotlib.patheffects import withStroke

    if not np.isfinite(best.margin):
        return
    percent = 100 * best.margin
    if best.margin <= EQUAL:
        text = "="
    elif percent < 0.05:
        text = "< 0.1"
    else:
        text = f"{percent:.0f}" if percent >= 9.95 else f"{percent:.1f}"
    if len(best.rivals) > 1:
        text += f" ({len(best.rivals) + 1})"
    axes.text(
        column,
        row,
        text,
        ha="center",
        va="center",
        fontsize=size,
        path_effects=[withStroke(linewidth=1.5, foreground="white", alpha=0.8)],
    )


def _finish(axes: "Axes", columns: np.ndarray, rows: np.ndarray) -> None:
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(-0.5, len(rows) - 0.5)
    axes.set_xticks(range(len(columns)), list(map(_number, columns)))
    axes.set_yticks(range(len(rows)), list(map(_number, rows)))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _patch_entry(look: "Look", part: float) -> "Line2D":
    from matplotlib.lines import Line2D

    colour = _pale(look.colour, part)
    return Line2D(
        [], [], linestyle="none", marker="s", markersize=6, color=colour, label=look.label
    )


def _number(value: float) -> str:
    return "limit" if np.isinf(value) else f"{value:g}"
