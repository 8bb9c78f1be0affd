"""The cubes and fits of the studies that are built, and numbers read from them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.curves import NORMAL_QUANTILE, methods_of
from manyserver.claims.base import NotBuilt
from manyserver.claims.evidence import Evidence
from manyserver.methods import METHOD, Role

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Number", "Results", "read_results"]

ROUNDING = 1e-12
"""Relative error of a deterministic number that states none."""
RELATIVE_ERRORS = ("truncation_error", "residual")
"""Variables of the dispatching model that hold relative errors of all numbers beside them."""
ERRORS = ("_error", "_half_width")
"""Suffixes of the variables that hold the error of another; the last that has one counts."""
BESIDE = (*RELATIVE_ERRORS, "status", "interval_reliable")
"""Variables that say how good all numbers beside them are."""


@dataclass(frozen=True)
class Number:
    """A number with its error, and the cell that it was read from.

    Numbers can be subtracted and divided: independent errors add in quadrature, and the cell stays
    that of the first.

    Examples
    --------
    >>> one, other = (Number(x, 0.1, "choices", {"policy": x}) for x in (2.0, 1.0))
    >>> round((one / other - 1).half_width, 3), (one - other).below(1.5).expected
    (0.224, '<= 1.5')
    """

    value: float
    half_width: float
    study: str
    cell: Mapping[str, object]
    expected: float = np.nan

    def __sub__(self, other: "Number | float") -> "Number":
        taken = _number(other)
        width = float(np.hypot(self.half_width, taken.half_width))
        return replace(self, value=self.value - taken.value, half_width=width)

    def __truediv__(self, other: "Number | float") -> "Number":
        by = _number(other)
        if not by.value:
            return replace(self, value=np.nan)
        ratio = self.value / by.value
        width = float(np.hypot(self.half_width, ratio * by.half_width)) / abs(by.value)
        return replace(self, value=ratio, half_width=width)

    def between(self, low: float, high: float) -> Evidence:
        """Claim that it lies in an interval."""
        return Evidence(self.value, self.half_width, low, high, self.study, self.cell)

    def at_most(self, other: "Number") -> Evidence:
        """Claim that it is at most another number; the error is that of the difference."""
        difference = self - other
        return Evidence(
            self.value, difference.half_width, -np.inf, other.value, self.study, self.cell
        )

    def below(self, high: float) -> Evidence:
        """Claim that it is at most `high`."""
        return self.between(-np.inf, high)

    def above(self, low: float) -> Evidence:
        """Claim that it is at least `low`."""
        return self.between(low, np.inf)

    def near(self, expected: float, tolerance: float) -> Evidence:
        """Claim that it is as expected, to within a tolerance."""
        return self.between(expected - tolerance, expected + tolerance)


def _number(other: Number | float) -> Number:
    return other if isinstance(other, Number) else Number(float(other), 0.0, "", {})


@dataclass(frozen=True)
class Results:
    """What is built.

    Parameters
    ----------
    cubes : mapping of str to xarray.Dataset
        By study.
    fits : mapping of str to pandas.DataFrame
        By study; of those that have a table of fits.
    """

    cubes: "Mapping[str, xr.Dataset]"
    fits: "Mapping[str, pd.DataFrame]"

    def cube(self, study: str) -> "xr.Dataset":
        """Return a cube.

        Raises
        ------
        NotBuilt
            If there is none.
        """
        if study not in self.cubes:
            raise NotBuilt(f"the study {study} was not built")
        return self.cubes[study]

    def read(
        self, study: str, variable: str, role: Role = Role.LIMIT, **labels: Any
    ) -> list[Number]:
        """Return every known value of a variable, with its error and the labels of its cell.

        Parameters
        ----------
        study, variable : str
        role : Role
            Of the methods that are read; of a coordinate such as ``stability_limit``, none is.
        **labels
            The wanted label, or a list of them, of axes of the cube; of an axis not named, all.

        Raises
        ------
        NotBuilt
            If the study was not built, or has no such value.
        """
        cube = self.cube(study)
        of_points = variable in cube and METHOD in cube[variable].dims
        errors = [f"{variable}{suffix}" for suffix in ERRORS]
        wanted = (variable, *errors, *(BESIDE if of_points else ()))
        part = cube[[name for name in wanted if name in cube]]
        if of_points:
            part = part.sel({METHOD: methods_of(cube, role)})
        for axis, asked in labels.items():
            chosen = _places(part, axis, asked if isinstance(asked, list) else [asked])
            if not chosen:
                raise NotBuilt(f"the study {study} has no {axis} {asked}")
            part = part.isel({axis: chosen})
        found = list(_numbers(part.load(), study, variable)) if variable in part else []
        if not found:
            raise NotBuilt(f"the study {study} has no {variable} of a method of role {role.value}")
        return found

    def compared(
        self,
        study: str,
        variable: str,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        role: Role = Role.LIMIT,
        other_role: Role | None = None,
        **labels: Any,
    ) -> list[tuple[Number, Number]]:
        """Return pairs of numbers whose cells agree but in the labels of `one` and `other`.

        Raises
        ------
        NotBuilt
            If there is no pair.
        """
        apart = {METHOD, *one, *other}
        second = {
            _key(number, apart): number
            for number in self.read(study, variable, other_role or role, **{**labels, **other})
        }
        first = self.read(study, variable, role, **{**labels, **one})
        pairs = [(n, second[_key(n, apart)]) for n in first if _key(n, apart) in second]
        if not pairs:
            raise NotBuilt(f"the study {study} has no {variable} at {dict(one)} and {dict(other)}")
        return pairs

    def fitted(
        self, study: str, where: "Callable[[pd.DataFrame], pd.Series] | None" = None, **labels: Any
    ) -> list[Number]:
        """Return the estimates of the fits that have some labels.

        Parameters
        ----------
        study : str
        where : callable, optional
            Says which rows of the table are wanted.
        **labels
            The wanted label of columns.

        Raises
        ------
        NotBuilt
            If the study was not built, or has no such fit.
        """
        if study not in self.fits:
            raise NotBuilt(f"the study {study} was not built")
        table = self.fits[study]
        for column, wanted in labels.items():
            chosen = wanted if isinstance(wanted, list) else [wanted]
            table = table[table[column].isin(chosen)] if column in table else table[:0]
        if where is not None:
            table = table[where(table)]
        if table.empty:
            raise NotBuilt(f"the study {study} has no such fit")
        return [_of_row(row, study) for row in table.to_dict("records")]


def read_results(folder: Path, studies: Iterable[str]) -> Results:
    """Open the cubes and fits of those studies that are built in a folder of results.

    Values are read when they are asked for.
    """
    import pandas as pd
    import xarray as xr

    cubes, fits = {}, {}
    for study in studies:
        cube, table = folder / study / "cube.nc", folder / study / "fits.csv"
        if cube.exists():
            cubes[study] = xr.open_dataset(cube, engine="netcdf4")
            if table.exists():
                fits[study] = pd.read_csv(table)
    return Results(cubes, fits)


def _places(part: "xr.Dataset", axis: str, asked: list[Any]) -> list[int]:
    """Return where the labels are that are asked for, of those that there are."""
    there = part[axis].values if axis in part.dims else np.array([])
    if there.dtype.kind not in "fiu":
        return [int(i) for label in asked for i in np.flatnonzero(there == label)]
    near = [np.isclose(there, float(label), rtol=1e-9, atol=0) for label in asked]
    return [int(i) for one in near for i in np.flatnonzero(one)]


def _key(number: Number, apart: set[str]) -> tuple[tuple[str, object], ...]:
    return tuple((name, value) for name, value in number.cell.items() if name not in apart)


def _numbers(part: "xr.Dataset", study: str, variable: str) -> Iterator[Number]:
    array = part[variable]
    values, widths = array.values, _half_widths(part, variable)
    labels = {str(dim): array[dim].values.tolist() for dim in array.dims}
    for place in np.argwhere(np.isfinite(values)):
        cell = {name: labels[name][i] for name, i in zip(labels, place, strict=True)}
        at = tuple(place)
        yield Number(float(values[at]), float(widths[at]), study, {**cell, "variable": variable})


def _half_widths(part: "xr.Dataset", variable: str) -> np.ndarray:
    """Return half-widths, or bounds of the error; NaN where there is no reliable one."""
    array = part[variable]
    relative = np.full(array.shape, ROUNDING)
    for name in set(RELATIVE_ERRORS) - {variable}:
        if name in part and set(part[name].dims) <= set(array.dims):
            error = part[name].broadcast_like(array).transpose(*array.dims).values
            relative += np.nan_to_num(np.abs(error))
    widths = np.asarray(np.abs(array.values) * relative)
    if "status" in part:
        # A deterministic number says how wrong it is, but not if its method did not succeed.
        fine = np.isin(part["status"].broadcast_like(array).transpose(*array.dims).values, "ok")
        widths = np.where(fine, widths, np.nan)
    for suffix in ERRORS:
        name = f"{variable}{suffix}"
        if name in part:
            stated = part[name].transpose(*array.dims).values
            widths = np.where(np.isfinite(stated), stated, widths)
    if "interval_reliable" in part:
        reliable = part["interval_reliable"].broadcast_like(array).transpose(*array.dims).values
        widths = np.where(reliable == 0, np.nan, widths)
    return widths


def _of_row(row: Mapping[Any, Any], study: str) -> Number:
    named = {key: value for key, value in row.items() if key in ROW_LABELS and value == value}
    width = NORMAL_QUANTILE * float(row["standard_error"])
    return Number(float(row["estimate"]), width, study, named, float(row["expected"]))


ROW_LABELS = (
    "name",
    "system",
    "policy",
    "jobs",
    "beta",
    "arrival_rate",
    "load",
    "method",
    "n_servers",
    "pool",
    "level",
    "quantity",
    "parameter",
)
"""Columns by which a row of the fits is found again."""
