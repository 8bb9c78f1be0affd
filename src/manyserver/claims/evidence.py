"""Numbers that speak for or against a claim, and where those against it are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["Evidence", "where_false"]

SWEPT = ("arrival_rate", "load", "beta")
"""Axes along which a claim may hold here and not there."""
SAME = (
    "method_name",
    "method",
    "variable",
    "n_servers",
    "load",
    "arrival_rate",
    "quantity",
    "name",
)
"""Labels that do not tell curves apart."""
FEWEST = 4
"""Points through which a spline is drawn."""
MOST = 3
"""Curves of which the ranges are told."""


@dataclass(frozen=True)
class Evidence:
    """A number, and the interval in which a claim says that it is.

    Parameters
    ----------
    value, half_width : float
        The number and the half of its 95 % interval, or a bound of its error.
    low, high : float
        The interval; infinite on the side where it has no end.
    study : str
        Where it was read.
    cell : mapping
        The labels of the cell of the cube, with the ``variable``; or of the row of the fits, with
        the ``parameter``.
    """

    value: float
    half_width: float
    low: float
    high: float
    study: str
    cell: Mapping[str, object]

    @property
    def known(self) -> bool:
        """Whether the number and its half-width are known."""
        return bool(np.isfinite(self.value) and np.isfinite(self.half_width))

    @property
    def inside(self) -> float:
        """How far the number is inside of the interval; negative outside."""
        return min(self.value - self.low, self.high - self.value)

    @property
    def expected(self) -> str:
        """The interval in words.

        Examples
        --------
        >>> Evidence(1.0, 0.1, 0.5, 0.7, "", {}).expected
        '0.6 +- 0.1'
        >>> Evidence(1.0, 0.1, 2.0, np.inf, "", {}).expected
        '>= 2'
        """
        if np.isinf(self.low):
            return f"<= {self.high:.6g}"
        if np.isinf(self.high):
            return f">= {self.low:.6g}"
        middle, width = (self.low + self.high) / 2, (self.high - self.low) / 2
        if 0 < abs(middle) <= width:
            return f"{self.low:.6g} to {self.high:.6g}"
        return f"{middle:.6g} +- {width:.2g}"


def where_false(known: Iterable[Evidence], against: Iterable[Evidence]) -> str:
    """Say how many numbers speak against a claim, and between which values of what is swept.

    Parameters
    ----------
    known : iterable of Evidence
        All numbers.
    against : iterable of Evidence
        Those outside of their intervals.

    Returns
    -------
    str
        Ends of a range are interpolated where the claim starts or ceases to hold.
    """
    known, outside = list(known), {id(one) for one in against}
    told = f"{len(outside)} of {len(known)} numbers against it"
    names = {name: None for one in known for name in one.cell if name not in SAME}
    varying = [name for name in names if len({one.cell.get(name) for one in known}) > 1]
    curves: dict[tuple[str, ...], list[Evidence]] = {}
    for one in known:
        place = [_label(one, name) for name in varying if name in one.cell]
        curves.setdefault((one.study, _axis(one), *place), []).append(one)
    ranges = {
        place: _ranges(curve, place[1], outside)
        for place, curve in curves.items()
        if place[1] and any(id(one) in outside for one in curve)
    }
    shown = [
        f"{axis} {text}" + f" at {', '.join(place)}" * bool(place)
        for (_, axis, *place), text in ranges.items()
        if text
    ]
    more = len(shown) - MOST
    shown = [*shown[:MOST], f"and on {more} more curves"] if more > 0 else shown
    return ": ".join(filter(None, (told, ", ".join(shown))))


def _axis(one: Evidence) -> str:
    """Return the axis along which a number lies on a curve; empty if there is none."""
    return next((axis for axis in SWEPT if axis in one.cell), "")


def _label(one: Evidence, name: str) -> str:
    """Write a label, of a number with its name."""
    value = one.cell[name]
    return f"{name} = {value:g}" if isinstance(value, float | int) else str(value)


def _ranges(curve: list[Evidence], axis: str, outside: set[int]) -> str:
    """Return the ranges of an axis in which the numbers of a curve are outside; empty if few."""
    from scipy.interpolate import CubicSpline
    from scipy.optimize import brentq

    places = sorted(
        (float(str(one.cell[axis])), one.inside / _scale(one), id(one) in outside) for one in curve
    )
    x, inside, found = np.array(places).T
    if x.size < FEWEST or (np.diff(x) <= 0).any():
        return ""
    spline, false = CubicSpline(x, inside), found > 0
    turns = [
        brentq(lambda at: float(spline(at)), x[i], x[i + 1])
        if inside[i] * inside[i + 1] < 0
        else x[i + bool(false[i + 1])]
        for i in np.flatnonzero(false[1:] != false[:-1])
    ]
    parts = list(pairwise([x[0], *turns, x[-1]]))[0 if false[0] else 1 :: 2]
    return " and ".join(f"{low:.4g} to {high:.4g}" for low, high in parts)


def _scale(one: Evidence) -> float:
    """Return what the distance of a number from its interval is compared with."""
    return abs(one.value) or 1.0
