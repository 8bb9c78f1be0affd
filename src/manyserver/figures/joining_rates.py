"""Rates at which arrivals join a server with k jobs, in the limit and simulated."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import rate_dimension
from manyserver.figures.base import (
    Curve,
    FigureKind,
    FigureOptions,
    chosen,
    finite_servers,
    heading,
    read,
    slices,
)
from manyserver.methods import Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply

__all__ = ["JoiningRatesFigure", "Options", "rates_of"]

FEWEST_HELD = 1e-9
"""Part of the servers that has k jobs, from which on the rate there is drawn."""


class Options(FigureOptions):
    """What is drawn, and how."""

    n_servers: int | None = None
    """Number of servers of the simulations drawn; the largest if left out."""
    levels: int = Field(default=8, ge=1)
    """Most jobs at a server that are drawn."""


class JoiningRatesFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "joining_rates"
    title = "Rate at which arrivals join a server with k jobs, by pool."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as a simulation or the mean field."""
        yield study.lacks(Role.LIMIT, Role.SIMULATION)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one panel per system, policy and rate: the limit as lines, simulation as markers.

        The limit is (5.1) of arXiv:1502.05786 for Scheme 1 and (5.2) for Scheme 2. All rates follow
        from queue tails, as servers reach and leave each level equally often.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        dimension = rate_dimension(cube)
        n_servers = finite_servers(cube, options.n_servers)
        fixed = ["system", "policy", dimension]
        parts = slices(cube, "queue_tail", *fixed)
        figure, panels = marks.panels(
            len(parts),
            options.width,
            height=2.1,
            x_label=style.AXIS_LABELS["level"],
            y_label="Arrivals per unit of time\nat a server with $k$ jobs",
            sharex=True,
        )
        looks = style.pool_looks([None] * cube.sizes["pool"])
        limit = finite = False
        for here, axes in zip(parts, panels, strict=True):
            for pool, look in enumerate(looks):
                there = here.isel(pool=pool)
                speed = float(there["pool_speed"])
                tail = read(there, "queue_tail", "level", Role.LIMIT, np.inf)
                line = rates_of(tail, speed)
                limit |= marks.joined(axes, line.at(line.x <= options.levels), look)
                tail = read(there, "queue_tail", "level", Role.SIMULATION, n_servers or np.nan)
                drawn = rates_of(tail, speed)
                finite |= marks.ringed_bars(axes, drawn.at(drawn.x <= options.levels), look)
            axes.set_ylim(bottom=0)
            place = heading(here, cube, ["system", dimension])
            axes.set_title(f"{heading(here, cube, ['policy'])}\n{place}")
        marks.whole_numbers(panels[0].xaxis)
        legends.legend(
            figure,
            [legends.entry(look, limit, limit) for look in looks],
            legends.method_entries(limit, finite, n_servers),
            options.title,
        )
        return figure


def rates_of(tail: Curve, speed: float) -> Curve:
    """Return the rate at which a server with k jobs is joined, by the balance of flows.

    Parameters
    ----------
    tail : Curve
        Queue tails of a pool by level, with half-widths.
    speed : float
        Of its servers.

    Returns
    -------
    Curve
        ``speed * (u[k+1] - u[k+2]) / (u[k] - u[k+1])``, where that is larger than its half-width,
        which is that for tails whose errors are as bad together as they can be, and where not next
        to no server has k jobs.
    """
    held = tail.values[:-1] - tail.values[1:]
    errors = tail.half_widths[:-1] + tail.half_widths[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = speed * held[1:] / held[:-1]
        error = rate * (errors[1:] / held[1:] + errors[:-1] / held[:-1])
        known = (held[:-1] > FEWEST_HELD) & (held[1:] >= 0) & ~(error >= rate)
    return Curve(tail.x[: rate.size], rate, np.nan_to_num(error)).at(known)
