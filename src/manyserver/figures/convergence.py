"""How finite systems approach the limit: bias and fluctuations against the number of servers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import NORMAL_QUANTILE, method_of, rate_dimension
from manyserver.analysis.rounding import with_error
from manyserver.figures.base import Curve, FigureKind, FigureOptions, chosen, served
from manyserver.fits.convergence import Series
from manyserver.fits.finite_size import bias_series, expected_coefficient
from manyserver.fits.fluctuation import (
    JOBS,
    TAILS,
    deviations,
    expected_variance,
    variances,
)
from manyserver.methods import Role
from manyserver.statistics.rates import Rate, power_law
from manyserver.variables import MeanName

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["ConvergenceFigure", "Options"]

Show = Literal["bias", "fluctuation"]
EXPONENTS = {"bias": -1.0, "fluctuation": -0.5}


class Options(FigureOptions):
    """What is drawn, and how."""

    quantity: MeanName = "sojourn_mean"
    """The variable whose bias is drawn."""
    show: tuple[Show, ...] = Field(default=("bias", "fluctuation"), min_length=1)
    """Rows of panels: the bias, and the standard deviation over time."""
    level: int | None = Field(default=None, ge=1)
    """Level k of the queue tail of the first pool whose fluctuation is drawn; the number of jobs
    per server if left out."""


@dataclass(frozen=True)
class _Drawn:
    """Data of one curve, what theory says of it for all N, and the fitted exponent."""

    simulated: Curve
    exact: Curve
    coefficient: float
    rate: Rate | None

    @property
    def known(self) -> bool:
        """Whether there are any data."""
        return bool(self.simulated.x.size or self.exact.x.size)


class ConvergenceFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "convergence"
    title = (
        "How finite systems approach the limit: bias and fluctuations against the number of "
        "servers."
    )
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as finite systems."""
        lack = study.lacks(Role.SIMULATION, Role.EXACT)
        known = {
            "bias": not study.lacks(Role.LIMIT),
            # Variances of numbers of jobs are not measured where jobs are followed.
            "fluctuation": not study.simulates_jobs
            and not (study.lacks(Role.SIMULATION) and study.lacks(Role.EXACT, moments=True)),
        }
        yield lack
        if not lack and not any(known[show] for show in options.show):
            if "bias" in options.show:
                yield study.lacks(Role.LIMIT)
            elif study.simulates_jobs:
                yield "show: bias, with the key jobs"
            else:
                yield study.lacks(Role.EXACT, moments=True)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one column per system and policy, one curve per arrival rate or load.

        Simulation as markers with half-widths, the exact chain as rings, the leading order of the
        refined mean field, c/N or the square root of V/N, as lines. Points within their half-width
        are drawn as upper bounds. The fitted exponents stand in the panels.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        dimension = rate_dimension(cube)
        finite = cube.isel(n_servers=np.isfinite(cube["n_servers"].values))
        places = list(served(finite, options.quantity))
        if not places:
            raise ValueError(f"{options.quantity}: the cube holds no value at a finite n_servers")
        looks = style.rate_looks([float(rate) for rate in cube[dimension].values], dimension)
        drawn = {
            (place, show): list(_curves(cube.isel(system=place[0], policy=place[1]), show, options))
            for place in places
            for show in options.show
        }
        columns = min(marks.COLUMNS[options.width] + (len(places) == 4), len(places))
        groups = [places[start : start + columns] for start in range(0, len(places), columns)]
        shown = [
            (group, show)
            for group in groups
            for show in options.show
            if any(curve.known for place in group for curve in drawn[place, show])
        ]
        if not shown:
            raise ValueError(f"{' and '.join(options.show)}: the cube holds no value to draw")
        figure, panels = marks.grid(len(shown), columns, options.width, 1.9, sharex=True)
        used = _Used()
        for nth, ((group, show), row) in enumerate(zip(shown, panels, strict=True)):
            kept = marks.without_spare(row, len(group))
            marks.share_vertical(kept)
            for place, axes in zip(group, kept, strict=True):
                _draw_panel(axes, drawn[place, show], show, looks, used)
                if nth == 0 or shown[nth - 1][0] is not group:
                    axes.set_title(_title(cube, *place))
            _finish(kept, show, options)
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


@dataclass
class _Used:
    """Which kinds of marks were drawn."""

    simulated: bool = False
    exact: bool = False
    line: bool = False
    bounds: bool = False

    def entries(self) -> list:
        from manyserver.figures.drawing import legends

        found = legends.method_entries(limit=False, finite=self.simulated)
        found += [legends.exact_entry()] * self.exact
        if self.line:
            found.append(legends.line_entry("refined mean field, leading order"))
        return found + [legends.upper_bound_entry()] * self.bounds


def _draw_panel(
    axes: "Axes", curves: list[_Drawn], show: Show, looks: "list[Look]", used: _Used
) -> None:
    from manyserver.figures.drawing import marks

    lines = []
    for curve, look in zip(curves, looks, strict=True):
        x = curve.simulated.x if curve.simulated.x.size else curve.exact.x
        if np.isfinite(curve.coefficient) and curve.coefficient != 0:
            y = abs(curve.coefficient) * x ** EXPONENTS[show]
            used.line |= marks.theory(axes, Curve(x, y, np.zeros(x.size)), look)
        seen = curve.simulated.values > curve.simulated.half_widths
        used.simulated |= marks.markers(axes, curve.simulated.at(seen), look)
        used.bounds |= marks.upper_bounds(axes, curve.simulated.at(~seen), look)
        used.exact |= marks.rings(axes, curve.exact)
        if curve.rate is not None and np.isfinite(curve.rate.estimate):
            text = with_error(curve.rate.estimate, curve.rate.standard_error)
            lines.append((text.replace("-", "\N{MINUS SIGN}"), look))
    axes.set_xscale("log")
    axes.set_yscale("log")
    if lines:
        marks.corner_text(axes, "slope", lines, left=True)


def _curves(here: "xr.Dataset", show: Show, options: Options) -> Iterator[_Drawn]:
    """Yield what is drawn for every arrival rate."""
    for place in range(here.sizes[rate_dimension(here)]):
        there = here.isel({rate_dimension(here): place})
        found = {}
        for role in (Role.SIMULATION, Role.EXACT):
            series = _series(there, show, options, role)
            found[role] = (np.empty(0), np.empty(0), None) if series is None else series
        x, y, errors = found[Role.SIMULATION]
        yield _Drawn(
            _curve(x, y, errors),
            _curve(*found[Role.EXACT]),
            _coefficient(there, show, options),
            power_law(x, y, errors) if len(x) else None,
        )


def _series(there: "xr.Dataset", show: Show, options: Options, role: Role) -> Series | None:
    if not method_of(there, role):
        return None
    if show == "bias":
        if not method_of(there, Role.LIMIT):
            return None
        return bias_series(there, options.quantity, role, Role.LIMIT)
    at_level, variable = _fluctuation(there, options)
    series = variances(at_level, variable, role)
    return None if series is None else deviations(series)


def _coefficient(there: "xr.Dataset", show: Show, options: Options) -> float:
    if show == "bias":
        return expected_coefficient(there, options.quantity)
    at_level, variable = _fluctuation(there, options)
    return float(np.sqrt(expected_variance(at_level, variable, Role.EXPANSION)))


def _fluctuation(there: "xr.Dataset", options: Options) -> tuple["xr.Dataset", str]:
    if options.level is None:
        return there, JOBS
    if options.level >= there.sizes["level"]:
        raise ValueError(
            f"level = {options.level}: must be below {there.sizes['level']}; no tail is deeper"
        )
    return there.isel(pool=0, level=options.level), TAILS


def _curve(x: np.ndarray, y: np.ndarray, errors: np.ndarray | None) -> Curve:
    half_widths = np.zeros(x.size) if errors is None else NORMAL_QUANTILE * errors
    return Curve(x, np.abs(y), half_widths).known


def _title(cube: "xr.Dataset", system: int, policy: int) -> str:
    from manyserver.figures.drawing import style

    name = style.looks(cube)[policy].label
    return f"{name}\n{cube['system'].values[system]}" if cube.sizes["system"] > 1 else name


def _finish(row: np.ndarray, show: Show, options: Options) -> None:
    from manyserver.figures.drawing import marks, style

    symbol = style.symbol(options.quantity)
    label = f"Bias $|{symbol}_N - {symbol}|$"
    if show == "fluctuation":
        what = "jobs per server" if options.level is None else f"$u_{{{options.level}}}$, pool 0"
        label = f"Standard deviation\nof {what}"
    row[0].set_ylabel(label)
    marks.clip_bars(row)
