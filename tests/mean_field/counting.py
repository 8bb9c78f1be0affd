"""A small simulation of many servers, by how many of each pool hold how many jobs."""

import random

import numpy as np

import manyserver as ms
from manyserver.policies import Policy

LEVELS = 16


def simulate_counts(
    system: ms.System, policy: Policy, n: int, start: np.ndarray, horizon: float, seed: int
) -> np.ndarray:
    """Jobs per server of every pool at the horizon; draws look at one server of all.

    Servers are drawn from a list of all of them, and the best announced ones from a list of those
    of each class, so that nothing is shared with the package but the rank table.
    """
    rng = random.Random(seed)
    sampling = policy.sampling(system)
    ranks = policy.rank_table(system, LEVELS)
    announced = sampling.announced_levels(system, LEVELS)
    n_pools = len(system.pools)
    classes: list[list[list[int]]] = [[[] for _ in range(LEVELS)] for _ in range(n_pools)]
    pool_of: list[int] = []
    jobs: list[int] = []
    place: list[int] = []
    for pool, row in enumerate(start):
        size = round(float(system.fractions[pool]) * n)
        heights = np.round(np.append(row, 0.0) * size).astype(int)
        for level, count in enumerate(-np.diff(heights)):
            for _ in range(count):
                place.append(len(classes[pool][level]))
                classes[pool][level].append(len(jobs))
                pool_of.append(pool)
                jobs.append(level)
    order = sorted(
        (int(ranks[pool, level]), pool, level)
        for pool in range(n_pools)
        for level in range(LEVELS)
        if announced[pool, level]
    )

    def move(server: int, step: int) -> None:
        here = classes[pool_of[server]][jobs[server]]
        last = here[-1]
        here[place[server]] = last
        place[last] = place[server]
        here.pop()
        jobs[server] += step
        there = classes[pool_of[server]][jobs[server]]
        place[server] = len(there)
        there.append(server)

    def best_announced() -> int | None:
        best, ties = None, []
        for rank, pool, level in order:
            if best is not None and rank > best:
                break
            if classes[pool][level]:
                best = rank
                ties.append(classes[pool][level])
        if best is None:
            return None
        number = rng.randrange(sum(map(len, ties)))
        for servers in ties:
            if number < len(servers):
                return servers[number]
            number -= len(servers)
        raise AssertionError

    speeds = [float(pool.speed) for pool in system.pools]
    fastest = max(speeds)
    total = n * (system.arrival_rate + fastest)
    time = rng.expovariate(total)
    while time < horizon:
        if rng.random() * total < n * system.arrival_rate:
            server = best_announced()
            server = rng.randrange(n) if server is None else server
            move(server, 1)
        else:
            server = rng.randrange(n)
            if jobs[server] and rng.random() * fastest < speeds[pool_of[server]]:
                move(server, -1)
        time += rng.expovariate(total)
    held = np.zeros(n_pools)
    np.add.at(held, pool_of, jobs)
    return np.asarray(held / (system.fractions * n))
