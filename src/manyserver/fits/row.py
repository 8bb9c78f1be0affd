"""Rows of the table of fits."""

from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.statistics.rates import Rate
from manyserver.study import models

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["columns", "fit_row", "places"]

VALUES = (
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


def columns(*axes: str) -> list[str]:
    """Return the columns of a table of fits to a cube with some axes.

    A column is empty where it has no meaning; `window` and `excluded` hold values of what the fit
    runs over.
    """
    return ["fit", *axes, "method", "n_servers", *VALUES]


def places(cube: "xr.Dataset") -> dict[str, Any]:
    """Return the coordinates of a cube that say which curve was fitted, by name."""
    known = [name for name in models.axes() if name in cube.coords]
    own = [str(name) for name in cube.coords if "exact" in cube[name].attrs]
    return {name: cube[name].values for name in (*known, *own)}


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
        A slice with one label left of each of its :func:`places`.
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
        **{name: values.item() for name, values in places(curve).items() if values.size == 1},
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
