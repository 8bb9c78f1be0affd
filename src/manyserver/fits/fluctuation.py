"""How much finite systems fluctuate: standard deviation over time against number of servers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import (
    finite,
    method_of,
    points,
    rate_dimension,
    required_method,
    select,
    standard_errors,
)
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.convergence import Series
from manyserver.fits.row import fit_row
from manyserver.methods import METHOD, Role
from manyserver.statistics.rates import coefficient, power_law

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = ["EXPONENT", "FluctuationFit", "Options", "deviations", "expected_variance"]

EXPONENT = -0.5
"""The central limit theorem."""
TAILS, JOBS = "queue_tail_variance", "jobs_per_server_variance"
"""N times the variance of a queue tail, and of the number of jobs per server."""


class Options(FitOptions):
    """What to fit."""

    levels: tuple[int, ...] = Field(default=(1, 2), min_length=1)
    """Levels k of the queue tails, the fractions of servers with at least k jobs."""
    method: str | None = None
    """Method of the finite systems; the one that simulates if left out."""
    refined: str | None = None
    """Method that predicts the variance; the one that expands the limit if left out."""


class FluctuationFit(Fit[Options]):
    """Fit how much finite systems fluctuate."""

    name = "fluctuation"
    title = "Standard deviation over time, of queue tails and jobs per server, against n_servers."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as finite systems."""
        if study.simulates_jobs:
            yield "a study without the key jobs, for which no variances are predicted"
        more = {"moments": True} if options.method in study.names(Role.EXACT) else {}
        yield study.lacks(options.method or Role.SIMULATION, at="finite", **more)

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every curve: queue tails by pool and level, and jobs per server.

        One holds the exponent of the standard deviation, one the coefficient of 1/N in the
        variance, which the refined mean field predicts.
        """
        chosen = select(cube, system=options.systems, policy=options.policies)
        method = required_method(cube, options.method or Role.SIMULATION)
        for curve in points(chosen, "system", "policy", rate_dimension(cube)):
            places: list[dict[str, int]] = [{}]
            if TAILS in curve:
                levels = [level for level in options.levels if level < curve.sizes["level"]]
                places += [
                    {"pool": pool, "level": level}
                    for pool in range(curve.sizes["pool"])
                    for level in levels
                ]
            for place in places:
                variable = TAILS if place else JOBS
                there = curve.isel(place)
                series = variances(there, variable, method)
                if series is None:
                    continue
                servers, variance, errors = series
                told: dict[str, Any] = {**place, "method": method}
                yield fit_row(
                    curve,
                    power_law(*deviations(series)),
                    quantity=f"standard deviation of {variable.removesuffix('_variance')}",
                    parameter="exponent",
                    expected=EXPONENT,
                    **told,
                )
                yield fit_row(
                    curve,
                    coefficient(servers, variance, errors),
                    quantity=f"variance of {variable.removesuffix('_variance')}",
                    parameter="coefficient of 1/N",
                    expected=expected_variance(there, variable, options.refined or Role.EXPANSION),
                    **told,
                )


def variances(there: "xr.Dataset", variable: str, method: str | Role) -> Series | None:
    """Return N, the variance and its standard errors; None if there are none."""
    here = finite(there, method, variable)
    if not here.sizes["n_servers"]:
        return None
    servers = np.asarray(here["n_servers"].values)
    errors = standard_errors(here, variable)
    scaled = None if errors is None else errors / servers
    return servers, np.asarray(here[variable].values) / servers, scaled


def deviations(series: Series) -> Series:
    """Return N and the standard deviation with its errors, from those of the variance."""
    servers, variance, errors = series
    deviation = np.sqrt(np.maximum(variance, 0.0))
    if errors is not None:
        errors = np.divide(
            errors, 2 * deviation, out=np.full_like(errors, np.nan), where=deviation > 0
        )
    return servers, deviation, errors


def expected_variance(there: "xr.Dataset", variable: str, refined: str | Role) -> float:
    """Return N times the variance in the limit of many servers; NaN if it is not there."""
    predicts = method_of(there, refined)
    if not predicts or variable not in there:
        return np.nan
    known = there[variable].sel({METHOD: predicts}).values
    known = known[np.isfinite(known)]
    return float(known[0]) if known.size else np.nan
