"""An independent chain of PULL: every server by itself, with the router that has its message."""

import numpy as np

from manyserver import System

State = tuple[tuple[int, int], ...]
"""Jobs and router of every server; router -1 if it is busy."""


def servers_with_messages(system: System, routers: int) -> tuple[list[State], np.ndarray, float]:
    """Return the states, their stationary law, and the probability that an arrival is blocked."""
    pool_of = [pool for pool, count in enumerate(system.counts) for _ in range(count)]
    n = len(pool_of)
    blocked: dict[State, float] = {}
    states: list[State] = [((0, 0),) * n]
    number = {states[0]: 0}
    rates: list[tuple[int, int, float]] = []
    for state in states:  # grows while new states are found
        moves: list[tuple[State, float]] = []
        blocked[state] = 0.0
        for router in range(routers):
            holders = [i for i, (_, own) in enumerate(state) if own == router]
            for i in holders or range(n):
                rate = system.arrival_rate * n / routers / len(holders or state)
                jobs = state[i][0]
                if jobs == system.pools[pool_of[i]].buffer:
                    blocked[state] += rate / (system.arrival_rate * n)
                else:
                    moves.append((_with(state, i, (jobs + 1, -1)), rate))
        for i, (jobs, _) in enumerate(state):
            speed = float(system.speeds[pool_of[i]])
            if jobs > 1:
                moves.append((_with(state, i, (jobs - 1, -1)), speed))
            elif jobs == 1:
                moves += [(_with(state, i, (0, r)), speed / routers) for r in range(routers)]
        for target, rate in moves:
            if target not in number:
                number[target] = len(states)
                states.append(target)
            rates.append((number[state], number[target], rate))
    generator = np.zeros((len(states), len(states)))
    for source, target_number, rate in rates:
        generator[source, target_number] += rate
    generator -= np.diag(generator.sum(axis=1))
    generator[:, -1] = 1.0
    law = np.linalg.solve(generator.T, np.eye(len(states))[-1])
    return states, law, float(law @ [blocked[state] for state in states])


def _with(state: State, server: int, own: tuple[int, int]) -> State:
    return (*state[:server], own, *state[server + 1 :])
