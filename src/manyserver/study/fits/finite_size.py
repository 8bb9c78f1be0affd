"""How fast a finite system approaches the limit: the exponent of bias against number of servers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from manyserver.statistics.rates import Rate, power_law
from manyserver.study.config import Strict
from manyserver.study.curves import NORMAL_QUANTILE, points, rate_dimension, select

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Options", "bias", "rows"]

EXPECTED = -1.0
"""Bias ~ 1/N, where the joining law is smooth in the tails: all policies that sample."""


class Options(Strict):
    """What to fit."""

    systems: list[str] | None = None
    """Labels of systems; all if left out."""
    policies: list[str] | None = None
    """Labels of policies; all if left out."""
    quantity: Literal["sojourn_mean", "jobs_per_server", "waiting_probability"] = "sojourn_mean"
    """The variable whose bias is fitted."""
    method: str = "simulation"
    """Method of the finite systems."""
    limit: str = "mean_field"
    """Method of the limit."""


def rows(cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
    """Yield one row for every system, policy and arrival rate that has finite points."""
    chosen = select(cube, system=options.systems, policy=options.policies)
    select(cube, method=[options.method, options.limit])
    for curve in points(chosen, "system", "policy", rate_dimension(cube)):
        rate = bias(curve, options.quantity, options.method, options.limit)
        if rate is None:
            continue
        yield {
            "system": str(curve["system"].values),
            "policy": str(curve["policy"].values),
            "method": options.method,
            "n_servers": np.nan,
            "arrival_rate": float(curve["arrival_rate"]),
            "pool": np.nan,
            "quantity": f"{options.quantity} - limit",
            "estimate": rate.estimate,
            "standard_error": rate.standard_error,
            "expected": EXPECTED,
            "window": f"{rate.window[0]:g} to {rate.window[1]:g}",
            "n_points": rate.n_points,
            "excluded": " ".join(f"{servers:g}" for servers in rate.excluded),
            "note": rate.note,
        }


def bias(curve: "xr.Dataset", quantity: str, method: str, limit: str) -> Rate | None:
    """Fit ``quantity(N) - quantity(limit)`` over N; None if one of the two is missing."""
    finite = curve.isel(n_servers=np.isfinite(curve["n_servers"].values)).sel({"method": method})
    values = finite[quantity].values
    there = np.isfinite(values)
    in_limit = (
        curve[quantity].sel({"method": limit, "n_servers": np.inf}) if _has_limit(curve) else None
    )
    if in_limit is None or not np.isfinite(in_limit) or not there.any():
        return None
    errors = None
    if f"{quantity}_half_width" in finite:
        half_widths = finite[f"{quantity}_half_width"].values[there]
        errors = None if np.isnan(half_widths).all() else half_widths / NORMAL_QUANTILE
    servers = finite["n_servers"].values[there]
    return power_law(servers, values[there] - float(in_limit), errors)


def _has_limit(curve: "xr.Dataset") -> bool:
    return bool(np.isinf(curve["n_servers"].values).any())
