"""Which policy wins where: a map over load and number of servers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import method_of, rate_dimension
from manyserver.analysis.messages import messages_at
from manyserver.figures.base import FigureKind, FigureOptions, chosen, served
from manyserver.methods import METHOD, Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["Options", "PolicyMapFigure", "Winner", "winner"]

EQUAL = 1e-9
"""Values without errors that differ by less, relatively, are equal."""
PALE = 0.25
"""How far towards white the colours of cells go, so that numbers can be read on them."""


class Options(FigureOptions):
    """What is drawn, and how."""

    quantity: Literal["sojourn_mean", "jobs_per_server", "waiting_probability"] = "sojourn_mean"
    """The variable of which the least wins."""
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


class PolicyMapFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "policy_map"
    title = "Which policy wins where: a map over load and number of servers."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as a simulation or the mean field."""
        yield study.lacks(Role.LIMIT, Role.SIMULATION)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one panel per system; a cell for every load or arrival rate and number of servers.

        The colour of a cell is the policy with the least value, and the number by how many per cent
        the runner-up is worse. If the two do not differ at 95 %, the lower right half of the cell
        has the colour of the runner-up; if more policies do not, the number is followed by how many
        there are. Empty cells have no value. The limit is the row above.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        dimension = rate_dimension(cube)
        systems = sorted({system for system, _ in served(cube, options.quantity)})
        races = {system: _races(cube.isel(system=system), options) for system in systems}
        races = {system: found for system, found in races.items() if found}
        if not races:
            raise ValueError(f"{options.quantity}: the cube holds no value to draw")
        rates, servers = cube[dimension].values, _servers(cube)
        figure, panels = marks.panels(
            len(races),
            options.width,
            height=0.55 + 0.3 * max(4, len(servers)),
            x_label=style.AXIS_LABELS[dimension],
            y_label=style.AXIS_LABELS["n_servers"],
            sharex=True,
            sharey=True,
        )
        looks = style.looks(cube)
        split = False
        drawn: set[int] = set()
        narrow = options.width == "column" or len(races) > 1
        for (system, found), axes in zip(races.items(), panels, strict=True):
            for (row, column), best in found.items():
                colours = [looks[best.place], *(looks[place] for place in best.rivals[:1])]
                _draw_cell(axes, row, column, [look.colour for look in colours])
                _write(axes, row, column, best, 5.0 if narrow else 6.5)
                drawn |= {best.place, *best.rivals[:1]}
                split |= bool(best.rivals)
            _finish(axes, rates, servers)
            if cube.sizes["system"] > 1:
                axes.set_title(str(cube["system"].values[system]))
        meanings = [legends.line_entry("number: runner-up worse by, in %", "none")]
        if split:
            meanings.append(legends.line_entry("split cell: not different at 95 %", "none"))
        entries = [_patch_entry(look) for place, look in enumerate(looks) if place in drawn]
        legends.legend(figure, entries, meanings, options.title)
        return figure


def _servers(cube: "xr.Dataset") -> np.ndarray:
    """Return the numbers of servers that have any value, in increasing order."""
    return np.sort(cube["n_servers"].values)


def _races(here: "xr.Dataset", options: Options) -> dict[tuple[int, int], Winner]:
    """Find the winners of one system by row and column, simulated, or in the limit."""
    dimension = rate_dimension(here)
    found: dict[tuple[int, int], Winner] = {}
    for row, n_servers in enumerate(_servers(here)):
        method = method_of(here, Role.LIMIT if np.isinf(n_servers) else Role.SIMULATION)
        if not method:
            continue
        there = here.sel({METHOD: method, "n_servers": n_servers})
        for column in range(here.sizes[dimension]):
            best = winner(*_values(there.isel({dimension: column}), options))
            if best is not None:
                found[row, column] = best
    return found


def _values(point: "xr.Dataset", options: Options) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, half-widths, and whether they can be trusted, of all policies."""
    values = np.array(point[options.quantity].values, dtype=float)
    if options.most_messages is not None:
        sent = [messages_at(point.isel(policy=place))[0] for place in range(values.size)]
        # Messages in the limit are a sum of flows; the tolerance is that of rounding.
        values[~(np.array(sent) <= options.most_messages * (1 + EQUAL))] = np.nan
    name = f"{options.quantity}_half_width"
    half_widths = np.nan_to_num(point[name].values) if name in point else np.zeros(values.size)
    trusted = np.ones(values.size, dtype=bool)
    if "interval_reliable" in point:
        trusted = point["interval_reliable"].values != 0
    return values, half_widths, trusted


def _draw_cell(axes: "Axes", row: int, column: int, colours: list[Any]) -> None:
    from matplotlib.patches import Polygon

    left, low = column - 0.5, row - 0.5
    corners = [(left, low), (left, low + 1), (left + 1, low + 1), (left + 1, low)]
    pale = [_pale(colour) for colour in colours]
    axes.add_patch(Polygon(corners, facecolor=pale[0], edgecolor="white", linewidth=1.2))
    if len(pale) > 1:
        half = [corners[0], corners[2], corners[3]]
        axes.add_patch(Polygon(half, facecolor=pale[1], edgecolor="white", linewidth=0.6))


def _pale(colour: Any) -> tuple[float, float, float]:
    red, green, blue = (1 - (1 - PALE) * (1 - part) for part in colour)
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


def _finish(axes: "Axes", rates: np.ndarray, servers: np.ndarray) -> None:
    axes.set_xlim(-0.5, len(rates) - 0.5)
    axes.set_ylim(-0.5, len(servers) - 0.5)
    axes.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    axes.set_yticks(range(len(servers)), ["limit" if np.isinf(n) else f"{n:.0f}" for n in servers])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _patch_entry(look: "Look") -> "Line2D":
    from matplotlib.lines import Line2D

    colour = _pale(look.colour)
    return Line2D(
        [], [], linestyle="none", marker="s", markersize=6, color=colour, label=look.label
    )
