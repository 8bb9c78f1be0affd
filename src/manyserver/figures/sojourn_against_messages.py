"""Mean sojourn time against the messages that a policy needs, with the Pareto front."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from manyserver.analysis.curves import method_of, rate_dimension
from manyserver.analysis.messages import messages_at
from manyserver.figures.base import Curve, FigureKind, FigureOptions, chosen, finite_servers, slices
from manyserver.methods import METHOD, Role
from manyserver.variables import MeanName

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["Options", "SojournAgainstMessagesFigure", "pareto"]

STEPS = ("d", "routers", "threshold")
"""Parameters by which policies of one family differ, beside each other along a line."""
FRONT = (0, (1, 1.2))
HEIGHT = 2.8
"""Of a row of panels, in inches."""


class Options(FigureOptions):
    """What is drawn, and how."""

    quantity: MeanName = "sojourn_mean"
    """The variable on the vertical axis."""
    n_servers: int | None = None
    """Number of servers of the simulations drawn; the largest if left out."""
    scale: Literal["linear", "log"] = "log"
    """Scale of the vertical axes."""
    front: bool = True
    """Whether to draw the Pareto front."""


@dataclass(frozen=True)
class _Spot:
    """One policy: messages and value with half-widths, and its step along its family."""

    policy: int
    step: str
    x: float
    y: float
    x_error: float = 0.0
    y_error: float = 0.0

    @property
    def known(self) -> bool:
        return bool(np.isfinite([self.x, self.y]).all())


class SojournAgainstMessagesFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "sojourn_against_messages"
    title = "Mean sojourn time against the messages that a policy needs, with the Pareto front."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as messages."""
        # Messages are not counted where jobs are followed.
        yield study.lacks(Role.LIMIT, *([] if study.simulates_jobs else [Role.SIMULATION]))

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one panel for every system and arrival rate, one point for every policy.

        Simulation as filled markers with half-widths both ways, the limit as open ones. Policies
        that differ in d, the number of routers or the threshold alone are joined by a line and
        numbered. The grey staircase is the Pareto front of the simulations, or of the limit if
        there are none: what is above it is worse than a policy with no more messages.

        Raises
        ------
        ValueError
            If a label is not in the cube, or no policy has both a value and messages.
        """
        from manyserver.figures.drawing import labels, legends, marks, style

        cube = chosen(cube, options)
        dimension = rate_dimension(cube)
        n_servers = finite_servers(cube, options.n_servers)
        parts = slices(cube, options.quantity, "system", dimension)
        sizes = [(Role.SIMULATION, n_servers), (Role.LIMIT, np.inf)]
        spots = [
            {role: _spots(here, options.quantity, role, n) for role, n in sizes} for here in parts
        ]
        kept = [place for place, found in enumerate(spots) if any(found.values())]
        if not kept:
            raise ValueError("messages_per_job: the cube holds no value to draw")
        families = _families(cube)
        looks = _looks(cube, families)
        figure, panels = marks.panels(
            len(kept),
            options.width,
            height=HEIGHT,
            x_label="Messages per job, $m$",
            y_label=style.variable_label(options.quantity),
            sharex=True,
        )
        finite = limit = False
        drawn: set[int] = set()
        for place, axes in zip(kept, panels, strict=True):
            here, found = parts[place], spots[place]
            axes.set_yscale(options.scale)
            axes.set_xscale("symlog", linthresh=1, linscale=0.8)
            for role, those in found.items():
                open_ones = role is Role.LIMIT
                for spot in those:
                    _draw_spot(axes, spot, looks[families[spot.policy]], open_ones)
                    drawn.add(families[spot.policy])
                limit |= open_ones and bool(those)
                finite |= not open_ones and bool(those)
            first = found[Role.SIMULATION] or found[Role.LIMIT]
            _join(axes, first, families, looks)
            if options.front:
                _draw_front(axes, first)
            rate = style.rate_label(float(here[dimension]), dimension)
            axes.set_title(f"{here['system'].values}, {rate}" if cube.sizes["system"] > 1 else rate)
            _finish(axes, first, options.scale)
            lone = [spot for spot in first if families.count(families[spot.policy]) == 1]
            named = [
                (spot.x, spot.y, looks[spot.policy].label, looks[spot.policy]) for spot in lone
            ]
            labels.beside(axes, named, 72 * HEIGHT * marks.PANEL)
        meanings = legends.method_entries(False, finite, n_servers)
        meanings += [_open_entry()] * limit
        meanings += [legends.line_entry("Pareto front", FRONT)] * options.front
        curves = [
            legends.entry(look, line=False) for place, look in looks.items() if place in drawn
        ]
        legends.legend(figure, curves, meanings, options.title)
        return figure


def _spots(here: "xr.Dataset", quantity: str, role: Role, n_servers: float | None) -> list[_Spot]:
    """Read all policies of one method at one number of servers."""
    method = method_of(here, role)
    if not method or n_servers not in here["n_servers"].values:
        return []
    there = here.sel({METHOD: method, "n_servers": n_servers})
    found = []
    for policy in range(there.sizes["policy"]):
        point = there.isel(policy=policy)
        y = float(point[quantity])
        if not np.isfinite(y):
            continue
        x, x_error = messages_at(point)
        name = f"{quantity}_half_width"
        y_error = float(np.nan_to_num(point[name])) if name in point else 0.0
        found.append(_Spot(policy, _step(point), x, y, x_error, y_error))
    return [spot for spot in found if spot.known]


def _step(point: "xr.Dataset") -> str:
    parameters = json.loads(str(point["policy_parameters"].values))
    steps = [parameters[name] for name in STEPS if parameters.get(name) is not None]
    return ", ".join(str(step if isinstance(step, int) else _same(step)) for step in steps)


def _same(choices: list[int]) -> str:
    """Write numbers of choices, once if all are equal."""
    return str(choices[0]) if len(set(choices)) == 1 else f"({', '.join(map(str, choices))})"


def _families(cube: "xr.Dataset") -> list[int]:
    """Return, for every policy, the place of the first one of its family."""
    keys: dict[str, int] = {}
    found = []
    for place, text in enumerate(cube["policy_parameters"].values):
        parameters = json.loads(str(text))
        rest = {name: value for name, value in parameters.items() if name not in STEPS}
        # Without d a policy looks at every server, which is another family.
        has = [name for name in STEPS if parameters.get(name) is not None]
        key = f"{cube['policy_name'].values[place]} {has} {json.dumps(rest, sort_keys=True)}"
        found.append(keys.setdefault(key, place))
    return found


def _looks(cube: "xr.Dataset", families: list[int]) -> "dict[int, Look]":
    """Return a look for every family, by its first policy, named without what differs."""
    from manyserver.figures.drawing import style

    firsts = sorted(set(families))
    alone = {place for place in firsts if families.count(place) == 1}
    full = style.looks(cube.isel(policy=firsts))
    short = style.looks(cube.isel(policy=firsts), without=STEPS)
    return {
        place: look if place in alone else replace(look, label=brief.label + _what(cube, place))
        for place, look, brief in zip(firsts, full, short, strict=True)
    }


def _what(cube: "xr.Dataset", place: int) -> str:
    parameters = json.loads(str(cube["policy_parameters"].values[place]))
    names = {"d": "$d$", "routers": "$R$ routers", "threshold": "threshold"}
    told = [names[name] for name in STEPS if parameters.get(name) is not None]
    return f", {' and '.join(told)} as numbered" if told else ""


def pareto(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the places of the points that no other one beats in both coordinates, by `x`.

    Parameters
    ----------
    x, y : numpy.ndarray, shape (point,)
        The less the better.

    Examples
    --------
    >>> pareto(np.array([0.0, 1.0, 4.0, 4.0]), np.array([3.0, 1.0, 2.0, 0.5])).tolist()
    [0, 1, 3]
    """
    order = np.lexsort((y, x))
    best = np.minimum.accumulate(np.append(np.inf, y[order]))[:-1]
    return order[y[order] < best]


def _draw_spot(axes: "Axes", spot: _Spot, look: "Look", open_one: bool) -> None:
    from manyserver.figures.drawing import marks

    if open_one:
        axes.plot(spot.x, spot.y, marker=look.marker, **_open(look.colour))
        return
    marks.markers(axes, Curve(*(np.array([v]) for v in (spot.x, spot.y, spot.y_error))), look)
    ends = (spot.x - spot.x_error, spot.x + spot.x_error)
    axes.hlines(spot.y, *ends, color=look.colour, linewidth=0.8, zorder=3)


def _open(colour: Any) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "markersize": 6.5,
        "markerfacecolor": "none",
        "markeredgecolor": colour,
        "markeredgewidth": 0.8,
        "zorder": 3,
    }


def _join(axes: "Axes", spots: list[_Spot], families: list[int], looks: "dict[int, Look]") -> None:
    """Join the policies of every family, and number them, on alternate sides."""
    from manyserver.figures.drawing import labels

    nth = 0
    for family, look in looks.items():
        those = [spot for spot in spots if families[spot.policy] == family]
        if len(those) < 2:
            continue
        those.sort(key=lambda spot: (spot.x, -spot.y))
        nth += 1
        axes.plot(
            [spot.x for spot in those],
            [spot.y for spot in those],
            color=look.colour,
            linewidth=0.7,
            zorder=2,
        )
        for spot in those:
            axes.annotate(
                spot.step,
                (spot.x, spot.y),
                xytext=(4, 4) if nth % 2 else (-4, -4),
                textcoords="offset points",
                fontsize=labels.SIZE,
                color=look.colour,
                ha="left" if nth % 2 else "right",
                va="bottom" if nth % 2 else "top",
            )


def _draw_front(axes: "Axes", spots: list[_Spot]) -> None:
    x, y = (np.array([getattr(spot, name) for spot in spots]) for name in ("x", "y"))
    places = pareto(x, y)
    ends = np.append(x[places], 1.3 * max(1.0, x.max()))
    axes.step(
        ends,
        np.append(y[places], y[places[-1]]),
        where="post",
        color="0.4",
        linestyle=FRONT,
        linewidth=1.0,
        zorder=1,
    )


def _finish(axes: "Axes", spots: list[_Spot], scale: str) -> None:
    from manyserver.figures.drawing import marks

    most = max(1.0, max(spot.x for spot in spots))
    axes.set_xlim(-0.12, 1.5 * most)
    ticks = [tick for tick in (0, 0.5, 1, 2, 4, 8, 16, 32, 64, 128) if tick <= 1.5 * most]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    if scale == "log":
        marks.few_numbers(axes.yaxis)


def _open_entry() -> "Line2D":
    from matplotlib.lines import Line2D

    label = r"mean field, $N \to \infty$"
    return Line2D([], [], marker="o", label=label, **_open("0.35"))
