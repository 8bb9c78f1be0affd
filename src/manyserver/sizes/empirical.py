"""Measured sizes, from a file or a list."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import is_real, is_whole
from manyserver.sizes.base import SizeLaw
from manyserver.sizes.files import read_sizes
from manyserver.sizes.files.shown import shown

__all__ = ["Empirical"]


@dataclass(frozen=True)
class Empirical(SizeLaw):
    r"""Sizes drawn from measured ones, each as likely as any other.

    Parameters
    ----------
    file : str or path, optional
        Text with columns (CSV and the like, perhaps compressed), or a Parquet or NetCDF file.
    column : str or int, optional
        Name of the column, or of the variable of the NetCDF file; can be left out if there is one.
        Columns of text can be told by number, from one on, with or without a header.
    separator : {",", ";", "\t", "|", " "}, optional
        What separates the columns of text (" " is any number of spaces); found if it is None.
    decimal : {".", ","}, optional
        The decimal mark in text; found if it is None, and refused where it could be either.
    values : sequence of float, shape (size,), optional
        The sizes, instead of a file.
    mean : float, optional
        Scales the sizes to this mean: 1 makes the mean size the unit of time, as a simulation
        asks for. They are taken as they are if it is None.

    Attributes
    ----------
    measured_mean : float
        Mean of the sizes as they are in the file: results in units of time, times this, are in
        the units of the file.
    count : int
        Number of sizes.
    digest : str
        SHA-256 of the sizes as they are in the file, in any order.

    Raises
    ------
    ValueError
        If there are no sizes, or one is negative, missing or no number; it says which line. Sizes
        must not all be zero. If a file cannot be read, or could be read in two ways.
    FileNotFoundError
        If there is no such file.

    Notes
    -----
    All moments are finite, whatever the law that the sizes were drawn from: no job is larger than
    the largest one measured.
    """

    name: ClassVar[str] = "empirical"
    title: ClassVar[str] = "measured"

    file: str | None = None
    column: str | int | None = None
    separator: str | None = None
    decimal: str | None = None
    values: tuple[float, ...] | None = field(default=None, repr=False)
    mean: float = None  # type: ignore[assignment]
    scv: float = field(init=False, repr=False)
    measured_mean: float = field(init=False, repr=False)
    count: int = field(init=False, repr=False)
    digest: str = field(init=False, repr=False)
    _sizes: np.ndarray = field(init=False, repr=False, compare=False)
    _work: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.file is None) == (self.values is None):
            raise ValueError(
                f"file = {self.file!r}: one of file and values must be given, and not both"
            )
        sizes = np.sort(self._values() if self.file is None else self._read())
        # In units of a power of two about the largest size: exact, and nothing overflows.
        exponent = int(np.frexp(sizes[-1])[1])
        scaled = np.ldexp(sizes, -exponent)
        mean = float(scaled.mean())
        if mean <= 0:
            raise ValueError("values: are all zero; at least one size must be greater than zero")
        measured = math.ldexp(mean, exponent)
        wanted: object = self.mean
        if wanted is None:
            object.__setattr__(self, "mean", measured)
        super().__post_init__()
        object.__setattr__(self, "measured_mean", measured)
        object.__setattr__(self, "count", len(sizes))
        object.__setattr__(self, "digest", hashlib.sha256(sizes.tobytes()).hexdigest())
        object.__setattr__(self, "scv", float(scaled.var() / mean**2))
        object.__setattr__(self, "_sizes", scaled * (self.mean / mean))
        object.__setattr__(self, "_work", np.cumsum(scaled) / scaled.sum())

    def _read(self) -> np.ndarray:
        column: object = self.column
        if not isinstance(self.file, (str, os.PathLike)):
            raise ValueError(f"file = {self.file!r}: must be a path")
        if is_whole(column):
            column = int(column)
        elif column is not None and not isinstance(column, str):
            raise ValueError(f"column = {column!r}: must be the name of a column, or its number")
        object.__setattr__(self, "file", os.fsdecode(self.file))
        object.__setattr__(self, "column", column)
        sizes, place = read_sizes(self.file, self.column, self.separator, self.decimal)
        return _checked(sizes, shown(self.file), place)

    def _values(self) -> np.ndarray:
        for name in ("column", "separator", "decimal"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} = {getattr(self, name)!r}: is for a file, not for values")
        sizes = _given(self.values)
        object.__setattr__(self, "values", tuple(map(float, sizes)))
        return sizes

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        return np.asarray(np.searchsorted(self._sizes, x, side="right") / self.count)

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Smallest size x with ``cdf(x) >= probability``."""
        rank = np.ceil(np.asarray(probability, dtype=float) * self.count).astype(int) - 1
        return np.asarray(self._sizes[np.clip(rank, 0, self.count - 1)])

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes."""
        return self._sizes[rng.integers(self.count, size=count)]

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`."""
        rank = np.searchsorted(self._sizes, x, side="right")
        return np.asarray(np.where(rank > 0, self._work[rank - 1], 0.0))

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size."""
        rank = np.searchsorted(self._work, rng.random(count), side="right")
        return self._sizes[np.minimum(rank, self.count - 1)]


def _given(values: object) -> np.ndarray:
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise ValueError(f"values: are of type {type(values).__name__}; must be a list of sizes")
    if isinstance(values, np.ndarray):
        plain = values.dtype.kind in "fiu"
    else:
        plain = all(map(is_real, values))
    if not plain:
        raise ValueError("values: must all be numbers, in one dimension")
    try:
        sizes = np.array(values, dtype=float)
    except OverflowError:
        raise ValueError("values: must all be less than 1.8e308") from None
    return _checked(sizes, "values", lambda index: f"values[{index}]")


def _checked(sizes: np.ndarray, source: str, place: Callable[[int], str]) -> np.ndarray:
    """Refuse what cannot be sizes; `place` says where the size of a number stands."""
    if sizes.ndim != 1:
        raise ValueError(f"{source}: has shape {sizes.shape}; must have one dimension")
    if not len(sizes):
        raise ValueError(f"{source}: is empty; must hold at least one size")
    wrong = np.flatnonzero(~(np.isfinite(sizes) & (sizes >= 0)))
    if len(wrong):
        number = int(wrong[0])
        more = f" ({len(wrong)} such values)" if len(wrong) > 1 else ""
        raise ValueError(f"{place(number)} = {sizes[number]:g}: must be a finite number >= 0{more}")
    return sizes + 0.0  # no negative zero
