"""Sampling the states of all lanes at once.

As :mod:`manyserver.simulation.observations` observes one state, in the same order of operations,
so that what is added in a lane does not depend on the others. In lockstep no server is announced.
"""

from typing import NamedTuple

import numpy as np

from manyserver.simulation.joining_tables import JoiningTables
from manyserver.simulation.lanes import (
    any_of,
    chosen,
    everywhere,
    floats,
    load,
    make_vectors,
    store,
)
from manyserver.simulation.observations import (
    DRIFTS,
    MOMENT_PERIOD,
    Observations,
    drift_terms,
    jump_moments,
)
from manyserver.simulation.random import kernel
from manyserver.variables import MOMENT_LEVELS

__all__ = [
    "LaneObservations",
    "LaneScratch",
    "make_lane_observations",
    "make_lane_scratch",
    "observe_lanes",
]


class LaneObservations(NamedTuple):
    """Sums for each piece; see :class:`~manyserver.simulation.observations.Observations`."""

    taken: np.ndarray
    multiplied: np.ndarray
    tails: np.ndarray
    squares: np.ndarray
    joining: np.ndarray
    """Shape (piece, row, lane)."""
    squared_jobs: np.ndarray
    blocked: np.ndarray
    """Shape (piece, 1, lane)."""
    drifts: np.ndarray
    """Shape (piece, function, lane)."""
    products: np.ndarray
    """Products, flat over both classes; or none, shape (piece, class * class, lane)."""

    def of_lane(self, lane: int, n_pools: int) -> Observations:
        """Return the sums of a lane."""
        pieces = len(self.taken)
        by_class = (pieces, n_pools, self.tails.shape[1] // n_pools)
        levels = MOMENT_LEVELS if self.products.shape[1] else 0
        return Observations(
            self.taken,
            self.multiplied,
            self.tails[..., lane].reshape(by_class),
            self.squares[..., lane].reshape(by_class),
            self.joining[..., lane].reshape(by_class),
            self.squared_jobs[:, 0, lane],
            self.blocked[:, 0, lane],
            self.drifts[..., lane],
            self.products[..., lane].reshape(pieces, *(n_pools, levels) * 2),
        )


class LaneScratch(NamedTuple):
    """Where a sample works; see :class:`~manyserver.simulation.observations.Scratch`."""

    tail: np.ndarray
    """Servers with at least so many jobs, shape (row, lane)."""
    top: np.ndarray
    """Highest level that is not zero, shape (pool,)."""
    left: np.ndarray
    tied: np.ndarray
    share: np.ndarray
    factor: np.ndarray
    """Shape (draw, lane)."""
    polynomial: np.ndarray
    """Shape (draw * k, lane)."""
    summed: np.ndarray
    """Shape (pool * 2, lane)."""


def make_lane_observations(
    pieces: int, n_pools: int, levels: int, moments: bool
) -> LaneObservations:
    """Make sums that are zero."""
    classes = n_pools * MOMENT_LEVELS if moments else 0
    rows = (*[n_pools * levels] * 3, 1, 1, len(DRIFTS), classes**2)
    sums = (make_vectors((pieces, size), np.float64) for size in rows)
    return LaneObservations(np.zeros(pieces), np.zeros(pieces), *sums)


def make_lane_scratch(joining: JoiningTables, levels: int) -> LaneScratch:
    """Make room to work."""
    n_pools, n_draws = len(joining.speed), len(joining.size)
    most = int(np.diff(joining.first_poll).max())
    sizes = (n_draws, n_draws, n_draws, n_draws, n_draws * (most + 1), 2 * n_pools)
    return LaneScratch(
        make_vectors((n_pools * levels,), np.float64),
        np.zeros(n_pools, dtype=np.int64),
        *(make_vectors((size,), np.float64) for size in sizes),
    )


@kernel(inline="always")
def _add(sums, row, value):  # type: ignore[no-untyped-def]
    store(sums, row, load(sums, row) + value)


@kernel(inline="always")
def _add_tails(tables, state, joining, scratch, tails, squares):  # type: ignore[no-untyped-def]
    """Add up the tails, and return jobs and speeds of the busy servers, both per server."""
    jobs, work = everywhere(0.0), everywhere(0.0)
    for pool in range(tables.servers.size):
        row, height = pool * tables.stride, state.height[pool]
        everyone = everywhere(np.float64(tables.servers[pool]))
        store(scratch.tail, row, everyone)
        _add(tails, row, everyone)
        _add(squares, row, everyone * everyone)
        for level in range(row + 1, row + height + 1):
            value = floats(load(state.tail, level))
            store(scratch.tail, level, value)
            _add(tails, level, value)
            _add(squares, level, value * value)
            jobs = jobs + value
        for level in range(row + height + 1, row + scratch.top[pool] + 1):
            store(scratch.tail, level, everywhere(0.0))
        scratch.top[pool] = height
        work = work + load(scratch.tail, row + 1) * joining.speed[pool]
    return jobs * (1.0 / joining.servers), work * (1.0 / joining.servers)


@kernel(inline="always")
def _in_run(tables, joining, scratch, run):  # type: ignore[no-untyped-def]
    """Return the servers in a run of neighbouring levels."""
    row, end = joining.run[run, 0] * tables.stride, joining.run[run, 3]
    here = load(scratch.tail, row + joining.run[run, 2])
    # A server never holds as many jobs as there are levels.
    return here - load(scratch.tail, row + end) if end < tables.stride else here


@kernel()
def _share_between_draws(tables, joining, group, first, end, scratch):  # type: ignore[no-untyped-def]
    """Split ties between the draws `first` to ``end - 1`` of a branch, as for one state."""
    size = scratch.polynomial.shape[0] // scratch.left.shape[0]
    for draw in range(first, end):
        store(scratch.tied, draw, everywhere(0.0))
    for run in range(joining.first_run[group], joining.first_run[group + 1]):
        here = _in_run(tables, joining, scratch, run)
        _add(scratch.tied, joining.run[run, 1], here)
        _add(scratch.left, joining.run[run, 1], everywhere(0.0) - here)
    for draw in range(first, end):
        row = draw * size
        store(scratch.polynomial, row, everywhere(1.0))
        for k in range(1, size):
            store(scratch.polynomial, row + k, everywhere(0.0))
        left, tied = load(scratch.left, draw), load(scratch.tied, draw)
        start = joining.first_poll[draw]
        for looked in range(joining.first_poll[draw + 1] - start):
            for k in range(looked + 1, -1, -1):
                value = everywhere(0.0)
                if k <= looked:
                    worse = left - joining.distinct * (looked - k)
                    value = value + load(scratch.polynomial, row + k) * worse
                if k > 0:
                    equal = tied - joining.distinct * (k - 1)
                    value = value + load(scratch.polynomial, row + k - 1) * equal
                store(scratch.polynomial, row + k, value * joining.inverse[start + looked])
        store(scratch.factor, draw, load(scratch.polynomial, row))
    for own in range(first, end):
        joined = everywhere(0.0)
        for node in range(joining.nodes.size):
            product = everywhere(joining.weights[node])
            for draw in range(first, end):
                value, slope = everywhere(0.0), everywhere(0.0)
                for k in range(size - 1, -1, -1):
                    slope = slope * joining.nodes[node] + value
                    value = value * joining.nodes[node] + load(scratch.polynomial, draw * size + k)
                product = product * (slope if draw == own else value)
            joined = joined + product
        tied = load(scratch.tied, own)
        store(scratch.share, own, joined / chosen(tied > 1.0, tied, everywhere(1.0)))


@kernel(inline="always")
def _add_joining_law(tables, state, joining, scratch, sums):  # type: ignore[no-untyped-def]
    """Add the joining law to `sums`, and return the probability that an arrival is blocked.

    A lane in which no server is of a group is left as it was, whatever the others are.
    """
    blocked = everywhere(0.0)
    for branch in range(joining.probability.size):
        first_draw, end_draw = joining.first_draw[branch], joining.first_draw[branch + 1]
        for draw in range(first_draw, end_draw):
            store(scratch.left, draw, everywhere(joining.size[draw]))
            store(scratch.factor, draw, everywhere(1.0))
        before = everywhere(joining.probability[branch])
        for group in range(joining.first_group[branch], joining.first_group[branch + 1]):
            first_run, end_run = joining.first_run[group], joining.first_run[group + 1]
            total = everywhere(0.0)
            for run in range(first_run, end_run):
                total = total + _in_run(tables, joining, scratch, run)
            some = total > 0.0
            if not any_of(some):
                continue
            own = joining.group_draw[group]
            if own < 0:
                _share_between_draws(tables, joining, group, first_draw, end_draw, scratch)
            else:
                worse = load(scratch.left, own) - total
                store(scratch.left, own, worse)
                value = everywhere(1.0)
                for look in range(joining.first_poll[own], joining.first_poll[own + 1]):
                    value = value * (worse * joining.inverse[look])
                    worse = worse - joining.distinct
                store(scratch.factor, own, value)
            after = everywhere(joining.probability[branch])
            for draw in range(first_draw, end_draw):
                after = after * load(scratch.factor, draw)
            after = chosen(some, after, before)
            share = (before - after) / chosen(some, total, everywhere(1.0))
            for run in range(first_run, end_run):
                pool = joining.run[run, 0]
                if own < 0:
                    share = load(scratch.share, joining.run[run, 1]) * joining.probability[branch]
                    share = chosen(some, share, everywhere(0.0))
                row, height = pool * tables.stride, state.height[pool]
                end = min(joining.run[run, 3], height + 1)
                for level in range(row + joining.run[run, 2], row + end):
                    here = load(scratch.tail, level) - load(scratch.tail, level + 1)
                    _add(sums, level, share * here)
            before = after
            if not any_of(after > 0.0):
                break
        blocked = blocked + before
    return blocked


@kernel(inline="always")
def _remember(tables, scratch, sums):  # type: ignore[no-untyped-def]
    """Keep the sums of the joining law at the first two levels, before a sample adds to them."""
    for pool in range(tables.servers.size):
        for level in range(2):
            store(scratch.summed, 2 * pool + level, load(sums, pool * tables.stride + level))


@kernel()
def _add_drifts(tables, joining, scratch, jobs, work, accepted, sums, drifts):  # type: ignore[no-untyped-def]
    """Add the drifts at the states whose tails are in `scratch`."""
    h = 1.0 / joining.servers
    second = everywhere(0.0)
    m_w, s_lw, s_w = everywhere(0.0), everywhere(0.0), everywhere(0.0)
    m_v, s_lv, s_v = everywhere(0.0), everywhere(0.0), everywhere(0.0)
    for pool in range(tables.servers.size):
        row, speed = pool * tables.stride, joining.speed[pool]
        one, two = load(scratch.tail, row + 1), load(scratch.tail, row + 2)
        three = load(scratch.tail, row + 3)
        second = second + speed * two * h
        up = joining.arrival_rate * (load(sums, row) - load(scratch.summed, 2 * pool))
        first, mixed, square = jump_moments(speed, up, speed * (one - two) * h)
        m_w, s_lw, s_w = m_w + first, s_lw + mixed, s_w + square
        up = joining.arrival_rate * (load(sums, row + 1) - load(scratch.summed, 2 * pool + 1))
        first, mixed, square = jump_moments(speed, up, speed * (two - three) * h)
        m_v, s_lv, s_v = m_v + first, s_lv + mixed, s_v + square
    of_l = (accepted - work, accepted + work)
    terms = drift_terms(h, jobs, work, second, of_l, (m_w, s_lw, s_w), (m_v, s_lv, s_v))
    for function in range(len(terms)):
        _add(drifts, function, terms[function])


@kernel(inline="always")
def _add_products(tables, state, scratch, sums):  # type: ignore[no-untyped-def]
    n_pools = tables.servers.size
    for pool in range(n_pools):
        for level in range(min(MOMENT_LEVELS, state.height[pool] + 1)):
            row = pool * tables.stride + level
            held = load(scratch.tail, row) - load(scratch.tail, row + 1)
            for other in range(pool + 1):
                for k in range(min(MOMENT_LEVELS, state.height[other] + 1)):
                    its = other * tables.stride + k
                    both = held * (load(scratch.tail, its) - load(scratch.tail, its + 1))
                    place = (pool * MOMENT_LEVELS + level) * n_pools + other
                    _add(sums, place * MOMENT_LEVELS + k, both)


@kernel()
def observe_lanes(tables, state, piece, joining, scratch, observations):  # type: ignore[no-untyped-def]
    """Add the present states to the sums of a piece.

    Parameters
    ----------
    tables, state : LockstepTables, LockstepState
    piece : int
    joining, scratch, observations : JoiningTables, LaneScratch, LaneObservations
    """
    jobs, work = _add_tails(
        tables, state, joining, scratch, observations.tails[piece], observations.squares[piece]
    )
    sums = observations.joining[piece]
    _remember(tables, scratch, sums)
    blocked = _add_joining_law(tables, state, joining, scratch, sums)
    accepted = (blocked - 1.0) * (-joining.arrival_rate)
    _add(observations.squared_jobs[piece], 0, jobs * jobs)
    _add(observations.blocked[piece], 0, blocked)
    _add_drifts(tables, joining, scratch, jobs, work, accepted, sums, observations.drifts[piece])
    if observations.products.shape[1] > 0 and observations.taken[piece] % MOMENT_PERIOD == 0:
        _add_products(tables, state, scratch, observations.products[piece])
        observations.multiplied[piece] += 1
    observations.taken[piece] += 1
