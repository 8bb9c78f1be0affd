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
    select,
    standard_errors,
)
from manyserver.fits.base import FitOptions
from manyserver.fits.convergence import (
    ConvergenceFit,
    ConvergenceOptions,
    Series,
    rows_of_order,
)
from manyserver.statistics.distances import Distance, kolmogorov, wasserstein

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DISTANCES", "EXPONENT", "DistanceFit", "Options", "distances"]

EXPONENT = -1.0
"""The tails differ from those of the limit by order 1/N."""
DISTANCES: dict[str, Callable[..., Distance]] = {
    "wasserstein": wasserstein,
    "kolmogorov": kolmogorov,
}


class Options(FitOptions, ConvergenceOptions):
    """What to fit."""

    distances: tuple[Literal["wasserstein", "kolmogorov"], ...] = Field(
        default=("wasserstein", "kolmogorov"), min_length=1
    )
    """Distances between laws: Wasserstein-1 and Kolmogorov."""


class DistanceFit(ConvergenceFit[Options]):
    """Fit how far the number of jobs at a server is from its limit."""

    name = "distance"
    title = "Distance of the law of the jobs at a server from its limit, against n_servers."
    options_class = Options

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every system, policy, arrival rate, pool and distance.

        One holds the exponent, one the coefficient of 1/N, which the refined mean field predicts.
        """
        chosen = select(cube, system=options.systems, policy=options.policies)
        method, limit = self.compared(cube, options)
        for curve in points(chosen, "system", "policy", rate_dimension(cube)):
            for pool in range(curve.sizes.get("pool", 0)):
                for name in options.distances:
                    there = curve.isel(pool=pool)
                    series = distances(there, name, method, limit)
                    if series is None:
                        continue
                    yield from rows_of_order(
                        curve,
                        series,
                        EXPONENT,
                        _expected(there, name),
                        method=method,
                        pool=pool,
                        quantity=f"{name} distance to the limit",
                    )


def distances(there: "xr.Dataset", name: str, method: str, limit: str) -> Series | None:
    """Return N, the distances and their standard errors; None if something is missing.

    A distance has a sign, so that a fit sees if the bias behind it changes its own: positive at the
    largest N, and negative where most of the difference is on the other side.
    """
    here = finite(there, method, "queue_tail")
    in_limit = at_limit(there, limit, "queue_tail")
    if in_limit is None or not here.sizes["n_servers"]:
        return None
    law = known_levels(in_limit.values)
    errors = standard_errors(here, "queue_tail")
    found, signs = [], []
    for place in range(here.sizes["n_servers"]):
        tail = known_levels(here["queue_tail"].values[place])
        error = 0.0 if errors is None else np.nan_to_num(errors[place, : tail.size])
        found.append(DISTANCES[name](tail, law, error))
        size = max(tail.size, law.size)
        apart = np.pad(tail, (0, size - tail.size)) - np.pad(law, (0, size - law.size))
        side = apart.sum() if name == "wasserstein" else apart[np.argmax(np.abs(apart))]
        signs.append(-1.0 if side < 0 else 1.0)
    values, spread = np.array(found).T
    servers = np.asarray(here["n_servers"].values)
    signed = values * np.array(signs) * signs[np.argmax(servers)]
    return servers, signed, None if errors is None else spread


def _expected(there: "xr.Dataset", name: str) -> float:
    """Distance per 1/N by the corrections of the queue tail; NaN if they are not there."""
    if "queue_tail_correction" not in there:
        return np.nan
    known = there["queue_tail_correction"].values.reshape(-1, there.sizes["level"])
    known = known[np.isfinite(known).any(axis=1)]
    return DISTANCES[name](known_levels(known[0]), [0.0])[0] if len(known) else np.nan
