"""The system: pools of servers with unequal speeds, fed by one Poisson stream.

A system has ``n_servers`` servers in ``M`` pools. Pool ``j`` holds the fraction ``fraction`` of
them, each serving at rate ``speed``. Jobs arrive as a Poisson process with rate
``arrival_rate * n_servers``, and their mean size is one: time is measured in mean job sizes
divided by speed 1. ``n_servers=None`` is the limit of infinitely many servers.

Fractions and speeds are kept as exact ratios. Policies compare ratios of speeds, ties between
them decide where jobs go, and floating point would break such ties at random.
"""

import logging
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Rational
from typing import Any

import numpy as np

from manyserver.checks import checked_count, checked_number, is_real, plain

__all__ = [
    "NotKnown",
    "Pool",
    "System",
    "UnstableSystem",
    "exact_capacity",
    "plain_number",
    "read_ratio",
]

logger = logging.getLogger(__name__)

LARGEST_DENOMINATOR = 1000
RATIO_TOLERANCE = 1e-5
"""A float within this over the squared denominator of a ratio is that ratio, rounded."""
LONGEST_NUMBER = 50
ROUNDING = 1e-12
"""Relative differences below this are floating-point noise."""
MOST_SERVERS = 2**53
"""Counts are exact in floating point up to here."""
MOST_BUFFER = 2**15 - 1
"""Exact chains hold the jobs of a server in 16 bits, and the limits list every level up to it."""


class UnstableSystem(ValueError):
    """Raised when some servers receive more work than they can do.

    Attributes
    ----------
    pools : tuple of int
        The pools that saturate together, as positions in ``System.pools``.
    """

    def __init__(self, message: str, pools: tuple[int, ...]):
        super().__init__(message)
        self.pools = pools


class NotKnown(ValueError):
    """Raised when nothing is known of what is asked for, so that one can only simulate."""


def read_ratio(value: object, name: str) -> tuple[Fraction, str | None]:
    """Read a positive number exactly, and say so if that changed a float.

    Integers, fractions and strings such as ``"2/3"`` or ``"0.5"`` are taken as they are written.
    A float stands for its shortest decimal, unless it is a rounded ratio that has no finite
    decimal (0.666667 for 2/3) or carries floating-point noise (0.30000000000000004).

    Parameters
    ----------
    value : int, float, str or Fraction
        The number, greater than zero.
    name : str
        What to call it in an error.

    Returns
    -------
    ratio : Fraction
        The exact value.
    note : str or None
        What a reader should be told when a float was replaced by a ratio.

    Raises
    ------
    ValueError
        If `value` is not a positive finite number.

    Examples
    --------
    >>> read_ratio("2/3", "speed")
    (Fraction(2, 3), None)
    >>> read_ratio(0.666667, "speed")
    (Fraction(2, 3), 'speed = 0.666667 is read as 2/3')
    """
    allowed = f"{name} = {value!r}: must be a positive number or a ratio such as '2/3'"
    value = plain(value)
    if not (is_real(value) or isinstance(value, str)):
        raise ValueError(allowed)
    note = None
    try:
        if isinstance(value, (str, Rational)):
            ratio = Fraction(plain_number(value))
        else:
            ratio = Fraction(repr(float(value)))
            near = Fraction(float(value)).limit_denominator(LARGEST_DENOMINATOR)
            if near != ratio and abs(float(ratio - near)) <= _tolerance(near):
                ratio, note = near, f"{name} = {value!r} is read as {near}"
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ValueError(allowed) from None
    if ratio <= 0:
        raise ValueError(allowed)
    return ratio, note


def plain_number(value: object) -> Any:
    """Return what :class:`fractions.Fraction` takes, and reads without delay.

    A float stands for its shortest decimal. A text is refused if it is longer than any number that
    is meant, and one such as ``"1e999999999"`` would be a number with as many digits.

    Raises
    ------
    ValueError
        If a text is no number of usual length.
    """
    if isinstance(value, str):
        if len(value) > LONGEST_NUMBER:
            raise ValueError("is too long")
        value = float(value) if "e" in value.lower() else value
    return repr(value) if isinstance(value, float) else value


def _tolerance(ratio: Fraction) -> float:
    remainder = ratio.denominator
    for factor in (2, 5):
        while remainder % factor == 0:
            remainder //= factor
    noise = ROUNDING * float(ratio)
    return noise if remainder == 1 else max(noise, RATIO_TOLERANCE / ratio.denominator**2)


def _exact(value: object, name: str) -> Fraction:
    ratio, note = read_ratio(value, name)
    if note is not None:
        changed = abs(float(ratio) - float(value)) > ROUNDING * float(ratio)  # type: ignore[arg-type]
        if changed:
            warnings.warn(note, UserWarning, stacklevel=4)
        else:
            logger.info(note)
    return ratio


@dataclass(frozen=True)
class Pool:
    """Servers of one speed.

    Parameters
    ----------
    fraction : int, float, str or Fraction
        The fraction of all servers that belong to this pool, in (0, 1].
    speed : int, float, str or Fraction
        Work done per unit of time by one server, greater than zero; ``"2/3"`` is exact.
    buffer : int, optional
        Most jobs a server holds, the one in service included; None means no bound.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> Pool(fraction=0.5, speed="4/3")
    Pool(fraction='1/2', speed='4/3')
    """

    fraction: Fraction
    speed: Fraction
    buffer: int | None = None

    def __init__(
        self,
        fraction: float | str | Fraction,
        speed: float | str | Fraction,
        buffer: int | None = None,
    ):
        exact_fraction = _exact(fraction, "fraction")
        if exact_fraction > 1:
            raise ValueError(f"fraction = {fraction!r}: must lie in (0, 1]")
        if buffer is not None:
            buffer = checked_count(
                "buffer", buffer, most=MOST_BUFFER, otherwise="None for no bound"
            )
        object.__setattr__(self, "fraction", exact_fraction)
        object.__setattr__(self, "speed", _exact(speed, "speed"))
        object.__setattr__(self, "buffer", buffer)

    def __repr__(self) -> str:
        buffer = "" if self.buffer is None else f", buffer={self.buffer}"
        return f"Pool(fraction='{self.fraction}', speed='{self.speed}'{buffer})"


@dataclass(frozen=True)
class System:
    """Pools of servers and the stream of jobs that they share.

    Parameters
    ----------
    arrival_rate : float
        Jobs per unit of time and server, greater than zero and below the capacity.
    pools : sequence of Pool
        At least one pool; their fractions sum to one. Results keep this order.
    n_servers : int, optional
        Number of servers, such that every pool has a whole number of them; None is the limit.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    UnstableSystem
        If the load is one or more and no pool has a finite buffer.

    Examples
    --------
    >>> system = System(0.9, [Pool("1/2", "2/3"), Pool("1/2", "4/3")], n_servers=10)
    >>> system.counts, round(system.load, 3)
    ((5, 5), 0.9)
    """

    arrival_rate: float
    pools: tuple[Pool, ...]
    n_servers: int | None = None

    def __init__(self, arrival_rate: float, pools: Sequence[Pool], n_servers: int | None = None):
        object.__setattr__(self, "arrival_rate", checked_number("arrival_rate", arrival_rate))
        object.__setattr__(self, "pools", _checked_pools(pools))
        object.__setattr__(self, "n_servers", self._checked_servers(n_servers))
        if not self.is_bounded and Fraction(repr(self.arrival_rate)) >= self.exact_capacity:
            raise UnstableSystem(
                f"arrival_rate = {arrival_rate!r}: load is {self.load:.6g}; must be below the "
                f"capacity of {float(self.exact_capacity):.6g} jobs per unit of time and server",
                pools=tuple(range(len(self.pools))),
            )

    def _checked_servers(self, n_servers: int | None) -> int | None:
        if n_servers is None:
            return None
        n_servers = checked_count(
            "n_servers", n_servers, most=MOST_SERVERS, otherwise="None for the limit"
        )
        unit = math.lcm(*(pool.fraction.denominator for pool in self.pools))
        if n_servers % unit:
            raise ValueError(
                f"n_servers = {n_servers}: does not split into whole servers by the fractions "
                f"{', '.join(str(pool.fraction) for pool in self.pools)}; must be a multiple of "
                f"{unit}"
            )
        return n_servers

    @property
    def is_bounded(self) -> bool:
        """Whether the servers of any pool have a finite buffer."""
        return any(pool.buffer is not None for pool in self.pools)

    @property
    def exact_capacity(self) -> Fraction:
        """Work that all servers can do per unit of time, per server."""
        return exact_capacity(self.pools)

    @property
    def capacity(self) -> float:
        """Work that all servers can do per unit of time, per server."""
        return float(self.exact_capacity)

    @property
    def load(self) -> float:
        """Arrival rate over capacity."""
        return self.arrival_rate / self.capacity

    @cached_property
    def fractions(self) -> np.ndarray:
        """Fraction of the servers in each pool, shape (pool,)."""
        return np.array([float(pool.fraction) for pool in self.pools])

    @cached_property
    def speeds(self) -> np.ndarray:
        """Speed of the servers of each pool, shape (pool,)."""
        return np.array([float(pool.speed) for pool in self.pools])

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of servers in each pool, shape (pool,).

        Raises
        ------
        ValueError
            If the system is the limit of infinitely many servers.
        """
        if self.n_servers is None:
            raise ValueError("n_servers = None: must be an integer here, not the limit")
        return tuple(int(pool.fraction * self.n_servers) for pool in self.pools)

    @property
    def finite_servers(self) -> int:
        """Number of servers.

        Raises
        ------
        ValueError
            If the system is the limit of infinitely many servers.
        """
        return sum(self.counts)

    @property
    def buffers(self) -> np.ndarray:
        """Most jobs at a server of each pool, infinite without a bound, shape (pool,)."""
        return np.array([math.inf if pool.buffer is None else pool.buffer for pool in self.pools])


def exact_capacity(pools: Sequence[Pool]) -> Fraction:
    """Return the work that pools do per unit of time and server, if all are busy."""
    return sum((pool.fraction * pool.speed for pool in pools), start=Fraction(0))


def _checked_pools(pools: Sequence[Pool]) -> tuple[Pool, ...]:
    if isinstance(pools, Pool) or not isinstance(pools, Sequence) or not pools:
        raise ValueError(f"pools = {pools!r}: must be a sequence of at least one Pool")
    for pool in pools:
        if not isinstance(pool, Pool):
            raise ValueError(f"pools: {pool!r} must be a Pool")
    total = sum(pool.fraction for pool in pools)
    if total != 1:
        raise ValueError(
            f"pools: the fractions {', '.join(str(pool.fraction) for pool in pools)} sum to "
            f"{float(total):.12g}; must sum to 1"
        )
    return tuple(pools)
