"""Files of measured sizes, told apart by what they hold, not by their names."""

import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from manyserver.sizes.files import netcdf, parquet, text
from manyserver.sizes.files.shown import shown

__all__ = ["read_sizes"]

FORMATS = {b"CDF": netcdf.read, b"\x89HDF\r\n\x1a\n": netcdf.read, b"PAR1": parquet.read}
"""How binary files begin that can be read; all others must be text, perhaps compressed."""


def read_sizes(
    file: str,
    column: str | int | None = None,
    separator: str | None = None,
    decimal: str | None = None,
) -> tuple[np.ndarray, Callable[[int], str]]:
    """Read one column of a file.

    Parameters
    ----------
    file : str
        Path of a text file, as :mod:`manyserver.sizes.files.text` says, a Parquet file, or a
        NetCDF file.
    column : str or int, optional
        Name of the column, or of the variable of a NetCDF file; can be left out if there is one.
        Columns of text can be told by number, from one on.
    separator, decimal : str, optional
        What separates columns of text, and the decimal mark.

    Returns
    -------
    sizes : numpy.ndarray, shape (size,)
        May be negative or not finite.
    place : callable
        Says where the size of an index stands, for messages.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it cannot be read, or not in one way only.
    """
    path, where = Path(file), shown(file)
    if not path.exists():
        raise FileNotFoundError(f"file = {file!r}: there is no such file")
    if not path.is_file():
        kind = "a directory" if path.is_dir() else "a device or a pipe"
        raise ValueError(f"file = {file!r}: is {kind}; must be a file")
    if not path.stat().st_size:
        raise ValueError(f"{where}: is empty; must hold at least one size")
    try:
        with path.open("rb") as stream:
            head = stream.read(max(map(len, FORMATS)))
        for start, read in FORMATS.items():
            if head.startswith(start):
                for name, value in {"separator": separator, "decimal": decimal}.items():
                    if value is not None:
                        raise ValueError(f"{name} = {value!r}: {where} is not text; leave it out")
                return read(path, where, column)
        return text.read(path, where, column, separator, decimal)
    except (OSError, EOFError, RuntimeError, BadZipFile, LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or encrypted"
        raise ValueError(f"{where}: cannot be read: {reason}") from None
