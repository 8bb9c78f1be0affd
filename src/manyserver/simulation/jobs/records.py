"""What is recorded of jobs: sums and histograms, by batch of arrival and by pool.

Histograms have 128 bins in each power of two, so that every time is known up to 0.8 % of it, and
they can be added.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from manyserver.simulation.random import kernel
from manyserver.variables import DECILES

__all__ = [
    "BINS",
    "SOJOURN",
    "WAITING",
    "Records",
    "edges",
    "inlined",
    "make_records",
    "masked",
    "record_arrival",
    "record_departure",
]

MANTISSA_BITS = 7
FIRST_POWER, LAST_POWER = -20, 30
"""Shorter times than 2**-20 are in the first bin, longer ones than 2**30 in the last."""
BINS = ((LAST_POWER - FIRST_POWER) << MANTISSA_BITS) + 2

MOMENTS = ("sojourn", "sojourn squared", "waiting", "waiting squared")
SOJOURN, SOJOURN_SQUARED, WAITING, WAITING_SQUARED = range(len(MOMENTS))

_SHIFT = np.int64(52 - MANTISSA_BITS)
_FIRST = np.int64(((1023 + FIRST_POWER) << MANTISSA_BITS) - 1)
_LAST = np.int64(BINS - 1)


inlined = partial(kernel, forceinline=True)()
"""A call would hand over a hundred numbers, the parts of all arrays."""


class Records(NamedTuple):
    """Of the jobs that arrive in a window, which starts at time zero."""

    sojourn: np.ndarray
    """Histogram, shape (batch, pool, bin)."""
    waiting: np.ndarray
    """The same; shape (0, 0, 0) if there are no waiting times."""
    moments: np.ndarray
    """Sums of `MOMENTS`, shape (batch, pool, moment)."""
    slowdown: np.ndarray
    """Number of jobs and sum of their slowdowns, by size, shape (batch, decile, 2)."""
    bounds: np.ndarray
    """Sizes between deciles, shape (decile - 1,)."""
    total: np.ndarray
    """Time that jobs spent in the system since time zero, of those that left; shape (1,)."""
    window: np.ndarray
    """Length of the window, and batches per unit of time; shape (2,)."""

    def jobs(self) -> int:
        """Count the jobs that were recorded."""
        return int(self.sojourn.sum(dtype=np.int64))


def make_records(
    batches: int, length: float, n_pools: int, waiting: bool, bounds: np.ndarray
) -> Records:
    """Make room for batches of a length, with waiting times or without."""
    shape = (batches, n_pools, BINS)
    return Records(
        np.zeros(shape, dtype=np.uint32),
        np.zeros(shape if waiting else (0, 0, 0), dtype=np.uint32),
        np.zeros((batches, n_pools, len(MOMENTS))),
        np.zeros((batches, DECILES, 2)),
        bounds,
        np.zeros(1),
        np.array([batches * length, 1 / length]),
    )


def edges() -> np.ndarray:
    """Return the bounds of the bins, shape (bin + 1,); the first bin starts at zero."""
    steps = np.arange(BINS - 1)
    power, part = np.divmod(steps, 1 << MANTISSA_BITS)
    inner = np.ldexp(1 + part / (1 << MANTISSA_BITS), FIRST_POWER + power)
    return np.concatenate([[0.0], inner, [np.inf]])


@intrinsic
def _bits(typingctx, x):  # type: ignore[no-untyped-def]
    """Return the bits of a floating-point number as a signed integer."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def masked(typingctx, x, mask):  # type: ignore[no-untyped-def]
    """Return a floating-point number if all bits of a mask are set, and zero if none is."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        bits = builder.bitcast(args[0], ir.IntType(64))
        return builder.bitcast(builder.and_(bits, args[1]), ir.DoubleType())

    return types.float64(types.float64, types.uint64), codegen


@inlined
def bin_of(x):  # type: ignore[no-untyped-def]
    """Return the bin of a time that is not negative."""
    return min(max((_bits(x) >> _SHIFT) - _FIRST, np.int64(0)), _LAST)


@inlined
def record_departure(records, arrived, sojourn, size, pool):  # type: ignore[no-untyped-def]
    """Record a job that leaves."""
    batch = min(np.int64(arrived * records.window[1]), np.int64(len(records.sojourn) - 1))
    records.sojourn[batch, pool, bin_of(sojourn)] += np.uint32(1)
    records.moments[batch, pool, SOJOURN] += sojourn
    records.moments[batch, pool, SOJOURN_SQUARED] += sojourn * sojourn
    decile = np.int64(0)
    for i in range(DECILES - 1):
        decile += np.int64(size > records.bounds[i])
    records.slowdown[batch, decile, 0] += 1.0
    if size > 0.0:
        records.slowdown[batch, decile, 1] += sojourn / size


@inlined
def record_arrival(records, batch, waits, sojourn, pool):  # type: ignore[no-untyped-def]
    """Record a job that arrives, if it is known then how long it waits and stays."""
    records.sojourn[batch, pool, bin_of(sojourn)] += np.uint32(1)
    records.waiting[batch, pool, bin_of(waits)] += np.uint32(1)
    moments = records.moments[batch, pool]
    moments[SOJOURN] += sojourn
    moments[SOJOURN_SQUARED] += sojourn * sojourn
    moments[WAITING] += waits
    moments[WAITING_SQUARED] += waits * waits
