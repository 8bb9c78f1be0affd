"""Rows of the table of fits."""

from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.statistics.rates import Rate
from manyserver.study.config.base import Strict

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["COLUMNS", "FitOptions", "fit_row"]

COLUMNS = (
    "fit",
    "system",
    "policy",
    "jobs",
    "method",
    "n_servers",
    "arrival_rate",
    "load",
    "beta",
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
"""Columns of the table. A column is empty where it has no meaning; `window` and `excluded` hold
values of what the fit runs over."""
PLACES = ("system", "policy", "jobs", "arrival_rate", "load", "beta")
"""Columns that say which curve of the cube was fitted."""


class FitOptions(Strict):
    """Options that every kind of fit of dispatching policies has."""

    systems: list[str] | None = None
    """Labels of systems; all if left out."""
    policies: list[str] | None = None
    """Labels of policies; all if left out."""
    jobs: list[str] | None = None
    """Labels of job sizes and disciplines; all if left out."""


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
        A slice with one label left of each of :data:`PLACES` that the cube has.
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
        **{name: curve[name].values.item() for name in PLACES if name in curve.coords},
        "method": method,
        "n_servers": n_servers,
        "pool": pool,
        "level": level,
        "quantity": quantity,
        "parameter": parameter,
        "estimate": rate.estimate,
        # What is not known has no error.
        "standard_error": rate.standard_error if np.isfinite(rate.estimate) else np.nan,
        "expected": expected,
        "second_term": rate.second_term,
        "window": f"{rate.window[0]:g} to {rate.window[1]:g}" if rate.n_points else "",
        "n_points": rate.n_points,
        "excluded": " ".join(f"{value:g}" for value in rate.excluded),
        "note": rate.note,
    }
