"""Queue tails of every pool, on the scale on which doubly exponential decay is a straight line."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import method_of, rate_dimension
from manyserver.analysis.rounding import with_error
from manyserver.figures.base import (
    Curve,
    FigureKind,
    FigureOptions,
    chosen,
    finite_servers,
    read,
    slices,
)
from manyserver.fits.tail_growth import expected_growth, growth
from manyserver.methods import METHOD, Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["Options", "QueueTailsFigure"]


Y_LABEL = r"$-\log$ of the fraction of servers" "\n" r"with at least $k$ jobs"


class Options(FigureOptions):
    """What is drawn, and how."""

    n_servers: int | None = None
    """Number of servers of the simulations drawn; the largest if left out."""
    levels: int = Field(default=20, ge=2)
    """Deepest level drawn."""
    fit: bool = True
    """Whether to write the fitted growth per level beside each pool."""


class QueueTailsFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "queue_tails"
    title = (
        "Queue tails of every pool, on the scale on which doubly exponential decay is a "
        "straight line."
    )
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as a simulation or the mean field."""
        yield study.lacks(Role.LIMIT, Role.SIMULATION)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw ``-log(queue_tail)`` against the level, one panel per system, policy and rate.

        Mean field as lines, simulation as markers; a simulated level counts when its half-width is
        smaller than its value. The growth per level is fitted to the mean field; beside it stands
        the number of servers that an arrival looks at, which arXiv:1502.05786 has as the rate.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is no tail to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        dimension = rate_dimension(cube)
        n_servers = finite_servers(cube, options.n_servers)
        parts = slices(cube, "queue_tail", "system", "policy", dimension)
        figure, panels = marks.panels(
            len(parts),
            options.width,
            height=2.1,
            x_label=style.AXIS_LABELS["level"],
            y_label=Y_LABEL,
            sharex=True,
            sharey=True,
        )
        looks = style.pool_looks(_speeds(cube))
        limit = finite = False
        for here, axes in zip(parts, panels, strict=True):
            for pool, look in enumerate(looks):
                there = here.isel(pool=pool, level=slice(options.levels + 1))
                line, simulated, bars = _curves(there, n_servers)
                limit |= marks.theory(axes, line, look)
                finite |= marks.markers(axes, simulated, look, bars)
            if options.fit:
                _write_growth(axes, here, looks)
            axes.set_title(_title(here, cube))
        panels[0].set_yscale("log")
        marks.whole_numbers(panels[0].xaxis)
        legends.legend(
            figure,
            [legends.entry(look, limit, finite) for look in looks],
            legends.method_entries(limit, finite, n_servers),
            options.title,
        )
        return figure


def _curves(here: "xr.Dataset", n_servers: float | None) -> tuple[Curve, Curve, np.ndarray]:
    """Return ``-log(queue_tail)`` in the limit, and as simulated with its bars."""
    log_tail = read(here, "queue_log_tail", "level", Role.LIMIT, np.inf)
    tail = read(here, "queue_tail", "level", Role.SIMULATION, n_servers or np.nan)
    tail = tail.at((tail.x > 0) & (tail.values > tail.half_widths))
    simulated = Curve(tail.x, -np.log(tail.values), np.zeros(tail.x.size))
    relative = tail.half_widths / tail.values
    bars = np.stack([np.log1p(relative), -np.log1p(-relative)])
    return (
        Curve(log_tail.x, -log_tail.values, log_tail.half_widths).at(log_tail.x > 0),
        simulated,
        bars,
    )


def _write_growth(axes: "Axes", here: "xr.Dataset", looks: "list[Look]") -> None:
    from manyserver.figures.drawing import marks

    limit = method_of(here, Role.LIMIT)
    if not limit or np.inf not in here["n_servers"].values:
        return
    point = here.sel({METHOD: limit, "n_servers": np.inf})
    periods = expected_growth(point).period
    lines = []
    for pool, (period, look) in enumerate(zip(periods, looks, strict=False)):
        rate = growth(point, pool, period)
        if np.isfinite(rate.estimate):
            lines.append((with_error(rate.estimate, rate.standard_error), look))
    if lines:
        told = json.loads(str(point["policy_parameters"].values)).get("d")
        looked = int(np.sum(told)) if told else 0
        heading = rf"growth, $\sum d = {looked}$" if looked else "growth per level"
        marks.corner_text(axes, heading, lines)


def _title(here: "xr.Dataset", cube: "xr.Dataset") -> str:
    from manyserver.figures.drawing import style

    dimension = rate_dimension(cube)
    place = int(np.flatnonzero(cube["policy"].values == here["policy"].values)[0])
    parts = [style.looks(cube)[place].label]
    if cube.sizes["system"] > 1:
        parts.append(str(here["system"].values))
    if cube.sizes[dimension] > 1:
        parts.append(style.rate_label(float(here[dimension]), dimension))
    return ", ".join(parts)


def _speeds(cube: "xr.Dataset") -> list[float | None]:
    """Return the speed of every pool where it is the same in all systems."""
    speeds = cube["pool_speed"].values
    same = np.isclose(speeds, speeds[:1], equal_nan=False).all(axis=0)
    return [float(speed) if one else None for speed, one in zip(speeds[0], same, strict=True)]
