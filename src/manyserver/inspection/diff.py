r"""Diff: the points at which two cubes differ by more than their errors.

A simulated value has a standard error, its half-width :math:`h` over the quantile of Student's t
with the degrees of freedom :math:`f` behind it. Two values differ if

.. math:: |a - b| > t_f^{-1}(1 - \alpha / 2m) \sqrt{s_a^2 + s_b^2}

with the smaller of the two :math:`f` and the number :math:`m` of values compared, so that two
cubes of the same laws are called different with a probability of at most :math:`\alpha`
(Bonferroni). A value without a half-width is compared with the relative error that its method
states (residual and truncation) or with a tolerance, whichever is larger, and with the bound of
its error. What each variable of a cube is for, its schema says; diagnostics are not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from manyserver.schema import ERROR, HALF_WIDTH, Purpose
from manyserver.study import models

__all__ = ["Difference", "compare_cubes", "diff_report"]


@dataclass(frozen=True)
class Difference:
    """A value that differs.

    Parameters
    ----------
    labels : dict
        Its place on the axes of the cube.
    variable : str
        Its name, with the place inside, such as ``queue_tail[0, 3]``.
    first, second : float
        The two values.
    allowed : float
        How far apart they could be.
    """

    labels: dict[str, Any]
    variable: str
    first: float
    second: float
    allowed: float

    def __str__(self) -> str:
        where = ", ".join(f"{key} {value}" for key, value in self.labels.items())
        apart = abs(self.first - self.second)
        return (
            f"{where}: {self.variable} {self.first:.8g} and {self.second:.8g}, "
            f"apart {apart:.2g}, allowed {self.allowed:.2g}"
        )


def compare_cubes(first: Path, second: Path, level: float, relative: float) -> "Comparison":
    """Compare all points that two cubes have in common.

    Parameters
    ----------
    first, second : pathlib.Path
        The cubes.
    level : float
        Probability of a false alarm, in (0, 1).
    relative : float
        Relative tolerance of values without half-widths.
    """
    import xarray as xr

    with (
        xr.open_dataset(first, engine="netcdf4") as a,
        xr.open_dataset(second, engine="netcdf4") as b,
    ):
        return _compare(a.load(), b.load(), level, relative)


@dataclass(frozen=True)
class Comparison:
    """What a comparison of two cubes found.

    Parameters
    ----------
    differences : list of Difference
        Values that differ.
    only_first, only_second : list of str
        Labels that only one cube has, as ``axis value``, and points that only one has values of.
    simulated, deterministic : int
        Number of values that were compared.
    """

    differences: list[Difference]
    only_first: list[str]
    only_second: list[str]
    simulated: int
    deterministic: int

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.differences or self.only_first or self.only_second)


def _compare(a: Any, b: Any, level: float, relative: float) -> Comparison:
    axes = list(a["status"].dims)
    if list(b["status"].dims) != axes:
        raise ValueError(f"the cubes have the axes {axes} and {list(b['status'].dims)}")
    only = [
        [f"{axis} {v}" for axis in axes for v in x[axis].values if v not in y[axis].values]
        for x, y in ((a, b), (b, a))
    ]
    common = {axis: [v for v in a[axis].values if v in b[axis].values] for axis in axes}
    a, b = a.sel(common), b.sel(common)
    schema = models.load(a.attrs["model"]).schema
    both = [str(name) for name in a.data_vars if name in b and a[name].dtype.kind == "f"]
    names = sorted(schema.of_purpose(Purpose.VALUE, both))
    relative_errors = schema.of_purpose(Purpose.RELATIVE_ERROR, both)
    pairs = {name: _aligned(a, b, name, axes, relative_errors) for name in names}
    tests = sum(int(_simulated(pair).sum()) for pair in pairs.values())
    for names_of, x, y in ((only[0], a, b), (only[1], b, a)):
        alone = _computed(x, names, axes) & ~_computed(y, names, axes)
        for place in np.argwhere(alone):
            labels = {axis: common[axis][i] for axis, i in zip(axes, place, strict=True)}
            names_of.append(", ".join(f"{axis} {value}" for axis, value in labels.items()))
    differences: list[Difference] = []
    deterministic = 0
    for name, pair in pairs.items():
        allowed = _allowed(pair, level / max(tests, 1), relative)
        both = ~np.isnan(pair.first) & ~np.isnan(pair.second)
        deterministic += int((both & ~_simulated(pair)).sum())
        with np.errstate(invalid="ignore"):
            wrong = both & (np.abs(pair.first - pair.second) > allowed)
        differences += _told(name, pair, allowed, wrong, common)
    return Comparison(differences, only[0], only[1], tests, deterministic)


def _computed(cube: Any, names: list[str], axes: list[str]) -> np.ndarray:
    """Points that have any value."""
    there = np.zeros([cube.sizes[axis] for axis in axes], dtype=bool)
    for name in names:
        values = cube[name].transpose(*axes, ...).values
        there |= ~np.isnan(values).all(axis=tuple(range(len(axes), values.ndim)))
    return there


@dataclass(frozen=True)
class _Pair:
    first: np.ndarray
    second: np.ndarray
    errors: tuple[np.ndarray, np.ndarray]
    """Standard errors."""
    relative: np.ndarray
    """Sum of both relative errors."""
    bound: np.ndarray
    """Sum of both bounds of the error."""
    freedom: np.ndarray


def _aligned(a: Any, b: Any, name: str, axes: list[str], relative_errors: list[str]) -> _Pair:
    """Give the values of both cubes the same shape; what only one has is NaN in the other."""
    # An error may have fewer dimensions than its value, as the largest one over all of them.
    a, b = (x.assign({name: x[name].transpose(*axes, ...)}) for x in (a, b))
    both = [x[name].values for x in (a, b)]
    shape = tuple(max(sizes) for sizes in zip(*(v.shape for v in both), strict=True))
    inner = (1,) * (len(shape) - len(axes))

    def fill(values: np.ndarray) -> np.ndarray:
        full = np.full(shape, np.nan)
        full[tuple(slice(0, size) for size in values.shape)] = values
        return full

    def outer(cube: Any, key: str, missing: float) -> np.ndarray:
        if key not in cube:
            return np.full(shape[: len(axes)] + inner, missing)
        values = cube[key].transpose(*axes, ...).values.astype(float)
        return np.where(np.isnan(values), missing, values).reshape(values.shape + inner)

    def beside(suffix: str) -> list[np.ndarray]:
        """Return the error of a kind in each cube; NaN where there is none."""
        return [
            fill(x[name + suffix].broadcast_like(x[name]).transpose(*x[name].dims).values)
            if name + suffix in x
            else fill(v * np.nan)
            for x, v in zip((a, b), both, strict=True)
        ]

    # Imported here as it imports scipy.
    from manyserver.statistics.estimates import standard_error

    freedom = [outer(x, "n_batches", np.inf) - 1 - outer(x, "n_controls", 0.0) for x in (a, b)]
    errors = [standard_error(w, f) for w, f in zip(beside(HALF_WIDTH), freedom, strict=True)]
    return _Pair(
        fill(both[0]),
        fill(both[1]),
        (errors[0], errors[1]),
        np.asarray(sum(outer(x, key, 0.0) for x in (a, b) for key in relative_errors)),
        np.asarray(sum(np.nan_to_num(bound) for bound in beside(ERROR))),
        np.minimum(*freedom),
    )


def _simulated(pair: _Pair) -> np.ndarray:
    """Where both values are there and at least one has an error."""
    known = ~np.isnan(pair.errors[0]) | ~np.isnan(pair.errors[1])
    return np.asarray(known & ~np.isnan(pair.first) & ~np.isnan(pair.second))


def _allowed(pair: _Pair, level: float, relative: float) -> np.ndarray:
    size = np.maximum(np.abs(pair.first), np.abs(pair.second))
    # An infinite value agrees with itself alone.
    size = np.where(np.isinf(size), 0.0, size)
    exact: np.ndarray = np.maximum(relative, pair.relative) * size + pair.bound
    error = np.hypot(*(np.nan_to_num(e, nan=0.0) for e in pair.errors))
    threshold = scipy.special.stdtrit(np.maximum(pair.freedom, 1), 1 - level / 2)
    return np.asarray(np.where(_simulated(pair), exact + threshold * error, exact))


def _told(
    name: str, pair: _Pair, allowed: np.ndarray, wrong: np.ndarray, common: dict[str, list[Any]]
) -> Iterator[Difference]:
    for place in np.argwhere(wrong):
        outer, inner = place[: len(common)], place[len(common) :]
        at = tuple(place)
        labels = {axis: common[axis][i] for axis, i in zip(common, outer, strict=True)}
        shown = f"{name}[{', '.join(str(i) for i in inner)}]" if inner.size else name
        yield Difference(
            labels,
            shown,
            float(pair.first[at]),
            float(pair.second[at]),
            float(np.broadcast_to(allowed, pair.first.shape)[at]),
        )


def diff_report(found: Comparison, level: float, relative: float, most: int = 50) -> str:
    """Write a comparison for a reader, with at most some of the differences."""
    lines = [f"only in the first: {label}" for label in found.only_first]
    lines += [f"only in the second: {label}" for label in found.only_second]
    lines += [str(difference) for difference in found.differences[:most]]
    if len(found.differences) > most:
        lines.append(f"... and {len(found.differences) - most} more")
    verdict = "agree" if found.same else f"{len(found.differences)} values differ"
    lines.append(
        f"{found.simulated} simulated and {found.deterministic} deterministic values compared: "
        f"{verdict} (level of a false alarm {level:g} for all simulated values together, "
        f"by Bonferroni; relative tolerance {relative:g} for the others)"
    )
    return "\n".join(lines)
