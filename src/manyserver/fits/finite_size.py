"""How fast a finite system approaches the limit: bias against number of servers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.curves import (
    at_limit,
    finite,
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
from manyserver.methods import Role
from manyserver.statistics.rates import Rate, power_law
from manyserver.variables import MeanName

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["EXPONENT", "FiniteSizeFit", "Options", "bias", "bias_series", "expected_coefficient"]

EXPONENT = -1.0
"""Bias ~ 1/N, where the joining law is smooth in the tails: all policies that sample."""


class Options(FitOptions, ConvergenceOptions):
    """What to fit."""

    quantity: MeanName = "sojourn_mean"
    """The variable whose bias is fitted."""


class FiniteSizeFit(ConvergenceFit[Options]):
    """Fit how finite systems approach the limit."""

    name = "finite_size"
    title = "How finite systems approach the limit: bias against n_servers."
    options_class = Options

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every system, policy and arrival rate that has finite points.

        One holds the exponent of the bias, one the coefficient of 1/N, which the refined mean field
        predicts.
        """
        chosen = select(cube, system=options.systems, policy=options.policies)
        method, limit = self.compared(cube, options)
        for curve in points(chosen, "system", "policy", rate_dimension(cube)):
            series = bias_series(curve, options.quantity, method, limit)
            if series is None:
                continue
            yield from rows_of_order(
                curve,
                series,
                EXPONENT,
                expected_coefficient(curve, options.quantity),
                method=method,
                quantity=f"{options.quantity} - limit",
            )


def bias(curve: "xr.Dataset", quantity: str, method: str, limit: str) -> Rate | None:
    """Fit the exponent of the bias over N; None if one of the two methods has no values."""
    series = bias_series(curve, quantity, method, limit)
    return None if series is None else power_law(*series)


def bias_series(
    curve: "xr.Dataset", quantity: str, method: str | Role, limit: str | Role
) -> Series | None:
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
