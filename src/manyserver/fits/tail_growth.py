"""Doubly exponential growth of ``-log(queue_tail)`` per level, for every pool."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.curves import (
    NORMAL_QUANTILE,
    known_levels,
    points,
    rate_dimension,
    required_methods,
    select,
    system_of,
)
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.row import fit_row
from manyserver.methods import METHOD, Role
from manyserver.policies import policy
from manyserver.statistics.growth import growth_per_level
from manyserver.statistics.rates import Rate
from manyserver.statistics.tail_growth import TailGrowth, tail_growth

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = ["Options", "TailGrowthFit", "expected_growth", "growth"]


class Options(FitOptions):
    """What to fit."""

    methods: tuple[str, ...] | None = None
    """Methods whose tails are fitted; those of the limit if left out."""


class TailGrowthFit(Fit[Options]):
    """Fit how fast the logarithm of the queue tail grows."""

    name = "tail_growth"
    title = "Growth per level of the logarithm of the queue tail."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as the mean field."""
        yield study.lacks(*(options.methods or (Role.LIMIT,)))

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield one row for every pool of every point that has a tail."""
        wanted = {METHOD: required_methods(cube, *(options.methods or (Role.LIMIT,)))}
        chosen = select(cube, system=options.systems, policy=options.policies, **wanted)
        for curve in points(chosen, METHOD, "system", "policy"):
            for point in points(curve, "n_servers", rate_dimension(cube)):
                if not np.isfinite(point["queue_tail"].values).any():
                    continue
                theory = expected_growth(point)
                for pool in range(len(theory.per_level)):
                    rate = growth(point, pool, theory.period[pool])
                    yield fit_row(
                        point,
                        rate,
                        method=str(point[METHOD].values),
                        n_servers=float(point["n_servers"]),
                        pool=pool,
                        quantity="queue_tail",
                        parameter="growth per level",
                        expected=theory.per_level[pool],
                    )


def expected_growth(point: "xr.Dataset") -> TailGrowth:
    """Return what theory says of the tails at one point of a cube."""
    parameters = json.loads(str(point["policy_parameters"].values))
    return tail_growth(system_of(point), policy(str(point["policy_name"].values), **parameters))


def growth(point: "xr.Dataset", pool: int, period: int) -> Rate:
    """Fit the growth per level of one pool at one point of a cube."""
    here = point.isel(pool=pool)
    if "queue_log_tail" in here and np.isfinite(here["queue_log_tail"].values).any():
        return growth_per_level(known_levels(here["queue_log_tail"].values), period=period)
    tail = known_levels(here["queue_tail"].values)
    with np.errstate(divide="ignore"):
        log_tail = np.log(tail)
    name = "queue_tail_half_width"
    if name not in here or np.isnan(here[name].values).all():
        return growth_per_level(log_tail, period=period)
    half_widths = here[name].values[: tail.size]
    errors = np.divide(
        half_widths, NORMAL_QUANTILE * tail, where=tail > 0, out=np.full_like(tail, np.nan)
    )
    return growth_per_level(log_tail, errors, period)
