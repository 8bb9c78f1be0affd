r"""Sampling the state while it is simulated: tails, joining law, products.

A sample reads the queue tails off the counts of the kernel, and adds to sums: the tails and their
squares, and the probability that an arrival would join each class now. The balance quantities
that serve as control variates follow from these sums (:mod:`manyserver.simulation.controls`).

*Drifts.* With jobs l, work rate w of the busy servers, and v that of those with two jobs or more,
all per server, the generator G of the chain gives for a function f of them the drift G f of its
expectation, which is zero on average. In a step of size h = 1/N, l moves by h up at rate A, the
accepted arrivals, and down at rate w; w by :math:`h C_j` up at the rate at which arrivals join
idle servers of pool j, and down as servers with one job depart; v in the same way, a level higher.
With m and s the first and second moments of the jumps, per h,

.. math::

    G l^2 = 2 l m_l + h s_l, \quad G (l w) = l m_w + w m_l + h s_{lw}, \quad
    G l^3 = 3 l^2 m_l + 3 h l s_l + h^2 m_l, \quad \dots
"""

from typing import NamedTuple

import numpy as np

from manyserver.simulation.joining_tables import JoiningTables
from manyserver.simulation.random import kernel
from manyserver.variables import MOMENT_LEVELS

__all__ = [
    "DRIFTS",
    "Observations",
    "Scratch",
    "add_joining_law",
    "add_totals",
    "drift_terms",
    "end_piece",
    "first_levels",
    "jump_moments",
    "make_observations",
    "make_scratch",
    "observe",
    "read_tails",
]

DRIFTS = ("l", "w", "v", "ll", "lw", "ww", "lv", "wv", "vv", "lll")
"""Functions of the state whose drifts are summed."""
MOMENT_PERIOD = 4
"""Observations from one that adds to the products to the next."""


class Observations(NamedTuple):
    """Sums over observations, for each piece."""

    taken: np.ndarray
    """Observations, shape (piece,)."""
    multiplied: np.ndarray
    """Observations that added to the products, shape (piece,)."""
    tails: np.ndarray
    """Servers with at least so many jobs, shape (piece, pool, level)."""
    squares: np.ndarray
    """Their squares, shape (piece, pool, level)."""
    joining: np.ndarray
    """Probability that an arrival joins the class, shape (piece, pool, level)."""
    squared_jobs: np.ndarray
    """Square of the jobs per server, shape (piece,)."""
    blocked: np.ndarray
    """Probability that an arrival is blocked, shape (piece,)."""
    drifts: np.ndarray
    """Drifts of `DRIFTS`, shape (piece, function)."""
    products: np.ndarray
    """Products of the numbers of servers in two classes, shape (piece, pool, level, pool, level)
    with the first `MOMENT_LEVELS` levels; or no levels."""

    def with_levels(self, levels: int) -> "Observations":
        """Cut or pad to a number of levels."""
        return self._replace(
            tails=first_levels(self.tails, levels),
            squares=first_levels(self.squares, levels),
            joining=first_levels(self.joining, levels),
        )


class Scratch(NamedTuple):
    """Where a sample works."""

    tail: np.ndarray
    """Servers with at least so many jobs; zero at the end, shape (pool, level + 1)."""
    top: np.ndarray
    """Levels that are not zero, shape (pool,)."""
    left: np.ndarray
    """Servers after the rank, shape (draw,)."""
    tied: np.ndarray
    """Servers of the rank, where several draws have some, shape (draw,)."""
    share: np.ndarray
    """Probability to join one of these, shape (draw,)."""
    factor: np.ndarray
    """Probability that all servers of a draw are of the rank or after it, shape (draw,)."""
    polynomial: np.ndarray
    """Probability that k servers looked at are tied and the others after, shape (draw, k)."""
    summed: np.ndarray
    """Sums of the joining law at the first two levels before this sample, shape (pool, 2)."""


def make_observations(pieces: int, n_pools: int, levels: int, moments: bool) -> Observations:
    """Make sums that are zero."""
    by_class = (pieces, n_pools, levels)
    square = (pieces, *(n_pools, MOMENT_LEVELS if moments else 0) * 2)
    return Observations(
        taken=np.zeros(pieces),
        multiplied=np.zeros(pieces),
        tails=np.zeros(by_class),
        squares=np.zeros(by_class),
        joining=np.zeros(by_class),
        squared_jobs=np.zeros(pieces),
        blocked=np.zeros(pieces),
        drifts=np.zeros((pieces, len(DRIFTS))),
        products=np.zeros(square),
    )


def make_scratch(joining: JoiningTables, levels: int) -> Scratch:
    """Make room to work."""
    n_pools, n_draws = len(joining.speed), len(joining.size)
    most = int(np.diff(joining.first_poll, append=joining.first_poll[-1:]).max())
    return Scratch(
        np.zeros((n_pools, levels + 1)),
        np.zeros(n_pools, dtype=np.int64),
        np.zeros(n_draws),
        np.zeros(n_draws),
        np.zeros(n_draws),
        np.zeros(n_draws),
        np.zeros((n_draws, most + 1)),
        np.zeros((n_pools, 2)),
    )


def first_levels(values: np.ndarray, levels: int) -> np.ndarray:
    """Cut (a view) or pad the last axis to a number of levels, shape (..., pool, level)."""
    missing = levels - values.shape[-1]
    if missing <= 0:
        return values[:, :, :levels]
    return np.pad(values, ((0, 0), (0, 0), (0, missing)))


@kernel()
def end_piece(row, before, joining):  # type: ignore[no-untyped-def]
    """Add what happened in a piece to the servers with at least so many jobs."""
    levels = before.shape[1]
    for pool in range(before.shape[0]):
        for level in range(1, min(levels, joining.room[pool] + 1)):
            code = 4 * (pool * levels + level)
            before[pool, level] += np.int64(row[code - 2]) - np.int64(row[code])


@kernel(inline="always")
def read_tails(row, before, piece, joining, scratch, observations):  # type: ignore[no-untyped-def]
    """Add up the tails, and return jobs and speeds of the busy servers, both per server."""
    n_levels = before.shape[1]
    jobs = 0
    work = 0.0
    for pool in range(before.shape[0]):
        levels = min(n_levels, joining.room[pool] + 1)
        tail = before[pool, 0]
        level = 0
        while tail > 0:
            value = float(tail)
            scratch.tail[pool, level] = value
            observations.tails[piece, pool, level] += value
            observations.squares[piece, pool, level] += value * value
            level += 1
            if level == levels:
                break
            code = 4 * (pool * n_levels + level)
            tail = before[pool, level] + np.int64(row[code - 2]) - np.int64(row[code])
            jobs += tail
        for empty in range(level, scratch.top[pool]):
            scratch.tail[pool, empty] = 0.0
        scratch.top[pool] = level
        scratch.summed[pool, 0] = observations.joining[piece, pool, 0]
        scratch.summed[pool, 1] = observations.joining[piece, pool, 1]
        work += joining.speed[pool] * scratch.tail[pool, 1]
    return jobs / joining.servers, work / joining.servers


@kernel()
def _share_between_draws(joining, group, first, end, scratch):  # type: ignore[no-untyped-def]
    """Split ties between the draws `first` to ``end - 1`` of a branch.

    With the generating function L of the number of tied servers that a draw looks at, if all
    others are worse, draw g is joined with probability ``integral of L_g' prod L_h, h != g``.
    On return `factor` is that all servers looked at are worse, and `share` is the probability
    of joining one tied server of a draw.
    """
    for draw in range(first, end):
        scratch.tied[draw] = 0.0
    for run in range(joining.first_run[group], joining.first_run[group + 1]):
        pool, draw = joining.run[run, 0], joining.run[run, 1]
        here = scratch.tail[pool, joining.run[run, 2]] - scratch.tail[pool, joining.run[run, 3]]
        scratch.tied[draw] += here
        scratch.left[draw] -= here
    for draw in range(first, end):
        row = scratch.polynomial[draw]
        for k in range(1, row.size):
            row[k] = 0.0
        row[0] = 1.0
        start = joining.first_poll[draw]
        for looked in range(joining.first_poll[draw + 1] - start):
            scale = joining.inverse[start + looked]
            for k in range(looked + 1, -1, -1):
                value = 0.0
                if k <= looked:
                    value += row[k] * (scratch.left[draw] - joining.distinct * (looked - k))
                if k > 0:
                    value += row[k - 1] * (scratch.tied[draw] - joining.distinct * (k - 1))
                row[k] = value * scale
        scratch.factor[draw] = row[0]
    for own in range(first, end):
        joined = 0.0
        for node in range(joining.nodes.size):
            product = joining.weights[node]
            for draw in range(first, end):
                value, slope = 0.0, 0.0
                for k in range(scratch.polynomial.shape[1] - 1, -1, -1):
                    slope = slope * joining.nodes[node] + value
                    value = value * joining.nodes[node] + scratch.polynomial[draw, k]
                product *= slope if draw == own else value
            joined += product
        scratch.share[own] = joined / max(scratch.tied[own], 1.0)


@kernel(inline="always")
def add_joining_law(joining, scratch, sums, piece):  # type: ignore[no-untyped-def]
    """Add the joining law at the tails in `scratch` to `sums`, shape (piece, pool, level).

    Returns the probability that an arrival is blocked.
    """
    tail, top, left, factor = scratch.tail, scratch.top, scratch.left, scratch.factor
    run_of, inverse = joining.run, joining.inverse
    for group in range(joining.announced):
        first_run, end_run = joining.first_run[group], joining.first_run[group + 1]
        total = 0.0
        for run in range(first_run, end_run):
            pool = run_of[run, 0]
            total += tail[pool, run_of[run, 2]] - tail[pool, run_of[run, 3]]
        if total > 0.0:
            for run in range(first_run, end_run):
                pool = run_of[run, 0]
                for level in range(run_of[run, 2], min(run_of[run, 3], top[pool])):
                    here = tail[pool, level] - tail[pool, level + 1]
                    sums[piece, pool, level] += here / total
            return 0.0
    blocked = 1.0 if joining.probability.size == 0 else 0.0
    for branch in range(joining.probability.size):
        first_draw, end_draw = joining.first_draw[branch], joining.first_draw[branch + 1]
        for draw in range(first_draw, end_draw):
            left[draw] = joining.size[draw]
            factor[draw] = 1.0
        before = joining.probability[branch]
        for group in range(joining.first_group[branch], joining.first_group[branch + 1]):
            first_run, end_run = joining.first_run[group], joining.first_run[group + 1]
            total = 0.0
            for run in range(first_run, end_run):
                pool = run_of[run, 0]
                total += tail[pool, run_of[run, 2]] - tail[pool, run_of[run, 3]]
            if total == 0.0:
                continue
            own = joining.group_draw[group]
            if own < 0:
                _share_between_draws(joining, group, first_draw, end_draw, scratch)
            else:
                worse = left[own] - total
                left[own] = worse
                value = 1.0
                for look in range(joining.first_poll[own], joining.first_poll[own + 1]):
                    value *= worse * inverse[look]
                    worse -= joining.distinct
                factor[own] = value
            after = joining.probability[branch]
            for draw in range(first_draw, end_draw):
                after *= factor[draw]
            for run in range(first_run, end_run):
                pool = run_of[run, 0]
                if own < 0:
                    share = joining.probability[branch] * scratch.share[run_of[run, 1]]
                else:
                    share = (before - after) / total
                for level in range(run_of[run, 2], min(run_of[run, 3], top[pool])):
                    sums[piece, pool, level] += share * (tail[pool, level] - tail[pool, level + 1])
            before = after
            if after == 0.0:
                break
        blocked += before
    return blocked


@kernel(inline="always")
def _add_products(scratch, sums):  # type: ignore[no-untyped-def]
    tail = scratch.tail
    for pool in range(tail.shape[0]):
        for level in range(min(sums.shape[1], scratch.top[pool])):
            held = tail[pool, level] - tail[pool, level + 1]
            for other in range(pool + 1):
                for k in range(min(sums.shape[1], scratch.top[other])):
                    sums[pool, level, other, k] += held * (tail[other, k] - tail[other, k + 1])


@kernel(inline="always")
def observe(row, before, piece, joining, scratch, observations):  # type: ignore[no-untyped-def]
    """Add the present state to the sums of a piece.

    Parameters
    ----------
    row : array of uint64, shape (4 * code,)
        What happened in the piece, as `advance` in :mod:`manyserver.simulation.server_kernel`
        counts it.
    before : array of int64, shape (pool, level)
        Servers with at least so many jobs when the piece began.
    piece : int
    joining : JoiningTables
    scratch : Scratch
    observations : Observations
    """
    jobs, work = read_tails(row, before, piece, joining, scratch, observations)
    blocked = add_joining_law(joining, scratch, observations.joining, piece)
    add_totals(jobs, work, blocked, piece, joining, scratch, observations)


@kernel(inline="always")
def jump_moments(speed, up, down):  # type: ignore[no-untyped-def]
    """Return the first, the mixed and the second moment of jumps of w or v, in one pool.

    The mixed one is with those of l. One state is given by numbers, or several by vectors.
    """
    return speed * (up - down), speed * (up + down), speed * speed * (up + down)


@kernel(inline="always")
def drift_terms(h, jobs, work, second, of_l, of_w, of_v):  # type: ignore[no-untyped-def]
    """Return the drifts of `DRIFTS`, from the functions and the moments of their jumps, per h.

    One state is given by numbers, or several by vectors.
    """
    m_l, s_l = of_l
    m_w, s_lw, s_w = of_w
    m_v, s_lv, s_v = of_v
    return (
        m_l,
        m_w,
        m_v,
        2.0 * jobs * m_l + h * s_l,
        jobs * m_w + work * m_l + h * s_lw,
        2.0 * work * m_w + h * s_w,
        jobs * m_v + second * m_l + h * s_lv,
        work * m_v + second * m_w,
        2.0 * second * m_v + h * s_v,
        3.0 * jobs * jobs * m_l + 3.0 * jobs * h * s_l + h * h * m_l,
    )


@kernel(inline="always")
def _add_drifts(jobs, work, accepted, piece, joining, scratch, observations):  # type: ignore[no-untyped-def]
    """Add the drifts at the state whose tails are in `scratch`."""
    h = 1.0 / joining.servers
    second = 0.0
    m_w, s_lw, s_w, m_v, s_lv, s_v = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for pool in range(joining.speed.size):
        speed = joining.speed[pool]
        tail = scratch.tail[pool]
        one, two = tail[1], tail[2]
        three = tail[3] if tail.size > 3 else 0.0
        second += speed * two * h
        new = observations.joining[piece, pool]
        up = joining.arrival_rate * (new[0] - scratch.summed[pool, 0])
        first, mixed, square = jump_moments(speed, up, speed * (one - two) * h)
        m_w, s_lw, s_w = m_w + first, s_lw + mixed, s_w + square
        up = joining.arrival_rate * (new[1] - scratch.summed[pool, 1])
        first, mixed, square = jump_moments(speed, up, speed * (two - three) * h)
        m_v, s_lv, s_v = m_v + first, s_lv + mixed, s_v + square
    of_l = (accepted - work, accepted + work)
    terms = drift_terms(h, jobs, work, second, of_l, (m_w, s_lw, s_w), (m_v, s_lv, s_v))
    for function in range(len(terms)):
        observations.drifts[piece, function] += terms[function]


@kernel(inline="always")
def add_totals(jobs, work, blocked, piece, joining, scratch, observations):  # type: ignore[no-untyped-def]
    """Add what all kernels sample alike: squares and products of the numbers of servers."""
    observations.squared_jobs[piece] += jobs * jobs
    observations.blocked[piece] += blocked
    _add_drifts(
        jobs, work, joining.arrival_rate * (1.0 - blocked), piece, joining, scratch, observations
    )
    if observations.products.shape[2] > 0 and observations.taken[piece] % MOMENT_PERIOD == 0:
        _add_products(scratch, observations.products[piece])
        observations.multiplied[piece] += 1
    observations.taken[piece] += 1
