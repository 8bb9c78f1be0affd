"""Fits: cube -> table of rates with standard errors.

A kind of fit is a module here with a pydantic model ``Options`` and a function
``rows(cube, options)`` that yields one dictionary per fit; it is found by its file name.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from pydantic import BaseModel

from manyserver.study import discovery
from manyserver.study.fit_row import COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["COLUMNS", "compute", "kinds", "options"]


def kinds() -> tuple[str, ...]:
    """Return the names of all kinds of fits, sorted.

    Examples
    --------
    >>> kinds()
    ('distance', 'finite_size', 'fluctuation', 'propagation_of_chaos', 'tail_growth')
    """
    return discovery.modules(__name__)


def options(kind: str) -> type[BaseModel]:
    """Return the model of a kind's options.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    return _module(kind).Options  # type: ignore[no-any-return]


def compute(
    kind: str, cube: "xr.Dataset", options: BaseModel | Mapping[str, object] | None = None
) -> "pd.DataFrame":
    """Fit what a kind of fit is about, for every curve of a cube.

    Parameters
    ----------
    kind : str
        One of :func:`kinds`.
    cube : xarray.Dataset
        Results of a study, dimensions (method, system, policy, n_servers, arrival_rate or load).
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

    module = _module(kind)
    if not isinstance(options, BaseModel):
        options = module.Options(**(options or {}))
    rows = [{"fit": kind, **row} for row in module.rows(cube, options)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _module(kind: str) -> ModuleType:
    return discovery.load(__name__, kind, "fit")
