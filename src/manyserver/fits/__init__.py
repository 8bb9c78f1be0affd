"""Fits: cube -> table of rates with standard errors.

A kind of fit is a :class:`~manyserver.fits.base.Fit` in a module here, or an entry point of the
group ``manyserver.fits`` in any other package; :mod:`manyserver.registry` finds it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from manyserver.analysis.axes import own_axes
from manyserver.analysis.curves import each_jobs, points
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.row import columns, fit_row, places
from manyserver.registry import ModelRegistry

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["FAILED", "Fit", "FitOptions", "compute", "failure", "fit_row", "kinds", "load"]

FAILED = "failed: "
"""Beginning of the note in the row of a fit that failed."""

REGISTRY: ModelRegistry[Fit[Any]] = ModelRegistry("fit", Fit, __name__, key="kind")
kinds, load = REGISTRY.names, REGISTRY.get


def compute(
    kind: str, cube: "xr.Dataset", options: BaseModel | Mapping[str, object] | None = None
) -> "pd.DataFrame":
    """Fit what a kind of fit is about, for every curve of a cube.

    Parameters
    ----------
    kind : str
        One of :func:`kinds`.
    cube : xarray.Dataset
        Results of a study: the dimensions method and the axes of its model.
    options : pydantic model or mapping, optional
        Options of this kind; the defaults if left out.

    Returns
    -------
    pandas.DataFrame
        One row per fit, with the :func:`~manyserver.fits.row.columns` of the cube. A fit that the
        data do not support has a NaN estimate, and its note says why.

    Raises
    ------
    ValueError
        If there is no such kind, or an option is unknown or out of its range.
    """
    import pandas as pd

    fit = load(kind)
    options = fit.checked_options(options)
    cubes = [cube] if fit.across_jobs else each_jobs(cube, getattr(options, "jobs", None))
    own = () if fit.across_axes else own_axes(cube)
    slices = [part for here in cubes for part in points(here, *own)]
    rows = [{"fit": kind, **row} for here in slices for row in fit.rows(here, options)]
    return pd.DataFrame(rows, columns=columns(*places(cube)))


def failure(kind: str, reason: str) -> "pd.DataFrame":
    """Return the row of a fit that failed."""
    import pandas as pd

    return pd.DataFrame([{"fit": kind, "note": f"{FAILED}{reason}"}], columns=columns())
