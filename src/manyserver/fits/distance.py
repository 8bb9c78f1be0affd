"""How far the law of the number of jobs at a server is from its limit, against N."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import (
    at_limit,
    finite,
    known_levels,
    points,
    rate_dimension,
    required_method,
    select,
    standard_errors,
)
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.row import fit_row
from manyserver.methods import Role
from manyserver.statistics.distances import Distance, kolmogorov, wasserstein
from manyserver.statistics.rates import coefficient, power_law

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = ["DISTANCES", "EXPONENT", "DistanceFit", "Options", "distances"]

EXPONENT = -1.0
"""The tails differ from those of the limit by order 1/N."""
DISTANCES: dict[str, Callable[..., Distance]] = {
    "wasserstein": wasserstein,
    "kolmogorov": kolmogorov,
}


class Options(FitOptions):
    """What to fit."""

    distances: tuple[Literal["wasserstein", "kolmogorov"], ...] = Field(
        default=("wasserstein", "kolmogorov"), min_length=1
    )
    """Distances between laws: Wasserstein-1 and Kolmogorov."""
    method: str | None = None
    """Method of the finite systems; the one that simulates if left out."""
    limit: str | None = None
    """Method of the limit; that of the study if left out."""


class DistanceFit(Fit[Options]):
    """Fit how far the number of jobs at a server is from its limit."""

    name = "distance"
    title = "Distance of the law of the jobs at a server from its limit, against n_servers."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as the limit."""
        yield study.lacks(options.method or Role.SIMULATION, at="finite")
        yield study.lacks(options.limit or Role.LIMIT, at="limit")

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every system, policy, arrival rate, pool and distance.

        One holds the exponent, one the coefficient of 1/N, which the refined mean field predicts.
        """
        chosen = select(cube, system=options.systems, policy=options.policies)
        method = required_method(cube, options.method or Role.SIMULATION)
        limit = required_method(cube, options.limit or Role.LIMIT)
        for curve in points(chosen, "system", "policy", rate_dimension(cube)):
            for pool in range(curve.sizes.get("pool", 0)):
                for name in options.distances:
                    there = curve.isel(pool=pool)
                    series = distances(there, name, method, limit)
                    if series is None:
                        continue
                    for parameter, fit, value in (
                        ("exponent", power_law, EXPONENT),
                        ("coefficient of 1/N", coefficient, _expected(there, name)),
                    ):
                        yield fit_row(
                            curve,
                            fit(*series),
                            method=method,
                            pool=pool,
                            quantity=f"{name} distance to the limit",
                            parameter=parameter,
                            expected=value,
                        )


def distances(
    there: "xr.Dataset", name: str, method: str, limit: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None:
    """Return N, the distances and their standard errors; None if something is missing."""
    here = finite(there, method, "queue_tail")
    in_limit = at_limit(there, limit, "queue_tail")
    if in_limit is None or not here.sizes["n_servers"]:
        return None
    law = known_levels(in_limit.values)
    errors = standard_errors(here, "queue_tail")
    found = []
    for place in range(here.sizes["n_servers"]):
        tail = known_levels(here["queue_tail"].values[place])
        error = 0.0 if errors is None else np.nan_to_num(errors[place, : tail.size])
        found.append(DISTANCES[name](tail, law, error))
    values, spread = np.array(found).T
    servers = np.asarray(here["n_servers"].values)
    return servers, values, None if errors is None else spread


def _expected(there: "xr.Dataset", name: str) -> float:
    """Distance per 1/N by the corrections of the queue tail; NaN if they are not there."""
    if "queue_tail_correction" not in there:
        return np.nan
    known = there["queue_tail_correction"].values.reshape(-1, there.sizes["level"])
    known = known[np.isfinite(known).any(axis=1)]
    return DISTANCES[name](known_levels(known[0]), [0.0])[0] if len(known) else np.nan
