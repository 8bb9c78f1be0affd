"""Kernels for one policy each, as fast as they can be written by hand, for `kernel.py`.

They simulate the chain of :mod:`manyserver.simulation.server_kernel` without a branch that cannot
be predicted, and measure the time integrals of the queue tails, and nothing else.
"""

import numpy as np
from numba import njit

from manyserver.simulation.random import next_word, wide_product

__all__ = ["four_pools", "one_pool", "two_pools"]

_1 = np.uint64(1)


@njit
def one_pool(jobs, areas, rng, arrivals, steps):  # type: ignore[no-untyped-def]
    """SQ(2) on one pool.

    Parameters
    ----------
    jobs : array of uint8, shape (server,)
        Changed in place.
    areas : array of int64, shape (level,)
        Added to: the steps that remain after each arrival that makes a server reach the level,
        minus those that remain after each departure from it.
    rng : array of uint64, shape (4,)
        Changed in place.
    arrivals : uint64
        Part of the steps that are arrivals, times 2**64.
    steps : int
    """
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    servers = np.uint64(jobs.size)
    for step in range(steps):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        one, word = wide_product(word, servers)
        other, word = wide_product(word, servers - _1)
        other += np.uint64(other >= one)
        arrival = word < arrivals
        first, second = np.int64(jobs[one]), np.int64(jobs[other])
        better = arrival & (second < first)
        server, level = (other if better else one), (second if better else first)
        remaining = steps - step - 1
        areas[level + np.int64(arrival)] += remaining if arrival else -remaining
        jobs[server] = max(level + 2 * np.int64(arrival) - 1, 0)
    areas[0] = 0
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3


@njit
def two_pools(jobs, areas, rng, bounds, weights, steps):  # type: ignore[no-untyped-def]
    """Two servers of each of two pools of one size; ties go to the second pool.

    As :func:`one_pool`, with `areas` of shape (2 * level,), pool after pool. A step is an arrival
    if its word is below the first of the two `bounds`, and a departure from the first pool if it
    is below the second one. A server's jobs are multiplied by the pool's weight to compare them.
    """
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    half, levels = np.uint64(jobs.size // 2), np.int64(areas.size // 2)
    slow, fast = weights[0], weights[1]
    for step in range(steps):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        a, word = wide_product(word, half)
        b, place = wide_product(word, half - _1)
        b += np.uint64(b >= a)
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        c, word = wide_product(word, half)
        d, word = wide_product(word, half - _1)
        d += np.uint64(d >= c)
        c, d = c + half, d + half
        arrival = place < bounds[0]
        of_a, of_b = np.int64(jobs[a]), np.int64(jobs[b])
        of_c, of_d = np.int64(jobs[c]), np.int64(jobs[d])
        better = arrival & (of_b < of_a)
        one, of_one = (b if better else a), (of_b if better else of_a)
        better = arrival & (of_d < of_c)
        two, of_two = (d if better else c), (of_d if better else of_c)
        second = (arrival & (fast * of_two <= slow * of_one)) | (place >= bounds[1])
        server, level = (two if second else one), (of_two if second else of_one)
        remaining = steps - step - 1
        row = levels * np.int64(second) + level + np.int64(arrival)
        areas[row] += remaining if arrival else -remaining
        jobs[server] = max(level + 2 * np.int64(arrival) - 1, 0)
    areas[0] = areas[levels] = 0
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3


@njit
def four_pools(jobs, areas, rng, bounds, steps):  # type: ignore[no-untyped-def]
    """Join the shortest of four queues, one of each pool of one size; ties go to the last pool.

    As :func:`two_pools`, with four bounds: of arrivals, and of departures from the first pools.
    """
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    size, levels = np.uint64(jobs.size // 4), np.int64(areas.size // 4)
    for step in range(steps):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        a, word = wide_product(word, size)
        b, place = wide_product(word, size)
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        c, word = wide_product(word, size)
        d, word = wide_product(word, size)
        b, c, d = b + size, c + size + size, d + size + size + size
        arrival = place < bounds[0]
        pool = 0
        for bound in range(1, 4):
            pool += place >= bounds[bound]
        server, best = a, 4 * np.int64(jobs[a]) + 3
        for number, other in enumerate((b, c, d)):
            key = 4 * np.int64(jobs[other]) + 2 - number
            better = (arrival & (key < best)) | (pool == number + 1)
            server, best = (other if better else server), (key if better else best)
        pool, level = 3 - best % 4, best // 4
        remaining = steps - step - 1
        areas[levels * pool + level + np.int64(arrival)] += remaining if arrival else -remaining
        jobs[server] = max(level + 2 * np.int64(arrival) - 1, 0)
    for pool in range(4):
        areas[levels * pool] = 0
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
