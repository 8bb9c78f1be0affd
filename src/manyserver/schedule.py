"""Numbers that change in time: an arrival rate over a day, the speed of a pool that fails."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_array, checked_number, refusal
from manyserver.sizes.files import read_sizes

__all__ = ["Linear", "Schedule", "Sine", "Steps", "as_schedule", "read_schedule"]


class Schedule(ABC):
    """A number that is a function of the time, from 0 on: at least zero, and known in advance."""

    smooth: ClassVar[bool] = True
    """Whether it changes between its breaks."""

    @abstractmethod
    def at(self, times: ArrayLike) -> np.ndarray:
        """Return the values at some times, of the same shape; right-continuous where it jumps."""

    @abstractmethod
    def breaks(self, end: float) -> np.ndarray:
        """Return the times in (0, end) where it jumps or has a kink, increasing."""

    @abstractmethod
    def bounds(self, start: float, end: float) -> tuple[float, float]:
        """Return the smallest and the largest value on an interval without breaks inside."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What it is, as plain values."""

    def integral(self, end: float) -> float:
        """Return the integral from 0 to a time."""
        edges = np.array([0.0, *self.breaks(end), end])
        # Exact for all that is linear between breaks; the sine has its own.
        middle = (edges[1:] + edges[:-1]) / 2
        return float(self.at(middle) @ np.diff(edges))

    def epochs(
        self, rng: np.random.Generator, scale: float, start: float, end: float
    ) -> np.ndarray:
        """Draw the epochs of a Poisson process, by thinning, which is exact.

        Parameters
        ----------
        rng : numpy.random.Generator
        scale : float
            The rate at time t is this times the value at t.
        start, end : float
            Epochs lie between them.

        Returns
        -------
        numpy.ndarray, shape (epoch,)
            Increasing.
        """
        edges = [start, *(t for t in self.breaks(end) if t > start), end]
        drawn = []
        for left, right in itertools.pairwise(edges):
            most = self.bounds(left, right)[1]
            count = rng.poisson(scale * most * (right - left))
            times = np.sort(rng.uniform(left, right, count))
            drawn.append(times[rng.random(count) * most < self.at(times)])
        return np.concatenate(drawn)


class _Table(Schedule):
    """Values at times of a table, which may repeat."""

    times: Sequence[float]
    values: Sequence[float]
    period: float | None

    def _check(self) -> None:
        allowed = "finite numbers that increase, the first one 0"
        times = np.atleast_1d(checked_array("times", self.times, allowed))
        if (
            times.ndim != 1
            or not len(times)
            or not np.isfinite(times).all()
            or times[0] != 0
            or (np.diff(times) <= 0).any()
        ):
            raise refusal("times", self.times, allowed)
        allowed = "finite numbers >= 0, one for each of the times"
        values = np.atleast_1d(checked_array("values", self.values, allowed))
        if values.shape != times.shape or not (np.isfinite(values) & (values >= 0)).all():
            raise refusal("values", self.values, allowed)
        object.__setattr__(self, "times", tuple(times.tolist()))
        object.__setattr__(self, "values", tuple(values.tolist()))
        if self.period is not None:
            period = checked_number("period", self.period)
            if period <= times[-1]:
                raise refusal("period", self.period, f"greater than the last time {times[-1]:g}")
            object.__setattr__(self, "period", period)

    @property
    def parameters(self) -> dict[str, Any]:
        """What it is, as plain values."""
        told = {"times": list(self.times), "values": list(self.values), "period": self.period}
        return {"kind": type(self).__name__.lower(), **told}

    def _within(self, times: ArrayLike) -> np.ndarray:
        given = np.asarray(times, dtype=float)
        return given if self.period is None else np.mod(given, self.period)

    def breaks(self, end: float) -> np.ndarray:
        """Return the times in (0, end) where it jumps or has a kink, increasing."""
        times = np.array(self.times)
        if self.period is not None:
            turns = np.arange(math.ceil(end / self.period))
            times = (turns[:, None] * self.period + times).ravel()
        return np.asarray(times[(times > 0) & (times < end)])


@dataclass(frozen=True)
class Steps(_Table):
    """A number that jumps: each value holds from its time on, until the next one's.

    Parameters
    ----------
    times : sequence of float
        Increasing, from 0 on.
    values : sequence of float
        At least zero, one for each time; the last one holds for ever.
    period : float, optional
        Greater than the last time: then the table begins again.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import manyserver as ms
    >>> rate = ms.Steps(times=[0, 5, 10], values=[0.7, 1.4, 0.7])
    >>> rate.at([0, 5, 12]), rate.integral(12)
    (array([0.7, 1.4, 0.7]), 11.9)
    """

    times: Sequence[float]
    values: Sequence[float]
    period: float | None = None

    smooth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check()

    def at(self, times: ArrayLike) -> np.ndarray:
        """Return the values at some times, of the same shape."""
        where = np.searchsorted(self.times, self._within(times), side="right") - 1
        return np.asarray(np.array(self.values)[where])

    def bounds(self, start: float, end: float) -> tuple[float, float]:
        """Return the value, twice."""
        value = float(self.at((start + end) / 2))
        return value, value


@dataclass(frozen=True)
class Linear(_Table):
    """A number that is linear between the times of a table.

    Parameters
    ----------
    times : sequence of float
        Increasing, from 0 on.
    values : sequence of float
        At least zero, one for each time; the last one holds for ever.
    period : float, optional
        Greater than the last time: then the table begins again, and the number goes back to its
        first value until then.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import manyserver as ms
    >>> ms.Linear(times=[0, 10], values=[0.5, 1.0]).at([0, 4, 20])
    array([0.5, 0.7, 1. ])
    """

    times: Sequence[float]
    values: Sequence[float]
    period: float | None = None

    def __post_init__(self) -> None:
        self._check()

    def at(self, times: ArrayLike) -> np.ndarray:
        """Return the values at some times, of the same shape."""
        return np.asarray(np.interp(np.asarray(times), self.times, self.values, period=self.period))

    def bounds(self, start: float, end: float) -> tuple[float, float]:
        """Return the values at both ends, the smaller one first."""
        # Just inside, as a table that repeats need not be continuous to the last digit.
        inside = self.at([start + (end - start) * 1e-12, end - (end - start) * 1e-12])
        slack = abs(inside[1] - inside[0]) * 1e-9
        return max(0.0, float(inside.min()) - slack), float(inside.max()) + slack


@dataclass(frozen=True)
class Sine(Schedule):
    r"""A number that swings: :math:`m + a \sin(2 \pi (t - s) / T)`.

    Parameters
    ----------
    mean : float
        m, greater than zero.
    amplitude : float
        a, from 0 to the mean.
    period : float
        T, greater than zero.
    shift : float, optional
        s: the time at which it rises through its mean.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> import manyserver as ms
    >>> ms.Sine(mean=0.8, amplitude=0.4, period=24).at([0, 6, 18]).round(6)
    array([0.8, 1.2, 0.4])
    """

    mean: float
    amplitude: float
    period: float
    shift: float = 0.0

    def __post_init__(self) -> None:
        mean = checked_number("mean", self.mean)
        amplitude = checked_number("amplitude", self.amplitude, closed=True)
        if amplitude > mean:
            raise refusal("amplitude", self.amplitude, f"at most the mean {mean:g}")
        checked_number("period", self.period)
        checked_number("shift", self.shift, -math.inf)

    @property
    def parameters(self) -> dict[str, Any]:
        """What it is, as plain values."""
        told = ("mean", "amplitude", "period", "shift")
        return {"kind": "sine", **{name: float(getattr(self, name)) for name in told}}

    def _angle(self, times: ArrayLike) -> np.ndarray:
        return 2 * np.pi * (np.asarray(times, dtype=float) - self.shift) / self.period

    def at(self, times: ArrayLike) -> np.ndarray:
        """Return the values at some times, of the same shape."""
        return np.asarray(self.mean + self.amplitude * np.sin(self._angle(times)))

    def breaks(self, end: float) -> np.ndarray:
        """Return the times in (0, end) at which it turns: between them, it rises or falls."""
        quarter = (self.shift / self.period + 0.25) % 0.5
        turns = (np.arange(math.ceil(2 * end / self.period) + 1) * 0.5 + quarter) * self.period
        return np.asarray(turns[(turns > 0) & (turns < end)])

    def bounds(self, start: float, end: float) -> tuple[float, float]:
        """Return the values at both ends, the smaller one first."""
        ends = self.at([start, end])
        slack = self.amplitude * 1e-9
        return max(0.0, float(ends.min()) - slack), float(ends.max()) + slack

    def integral(self, end: float) -> float:
        """Return the integral from 0 to a time."""
        swing = np.cos(self._angle(0.0)) - np.cos(self._angle(end))
        return float(self.mean * end + self.amplitude * self.period / (2 * np.pi) * swing)


def as_schedule(name: str, value: object, otherwise: float) -> Schedule:
    """Return a schedule, which a number or nothing stands for as well, or raise ValueError.

    Examples
    --------
    >>> as_schedule("arrival_rate", None, 0.7).at(3.0)
    array(0.7)
    """
    if value is None:
        value = otherwise
    if isinstance(value, Schedule):
        return value
    allowed = "a number, or one that changes in time: Steps, Linear or Sine"
    return Steps((0.0,), (checked_number(name, value, closed=True, otherwise=allowed),))


def read_schedule(file: str, kind: type[Steps] | type[Linear] = Steps) -> Steps | Linear:
    """Read a table from a file of text with two columns, the time and the value.

    Parameters
    ----------
    file : str
        Path of a CSV file, or of any other that measured sizes can be read from.
    kind : type, optional
        `Steps` or `Linear`.

    Returns
    -------
    Steps or Linear

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it cannot be read, or has gaps, or times that do not increase from 0 on.
    """
    times, values = (read_sizes(file, column)[0] for column in (1, 2))
    return kind(times.tolist(), values.tolist())
