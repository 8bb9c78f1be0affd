"""Variables of NetCDF files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from manyserver.sizes.files.shown import one_of, shown

__all__ = ["read"]


def read(path: Path, where: str, column: object) -> tuple[np.ndarray, Callable[[int], str]]:
    """Read a variable; see :func:`manyserver.sizes.files.read_sizes`.

    What the file says is missing, or was never written, is read as NaN.
    """
    from netCDF4 import Dataset

    with Dataset(path) as file:
        names = [name for name in file.variables if name not in file.dimensions]
        chosen = one_of(where, column, names)
        variable = file[chosen]
        kind = variable.datatype
        numbers = isinstance(kind, np.dtype) and kind.kind in "fiu"
        if not numbers or " since " in str(getattr(variable, "units", "")):
            held = "dates" if numbers else "another type"
            raise ValueError(f"{where}, {shown(chosen)}: holds {held}; must be numbers")
        values = np.ma.asarray(variable[...]).astype(float)
    sizes = np.ma.filled(values, np.nan).ravel()
    return sizes, lambda index: f"{where}, {shown(chosen)}[{index}]"
