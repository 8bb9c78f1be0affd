"""How waiting and blocking vanish with the number of servers, on logarithmic axes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import NORMAL_QUANTILE, points, rate_dimension, system_of
from manyserver.analysis.messages import MESSAGES
from manyserver.analysis.rounding import with_error
from manyserver.figures.base import Curve, FigureKind, FigureOptions, chosen
from manyserver.fits.decay import Theory, can_vanish, fit, series, theory
from manyserver.methods import Role
from manyserver.model import System
from manyserver.statistics.decay import Decay
from manyserver.statistics.erlang import erlang_b, erlang_c

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["DecayFigure", "Options"]

Show = Literal[
    "empty_router_probability",
    "waiting_probability",
    "blocking_probability",
    "messages_per_job",
]
EMPTY, WAITING, BLOCKING = "empty_router_probability", "waiting_probability", "blocking_probability"
LABELS = {
    EMPTY: "Router empty, $P_e$",
    WAITING: "Waiting, $P_w$",
    BLOCKING: "Blocking, $P_b$",
    MESSAGES: "Messages\nper job, $m$",
}
TEXT_WIDTH = 0.7
"""Part of the width of a panel that exponents may take."""
LARGEST_ERROR = 0.5
"""A fitted exponent is written if its standard error is less."""


class Options(FigureOptions):
    """What is drawn, and how."""

    show: tuple[Show, ...] = Field(
        default=(
            "empty_router_probability",
            "waiting_probability",
            "blocking_probability",
            "messages_per_job",
        ),
        min_length=1,
    )
    """Rows of panels, as far as the cube has values."""
    law: Literal["auto", "exponential", "power"] = "auto"
    """The law whose exponents stand in the panels; by default what theory says, else what
    chi-square accepts."""


@dataclass
class _Used:
    """Which kinds of marks were drawn."""

    simulated: bool = False
    exact: bool = False
    line: bool = False
    band: bool = False
    bounds: bool = False

    def entries(self) -> list:
        from manyserver.figures.drawing import legends

        found = legends.method_entries(limit=False, finite=self.simulated)
        found += [legends.exact_entry()] * self.exact
        found += [legends.line_entry("PULL, leading order $c/N$")] * self.line
        found += [legends.fill_entry("between Erlang's B and C")] * self.band
        return found + [legends.upper_bound_entry()] * self.bounds


class DecayFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "decay"
    title = "How waiting and blocking vanish with the number of servers, on logarithmic axes."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as finite systems."""
        lack = study.lacks(Role.SIMULATION, Role.EXACT)
        yield lack
        if not lack and not any(can_vanish(study, name) for name in options.show):
            yield f"a policy, or buffers, with which there is {' or '.join(options.show)}"

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one column per system and arrival rate, one row per quantity, one curve per policy.

        Simulation as markers with half-widths, the exact chain as rings. Where theory tells it, the
        leading order c/N as lines, and Erlang's formulas, between which one router lies, as a band.
        Points within their half-width are drawn as upper bounds; where an event was never seen
        there is no point. The fitted exponents of N, or decays per server, stand in the panels.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        places = [
            (here, quantities)
            for here in points(cube, "system", rate_dimension(cube))
            if (quantities := {name for name in options.show if _values(here, name)})
        ]
        shown = [name for name in options.show if any(name in there for _, there in places)]
        if not shown:
            raise ValueError(f"{', '.join(options.show)}: the cube holds no value to draw")
        looks = _looks(cube)
        columns = min(marks.COLUMNS[options.width] + (len(places) == 4), len(places))
        groups = [places[start : start + columns] for start in range(0, len(places), columns)]
        figure, panels = marks.grid(
            len(shown) * len(groups), columns, options.width, 1.55, sharex=True
        )
        used = _Used()
        for nth, (group, quantity) in enumerate((g, q) for g in groups for q in shown):
            kept = marks.without_spare(panels[nth], len(group))
            marks.share_vertical(kept)
            for (here, there), axes in zip(group, kept, strict=True):
                if quantity in there:
                    _draw_panel(axes, here, quantity, looks, options.law, used)
                else:
                    axes.text(
                        0.5, 0.5, "never", transform=axes.transAxes, ha="center", color=marks.GREY
                    )
                if quantity == shown[0]:
                    axes.set_title(_title(here, cube))
            kept[0].set_ylabel(LABELS[quantity])
            if quantity == MESSAGES:
                kept[0].set_ylim(0, 1.05 * max(1.0, _largest(group, cube)))
            else:
                kept[0].set_yscale("log")
                _make_room(kept)
        panels[0][0].set_xscale("log")
        marks.few_numbers(panels[0][0].xaxis)
        for axes in figure.axes:
            axes.tick_params(labelbottom=True)
        figure.supxlabel(style.AXIS_LABELS["n_servers"], fontsize="medium")
        legends.legend(
            figure,
            [legends.entry(look, line=used.line) for look in looks],
            used.entries(),
            options.title,
        )
        figure.align_ylabels()
        return figure


def _make_room(row: np.ndarray) -> None:
    """Let a shared axis reach below all points, and below the text in the corners."""
    from manyserver.figures.drawing import marks

    bottoms = []
    for axes in row:
        if axes.get_lines():
            marks.room_below(axes, len(axes.texts), TEXT_WIDTH)
            bottoms.append(axes.get_ylim()[0])
    row[0].set_ylim(min(bottoms), 3 * max(_highest(axes) for axes in row))


def _highest(axes: "Axes") -> float:
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    return max((float(y.max()) for y in drawn if y.size), default=0.0)


def _values(here: "xr.Dataset", quantity: str) -> bool:
    if quantity not in here:
        return False
    finite = here[quantity].isel(n_servers=np.isfinite(here["n_servers"].values))
    return bool((finite > 0).any())


def _largest(group: list, cube: "xr.Dataset") -> float:
    return max(float(here[MESSAGES].max()) for here, _ in group if MESSAGES in here)


def _looks(cube: "xr.Dataset") -> "list[Look]":
    """Return looks; if all policies are of one family, from dark to light."""
    from manyserver.figures.drawing import style

    own = style.looks(cube)
    if len(set(cube["policy_name"].values)) > 1 or len(own) == 1:
        return own
    steps = style.rate_looks([float(place) for place in range(len(own))], "load")
    return [replace(step, label=look.label) for step, look in zip(steps, own, strict=True)]


def _draw_panel(
    axes: "Axes",
    here: "xr.Dataset",
    quantity: str,
    looks: "list[Look]",
    law: str,
    used: _Used,
) -> None:
    from manyserver.figures.drawing import marks

    lines = []
    for place, look in enumerate(looks):
        curve = here.isel(policy=place)
        simulated, exact = (_curve(curve, quantity, name) for name in (Role.SIMULATION, Role.EXACT))
        seen = simulated.values > simulated.half_widths
        used.simulated |= marks.markers(axes, simulated.at(seen), look)
        used.bounds |= marks.upper_bounds(axes, simulated.at(~seen), look)
        used.exact |= marks.rings(axes, exact)
        if quantity == MESSAGES:
            continue
        expected = theory(curve, quantity)
        x = np.union1d(simulated.x, exact.x)
        if x.size and np.isfinite(expected.coefficient):
            line = Curve(x, expected.coefficient / x, np.zeros(x.size))
            used.line |= marks.theory(axes, line, look)
        if x.size and np.isfinite(expected.decay):
            used.band |= _erlang_band(axes, system_of(curve), quantity, x, look)
        text = _exponent(curve, quantity, expected, law)
        lines += [(text, look)] if text else []
    if lines:
        marks.corner_text(axes, "exponent", lines, left=True)


def _curve(curve: "xr.Dataset", quantity: str, role: Role) -> Curve:
    """Return what was seen by a method, without points at which nothing was."""
    found = series(curve, quantity, role, "")
    if found is None:
        return Curve(np.empty(0), np.empty(0), np.empty(0))
    x, y, errors = found
    spread = np.zeros(x.size) if errors is None else NORMAL_QUANTILE * np.nan_to_num(errors)
    return Curve(x, y, spread).at(y > 0)


def _erlang_band(axes: "Axes", system: System, quantity: str, x: np.ndarray, look: "Look") -> bool:
    """Fill between Erlang's formulas, if one of them must hold; return whether it was."""
    buffers = {pool.buffer for pool in system.pools}
    waits, lost = quantity == WAITING and buffers == {None}, quantity == BLOCKING and buffers == {1}
    if len(set(system.speeds)) > 1 or not (quantity == EMPTY or waits or lost):
        return False
    servers = np.unique(np.linspace(x.min(), x.max(), 100).round()).astype(int)
    offered = system.arrival_rate / float(system.speeds[0])
    low = [erlang_b(int(n), n * offered) for n in servers]
    high = low if buffers == {1} else [erlang_c(int(n), n * offered) for n in servers]
    axes.fill_between(servers, low, high, color=look.colour, alpha=0.25, linewidth=0.7, zorder=1)
    return True


def _exponent(curve: "xr.Dataset", quantity: str, expected: Theory, law: str) -> str:
    """Fit the decay of the method that resolves most points, and write its exponent."""
    if law == "auto" and np.isfinite([expected.decay, expected.exponent]).any():
        law = "exponential" if np.isfinite(expected.decay) else "power"
    found: list[Decay] = []
    for role in (Role.SIMULATION, Role.EXACT):
        data = series(curve, quantity, role, "")
        if data is not None:
            found.append(fit(data, expected, law))
    found = [one for one in found if one.rate.standard_error < LARGEST_ERROR]
    if not found:
        return ""
    best = max(found, key=lambda one: one.rate.n_points)
    text = with_error(best.rate.estimate, best.rate.standard_error)
    text = text.replace("-", "\N{MINUS SIGN}")
    return f"{text} / server" if best.law == "exponential" else f"{text}"


def _title(here: "xr.Dataset", cube: "xr.Dataset") -> str:
    from manyserver.figures.drawing import style

    dimension = rate_dimension(cube)
    parts = [str(here["system"].values)] if cube.sizes["system"] > 1 else []
    if cube.sizes[dimension] > 1 or not parts:
        parts.append(style.rate_label(float(here[dimension]), dimension))
    return ", ".join(parts)
