"""Measured sizes, from a file or a list."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.sizes.base import SizeLaw

__all__ = ["Empirical"]

NETCDF = {".nc", ".nc4", ".cdf", ".netcdf"}


@dataclass(frozen=True)
class Empirical(SizeLaw):
    """Sizes drawn from measured ones, each as likely as any other.

    Parameters
    ----------
    file : str or path, optional
        A CSV file with a header, or a NetCDF file (by its suffix: .nc, .nc4, .cdf, .netcdf).
    column : str, optional
        Column of the CSV file, or variable of the NetCDF file; can be left out if there is one.
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
        must not all be zero.
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
    column: str | None = None
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
        if self.file is not None:
            object.__setattr__(self, "file", str(self.file))
            sizes = _read(Path(str(self.file)), self.column)
        else:
            sizes = _given(self.values)
            object.__setattr__(self, "values", tuple(map(float, sizes)))
        sizes = np.sort(sizes)
        measured = float(sizes.mean())
        if measured <= 0:
            raise ValueError("values: are all zero; at least one size must be greater than zero")
        wanted: object = self.mean
        if wanted is None:
            object.__setattr__(self, "mean", measured)
        super().__post_init__()
        object.__setattr__(self, "measured_mean", measured)
        object.__setattr__(self, "count", len(sizes))
        object.__setattr__(self, "digest", hashlib.sha256(sizes.tobytes()).hexdigest())
        object.__setattr__(self, "scv", float(sizes.var() / measured**2))
        object.__setattr__(self, "_sizes", sizes * (self.mean / measured))
        object.__setattr__(self, "_work", np.cumsum(sizes) / sizes.sum())

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
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise ValueError(f"values = {values!r}: must be a list of sizes")
    try:
        sizes = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("values: must all be numbers") from None
    return _checked(sizes, "values", lambda number: f"values[{number}]")


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
    return sizes


def _read(path: Path, column: str | None) -> np.ndarray:
    if not path.is_file():
        raise FileNotFoundError(f"file = {str(path)!r}: there is no such file")
    return (_read_netcdf if path.suffix.lower() in NETCDF else _read_csv)(path, column)


def _one_of(path: Path, column: str | None, names: Sequence[str]) -> str:
    """Return the column asked for, or the only one."""
    if column is None and len(names) == 1:
        return names[0]
    if column is None or column not in names:
        raise ValueError(
            f"column = {column!r}: must be one of those of {path}: {', '.join(names) or 'none'}"
        )
    return column


def _read_csv(path: Path, column: str | None) -> np.ndarray:
    with path.open(newline="", encoding="utf-8-sig") as lines:
        rows = csv.reader(lines)
        header = [name.strip() for name in next(rows, [])]
        position = header.index(_one_of(path, column, header))
        sizes, numbers = [], []
        for row in rows:
            if not row:
                continue
            cell = row[position].strip() if position < len(row) else ""
            try:
                sizes.append(float(cell))
            except ValueError:
                raise ValueError(
                    f"{path}, line {rows.line_num}, {header[position]} = {cell!r}: must be a number"
                ) from None
            numbers.append(rows.line_num)
    return _checked(
        np.array(sizes),
        str(path),
        lambda number: f"{path}, line {numbers[number]}, {header[position]}",
    )


def _read_netcdf(path: Path, column: str | None) -> np.ndarray:
    import xarray as xr

    with xr.open_dataset(path) as dataset:
        chosen = _one_of(path, column, [str(name) for name in dataset.data_vars])
        values = dataset[chosen].values
    if values.dtype.kind not in "fiu":
        raise ValueError(f"{path}, {chosen}: has type {values.dtype}; must be numbers")
    sizes = np.asarray(values, dtype=float).ravel()
    return _checked(sizes, f"{path}, {chosen}", lambda number: f"{path}, {chosen}[{number}]")
