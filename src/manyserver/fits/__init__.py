"""Fits: cube -> table of rates with standard errors.

A kind of fit is a module here with a pydantic model ``Options`` and two functions:
``rows(cube, options)``, which yields one dictionary per fit, and ``needs(study, options)``, which
yields what a study lacks that it needs (:mod:`manyserver.analysis.supply`). It is found by its file
name. Where a study has several job sizes and disciplines, it gets a cube for each of them, unless
the module says that it compares them, ``ACROSS_JOBS = True``.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from pydantic import BaseModel

from manyserver import discovery
from manyserver.analysis.curves import each_jobs
from manyserver.fits.row import COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["COLUMNS", "FAILED", "compute", "failure", "kinds", "load", "options"]

SUPPORT = ("row",)
FAILED = "failed: "
"""Beginning of the note in the row of a fit that failed."""


def kinds(model: str | None = None) -> tuple[str, ...]:
    """Return the names of all kinds of fits, or of those for a model, sorted.

    Examples
    --------
    >>> kinds("dispatching")
    ('decay', 'distance', 'finite_size', 'fluctuation', 'insensitivity', 'propagation_of_chaos',
     'tail_growth', 'targets')
    """
    return discovery.modules(__name__, SUPPORT, model=model)


def options(kind: str, model: str | None = None) -> type[BaseModel]:
    """Return the model of a kind's options.

    Raises
    ------
    ValueError
        If there is no such kind, or `model` is given and it is for another one.
    """
    return load(kind, model).Options  # type: ignore[no-any-return]


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
        One row per fit, with the columns :data:`COLUMNS`. A fit that the data do not support has
        a NaN estimate, and its note says why.

    Raises
    ------
    ValueError
        If there is no such kind, or an option is unknown or out of its range.
    """
    import pandas as pd

    module = load(kind)
    if not isinstance(options, BaseModel):
        options = module.Options(**(options or {}))
    across = getattr(module, "ACROSS_JOBS", False)
    cubes = [cube] if across else each_jobs(cube, getattr(options, "jobs", None))
    rows = [{"fit": kind, **row} for here in cubes for row in module.rows(here, options)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def failure(kind: str, reason: str) -> "pd.DataFrame":
    """Return the row of a fit that failed."""
    import pandas as pd

    return pd.DataFrame([{"fit": kind, "note": f"{FAILED}{reason}"}], columns=list(COLUMNS))


def load(kind: str, model: str | None = None) -> ModuleType:
    """Return the module of a kind.

    Raises
    ------
    ValueError
        If there is no such kind, or `model` is given and it is for another one.
    """
    return discovery.load(__name__, kind, "fit", SUPPORT, model)
