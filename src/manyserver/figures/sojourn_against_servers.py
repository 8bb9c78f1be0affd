"""Mean sojourn time against the number of servers, and how it approaches the limit."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from manyserver.analysis.curves import rate_dimension
from manyserver.figures.base import Curve, FigureKind, FigureOptions, chosen, read, served
from manyserver.methods import Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["Options", "SojournAgainstServersFigure"]


class Options(FigureOptions):
    """What is drawn, and how."""

    quantity: Literal["sojourn_mean", "jobs_per_server", "waiting_probability"] = "sojourn_mean"
    """The variable on the vertical axis."""
    deviation: bool = True
    """Whether to add panels with the relative deviation from the limit."""
    scale: Literal["linear", "log"] = "linear"
    """Scale of the vertical axis of the values."""


class SojournAgainstServersFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "sojourn_against_servers"
    title = "Mean sojourn time against the number of servers, and how it approaches the limit."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as a simulation."""
        yield study.lacks(Role.SIMULATION)
        if options.deviation:
            lack = study.lacks(Role.LIMIT)
            yield lack and f"deviation: false, or {lack}"

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw simulation as markers and the limit as lines, one column per system and policy.

        The panels below show the relative deviation from the limit, with a line of slope -1. A
        deviation within its half-width is drawn as an upper bound.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        finite = cube.isel(n_servers=np.isfinite(cube["n_servers"].values))
        places = list(served(finite, options.quantity))
        if not places:
            raise ValueError(f"{options.quantity}: the cube holds no value at a finite n_servers")
        dimension = rate_dimension(cube)
        looks = style.rate_looks([float(rate) for rate in cube[dimension].values], dimension)
        columns = min(marks.COLUMNS[options.width], len(places))
        kinds = 1 + options.deviation
        figure, grid = marks.grid(
            rows=kinds * math.ceil(len(places) / columns),
            columns=columns,
            width=options.width,
            height=1.9,
            sharex=True,
        )
        # Values and deviations of one policy stand below each other: shape (policy, kind of panel).
        panels = grid.reshape(-1, kinds, columns).swapaxes(1, 2).reshape(-1, kinds)
        panels = marks.without_spare(panels, len(places))
        rows = [
            row for start in range(0, len(panels), columns) for row in panels[start:][:columns].T
        ]
        for row in rows:
            marks.share_vertical(row)
        several_systems = len({system for system, _ in places}) > 1
        bounds = limits = False
        for (system, policy), column in zip(places, panels, strict=True):
            here = cube.isel(system=system, policy=policy)
            for place, look in enumerate(looks):
                curve, limit = _curve(here.isel({dimension: place}), options.quantity)
                marks.markers(column[0], curve, look)
                if np.isfinite(limit):
                    limits = True
                    marks.level(column[0], limit, look)
                    if options.deviation:
                        bounds |= _draw_deviation(column[1], curve, limit, look)
            name = f"{here['system'].values}: " if several_systems else ""
            column[0].set_title(f"{name}{style.looks(cube)[policy].label}")
        _finish(rows[::kinds], rows[1::kinds] if options.deviation else [], options)
        for axes in panels[-columns:, -1]:
            axes.set_xlabel(style.AXIS_LABELS["n_servers"])
            axes.tick_params(labelbottom=True)
        meanings = legends.method_entries(limit=limits, finite=True)
        meanings += [legends.slope_entry(-1)] * options.deviation + [
            legends.upper_bound_entry()
        ] * bounds
        curves = [legends.entry(look, line=limits) for look in looks]
        legends.legend(figure, curves, meanings, options.title)
        figure.align_ylabels(panels[::columns].flat)
        return figure


def _curve(here: "xr.Dataset", quantity: str) -> tuple[Curve, float]:
    finite = here.isel(n_servers=np.isfinite(here["n_servers"].values))
    limit = read(here, quantity, "n_servers", Role.LIMIT)
    at_limit = limit.values[np.isinf(limit.x)]
    return (
        read(finite, quantity, "n_servers", Role.SIMULATION).known,
        float(at_limit[0]) if at_limit.size else np.nan,
    )


def _draw_deviation(axes: "Axes", curve: Curve, limit: float, look: "Look") -> bool:
    """Draw the relative deviation; return whether some of it is drawn as bounds."""
    from manyserver.figures.drawing import marks

    deviation = Curve(curve.x, np.abs(curve.values / limit - 1), curve.half_widths / abs(limit))
    seen = deviation.values > deviation.half_widths
    marks.markers(axes, deviation.at(seen), look)
    return marks.upper_bounds(axes, deviation.at(~seen), look)


def _finish(values: list[np.ndarray], deviations: list[np.ndarray], options: Options) -> None:
    from manyserver.figures.drawing import marks, style

    values[0][0].set_xscale("log")
    for first, *_ in values:
        first.set_yscale(options.scale)
        if options.scale == "log":
            marks.plain_numbers(first)
        first.set_ylabel(style.variable_label(options.quantity))
    for row in deviations:
        row[0].set_yscale("log")
        row[0].set_ylabel("Relative deviation\nfrom the limit")
        for axes in row:
            marks.slope_guide(axes, -1)
        marks.clip_bars(row)
