"""Percentiles of the sojourn time against load, all policies against each other."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import rate_dimension, select
from manyserver.figures.base import FigureKind, FigureOptions, chosen, finite_servers, read, served
from manyserver.fits.targets import lacks_percentiles
from manyserver.methods import Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply

__all__ = ["Options", "PercentilesFigure"]

QUANTITY = "sojourn_quantile"
LABEL = "Percentile of the sojourn time, $S_q$\n(mean job size / speed 1)"


class Options(FigureOptions):
    """What is drawn, and how."""

    quantiles: list[float] | None = Field(default=None, min_length=1)
    """Quantiles that are drawn, of 0.5, 0.9, 0.99 and 0.999; all if left out."""
    n_servers: int | None = None
    """Number of servers of the simulations drawn; the largest if left out."""


class PercentilesFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "percentiles"
    title = "Percentiles of the sojourn time against load, all policies against each other."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as job sizes."""
        yield study.lacks_jobs() or lacks_percentiles(study)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one row per system and job sizes, one column per quantile, one curve per policy.

        Simulation as markers with half-widths; the limit of many servers as lines, where the law of
        the sojourn time is known.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        if QUANTITY not in cube:
            raise ValueError(
                f"{QUANTITY}: the cube holds no value to draw; the study needs a key jobs"
            )
        cube = select(cube, quantile=options.quantiles)
        places = list(served(cube, QUANTITY))
        if not places:
            raise ValueError(f"{QUANTITY}: the cube holds no value to draw")
        dimension, looks = rate_dimension(cube), style.looks(cube)
        n_servers = finite_servers(cube, options.n_servers)
        systems = sorted({system for system, _ in places})
        columns = min(cube.sizes["quantile"], 4 if options.width == "page" else 2)
        quantiles = np.arange(cube.sizes["quantile"])
        rows = [
            (system, quantiles[start : start + columns])
            for system in systems
            for start in range(0, len(quantiles), columns)
        ]
        figure, panels = marks.grid(len(rows), columns, options.width, 1.7, sharex=True)
        limit = finite = False
        for nth, (row, (system, shown)) in enumerate(zip(panels, rows, strict=True)):
            if len(systems) > 1:
                row[0].set_ylabel(str(cube["system"].values[system]))
            for axes, place in zip(marks.without_spare(row, len(shown)), shown, strict=True):
                for policy, look in enumerate(looks):
                    here = cube.isel(system=system, policy=policy, quantile=place)
                    line = read(here, QUANTITY, dimension, Role.LIMIT, np.inf)
                    simulated = read(
                        here, QUANTITY, dimension, Role.SIMULATION, n_servers or np.nan
                    )
                    limit |= marks.theory(axes, line, look)
                    finite |= marks.markers(axes, simulated, look)
                axes.set_yscale("log")
                marks.few_numbers(axes.yaxis)
                if nth < len(rows) // len(systems):
                    axes.set_title(f"$q = {cube['quantile'].values[place]:g}$")
                axes.tick_params(labelbottom=True)
        figure.supxlabel(style.AXIS_LABELS[dimension], fontsize="medium")
        figure.supylabel(LABEL, fontsize="medium")
        legends.legend(
            figure,
            [legends.entry(look, limit, finite) for look in looks],
            legends.method_entries(limit, finite, n_servers),
            options.title,
        )
        return figure
