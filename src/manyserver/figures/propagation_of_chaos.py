"""How far two servers are from being independent, against the number of servers."""

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from manyserver.analysis.curves import NORMAL_QUANTILE, rate_dimension
from manyserver.analysis.rounding import with_error
from manyserver.figures.base import Curve, FigureKind, FigureOptions, chosen, served
from manyserver.fits.propagation_of_chaos import (
    COVARIANCE,
    dependence,
    expected_dependence,
    pairs,
)
from manyserver.methods import Role
from manyserver.statistics.rates import power_law

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["Options", "PropagationOfChaosFigure"]

LARGEST_DENOMINATOR = 100
"""Speeds are written as ratios."""


class Options(FigureOptions):
    """What is drawn, and how."""


class PropagationOfChaosFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "propagation_of_chaos"
    title = "How far two servers are from being independent, against the number of servers."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as covariances."""
        yield study.lacks(Role.SIMULATION, Role.EXACT, moments=True)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one panel per system, policy and pair of pools, one curve per arrival rate or load.

        Total variation between the joint law of the queues of two servers and the product of their
        laws: simulation as markers with half-widths, the exact chain as rings, the leading order of
        the refined mean field as lines. The fitted exponents stand in the panels.

        Raises
        ------
        ValueError
            If a label is not in the cube, or it holds no covariances.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        places = [
            (system, policy, pair)
            for system, policy in served(cube, COVARIANCE)
            for pair in pairs(cube.isel(system=system))
        ]
        if not places:
            raise ValueError(f"{COVARIANCE}: the cube holds no value to draw")
        dimension = rate_dimension(cube)
        looks = style.rate_looks([float(rate) for rate in cube[dimension].values], dimension)
        figure, panels = marks.panels(
            len(places),
            options.width,
            height=1.9,
            x_label=style.AXIS_LABELS["n_servers"],
            y_label=r"Total variation between joint law and product law, $d_{\mathrm{TV}}$",
            sharex=True,
            sharey=True,
        )
        simulated = exact = line = False
        for (system, policy, pair), axes in zip(places, panels, strict=True):
            here = cube.isel(system=system, policy=policy)
            slopes = []
            for place, look in enumerate(looks):
                there = here.isel({dimension: place})
                line |= _draw_theory(axes, there, pair, look)
                curve, slope = _simulated(there, pair)
                seen = curve.values > curve.half_widths
                simulated |= marks.markers(axes, curve.at(seen), look)
                exact |= marks.rings(axes, _exact(there, pair))
                slopes += [(slope, look)] if slope else []
            axes.set_xscale("log")
            axes.set_yscale("log")
            if slopes:
                marks.corner_text(axes, "slope", slopes, left=True)
            axes.set_title(_title(cube, system, policy, pair))
        marks.clip_bars(panels)
        meanings = legends.method_entries(limit=False, finite=simulated)
        meanings += [legends.exact_entry()] * exact
        meanings += [legends.line_entry("refined mean field, leading order")] * line
        legends.legend(
            figure, [legends.entry(look, line=line) for look in looks], meanings, options.title
        )
        return figure


def _draw_theory(axes: "Axes", there: "xr.Dataset", pair: tuple[int, int], look: "Look") -> bool:
    from manyserver.figures.drawing import marks

    constant = expected_dependence(there, pair, Role.EXPANSION, Role.LIMIT)
    x = there["n_servers"].values
    x = x[np.isfinite(x)]
    return marks.theory(axes, Curve(x, constant / x, np.zeros(x.size)), look)


def _simulated(there: "xr.Dataset", pair: tuple[int, int]) -> tuple[Curve, str]:
    """Return the simulated curve, and its slope as text."""
    series = dependence(there, pair, Role.SIMULATION)
    if series is None:
        return _nothing(), ""
    x, y, errors = series
    rate = power_law(x, y, errors)
    text = ""
    if np.isfinite(rate.estimate):
        text = with_error(rate.estimate, rate.standard_error)
    spread = np.zeros(x.size) if errors is None else NORMAL_QUANTILE * errors
    return Curve(x, y, spread).known, text.replace("-", "\N{MINUS SIGN}")


def _exact(there: "xr.Dataset", pair: tuple[int, int]) -> Curve:
    series = dependence(there, pair, Role.EXACT)
    if series is None:
        return _nothing()
    return Curve(series[0], series[1], np.zeros(series[0].size)).known


def _nothing() -> Curve:
    return Curve(np.empty(0), np.empty(0), np.empty(0))


def _title(cube: "xr.Dataset", system: int, policy: int, pair: tuple[int, int]) -> str:
    from manyserver.figures.drawing import style

    speeds = [
        str(Fraction(float(speed)).limit_denominator(LARGEST_DENOMINATOR))
        for speed in cube["pool_speed"].values[system, list(pair)]
    ]
    name = style.looks(cube)[policy].label
    if np.isfinite(cube["pool_speed"].values[system]).sum() == 1:
        return f"{name}\ntwo servers"
    told = f"two of speed {speeds[0]}" if pair[0] == pair[1] else f"speeds {' and '.join(speeds)}"
    return f"{name}\n{told}"
