"""An independent chain for the same system: every server by itself, all looks listed."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from manyserver import System
from manyserver.policies import Branch, Policy


def single_servers(system: System, policy: Policy) -> tuple[dict[tuple[int, ...], float], float]:
    """Stationary law of the chain of single servers with finite buffers, and P(blocked).

    Every set of servers that an arrival may look at is listed, and compared by preference.
    """
    pool_of = [pool for pool, count in enumerate(system.counts) for _ in range(count)]
    buffers = [system.pools[pool].buffer or 0 for pool in pool_of]
    states = list(itertools.product(*(range(buffer + 1) for buffer in buffers)))
    number = {state: i for i, state in enumerate(states)}
    generator = np.zeros((len(states), len(states)))
    blocked = np.zeros(len(states))
    for state in states:
        for server, probability in _joins(state, buffers, pool_of, system, policy).items():
            if state[server] == buffers[server]:
                blocked[number[state]] += probability
            else:
                more = (*state[:server], state[server] + 1, *state[server + 1 :])
                rate = system.arrival_rate * len(state) * probability
                generator[number[state], number[more]] += rate
        for server, jobs in enumerate(state):
            if jobs:
                less = (*state[:server], jobs - 1, *state[server + 1 :])
                generator[number[state], number[less]] += system.speeds[pool_of[server]]
    generator -= np.diag(generator.sum(axis=1))
    equations = np.vstack([generator.T, np.ones(len(states))])
    law = np.linalg.lstsq(equations, np.append(np.zeros(len(states)), 1.0))[0]
    return dict(zip(states, law, strict=True)), float(law @ blocked)


def _joins(
    state: tuple[int, ...],
    buffers: list[int],
    pool_of: list[int],
    system: System,
    policy: Policy,
) -> dict[int, float]:
    def key(server: int) -> tuple[bool, Fraction, Fraction]:
        speed = system.pools[pool_of[server]].speed
        if state[server] == buffers[server]:
            return True, Fraction(0), Fraction(0)
        tie = -speed if policy.ties == "fastest" else Fraction(0)
        return False, policy.preference(state[server], speed), tie

    joins: dict[int, float] = defaultdict(float)
    sampling = policy.sampling(system)
    known = math.inf if sampling.announced is None else sampling.announced
    announced = [server for server, jobs in enumerate(state) if jobs < min(known, buffers[server])]
    if announced or not sampling.branches:
        candidates = announced or list(range(len(state)))
        best = min(map(key, candidates))
        tied = [server for server in candidates if key(server) == best]
        return dict.fromkeys(tied, 1 / len(tied))
    for branch in sampling.branches:
        for looked_at, probability in _looks(branch, pool_of, sampling.replacement):
            best = min(map(key, looked_at))
            tied = [server for server in looked_at if key(server) == best]
            for server in tied:
                joins[server] += probability / len(tied)
    assert math.isclose(sum(joins.values()), 1)
    return joins


def _looks(
    branch: Branch, pool_of: list[int], replacement: bool
) -> Iterator[tuple[tuple[int, ...], float]]:
    choices = []
    for draw in branch.draws:
        servers = [server for server, pool in enumerate(pool_of) if pool in draw.pools]
        if replacement:
            choices.append(list(itertools.product(servers, repeat=draw.count)))
        else:
            choices.append(list(itertools.combinations(servers, draw.count)))
    for parts in itertools.product(*choices):
        looked_at = tuple(itertools.chain(*parts))
        yield looked_at, branch.probability / math.prod(map(len, choices))
