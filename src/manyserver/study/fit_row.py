"""Rows of the table of fits."""

from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.statistics.rates import Rate

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["COLUMNS", "fit_row"]

COLUMNS = (
    "fit",
    "system",
    "policy",
    "method",
    "n_servers",
    "arrival_rate",
    "pool",
    "level",
    "quantity",
    "parameter",
    "estimate",
    "standard_error",
    "expected",
    "second_term",
    "window",
    "n_points",
    "excluded",
    "note",
)
"""Columns of the table. `n_servers`, `pool`, `level`, `expected` and `second_term` are empty where
they have no meaning; `window` and `excluded` hold values of what the fit runs over."""


def fit_row(
    curve: "xr.Dataset",
    rate: Rate,
    *,
    method: str,
    quantity: str,
    parameter: str,
    expected: float = np.nan,
    n_servers: float = np.nan,
    pool: int | str | float = np.nan,
    level: float = np.nan,
) -> dict[str, Any]:
    """Write a fit as a row.

    Parameters
    ----------
    curve : xarray.Dataset
        A slice with one system, policy and arrival rate.
    rate : Rate
        The fit.
    method : str
        Method of the data.
    quantity : str
        What was fitted.
    parameter : str
        Which parameter of the law the estimate is.
    expected : float
        What theory says.
    n_servers, pool, level
        Where the quantity was taken.
    """
    return {
        "system": str(curve["system"].values),
        "policy": str(curve["policy"].values),
        "method": method,
        "n_servers": n_servers,
        "arrival_rate": float(curve["arrival_rate"]),
        "pool": pool,
        "level": level,
        "quantity": quantity,
        "parameter": parameter,
        "estimate": rate.estimate,
        "standard_error": rate.standard_error,
        "expected": expected,
        "second_term": rate.second_term,
        "window": f"{rate.window[0]:g} to {rate.window[1]:g}",
        "n_points": rate.n_points,
        "excluded": " ".join(f"{value:g}" for value in rate.excluded),
        "note": rate.note,
    }
