"""How fast a finite system approaches the limit: bias against number of servers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from manyserver.analysis.curves import (
    at_limit,
    finite,
    points,
    rate_dimension,
    required_method,
    select,
    standard_errors,
)
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.row import fit_row
from manyserver.methods import Role
from manyserver.statistics.rates import Rate, coefficient, power_law

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = ["EXPONENT", "FiniteSizeFit", "Options", "bias", "bias_series", "expected_coefficient"]

EXPONENT = -1.0
"""Bias ~ 1/N, where the joining law is smooth in the tails: all policies that sample."""


class Options(FitOptions):
    """What to fit."""

    quantity: Literal["sojourn_mean", "jobs_per_server", "waiting_probability"] = "sojourn_mean"
    """The variable whose bias is fitted."""
    method: str | None = None
    """Method of the finite systems; the one that simulates if left out."""
    limit: str | None = None
    """Method of the limit; that of the study if left out."""


class FiniteSizeFit(Fit[Options]):
    """Fit how finite systems approach the limit."""

    name = "finite_size"
    title = "How finite systems approach the limit: bias against n_servers."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as the limit."""
        yield study.lacks(options.method or Role.SIMULATION, at="finite")
        yield study.lacks(options.limit or Role.LIMIT, at="limit")

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every system, policy and arrival rate that has finite points.

        One holds the exponent of the bias, one the coefficient of 1/N, which the refined mean field
        predicts.
        """
        chosen = select(cube, system=options.systems, policy=options.policies)
        method = required_method(cube, options.method or Role.SIMULATION)
        limit = required_method(cube, options.limit or Role.LIMIT)
        for curve in points(chosen, "system", "policy", rate_dimension(cube)):
            series = bias_series(curve, options.quantity, method, limit)
            if series is None:
                continue
            expected = expected_coefficient(curve, options.quantity)
            for parameter, fit, value in (
                ("exponent", power_law, EXPONENT),
                ("coefficient of 1/N", coefficient, expected),
            ):
                yield fit_row(
                    curve,
                    fit(*series),
                    method=method,
                    quantity=f"{options.quantity} - limit",
                    parameter=parameter,
                    expected=value,
                )


def bias(curve: "xr.Dataset", quantity: str, method: str, limit: str) -> Rate | None:
    """Fit the exponent of the bias over N; None if one of the two methods has no values."""
    series = bias_series(curve, quantity, method, limit)
    return None if series is None else power_law(*series)


def bias_series(
    curve: "xr.Dataset", quantity: str, method: str, limit: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None:
    """Return N, ``quantity(N) - quantity(limit)`` and its standard errors; None if missing."""
    here = finite(curve, method, quantity)
    in_limit = at_limit(curve, limit, quantity)
    if in_limit is None or not here.sizes["n_servers"]:
        return None
    servers = np.asarray(here["n_servers"].values)
    values = np.asarray(here[quantity].values) - float(in_limit)
    return servers, values, standard_errors(here, quantity)


def expected_coefficient(curve: "xr.Dataset", quantity: str) -> float:
    """Return the coefficient of 1/N that the refined mean field gives; NaN if it is not there."""
    name = f"{quantity}_correction"
    if name not in curve:
        return np.nan
    known = curve[name].values
    known = known[np.isfinite(known)]
    return float(known[0]) if known.size else np.nan
