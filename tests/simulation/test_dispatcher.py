"""Round robin, least work and a central queue: against slow twins, closed forms and each other."""

import itertools

import numpy as np
import pytest
from tests.registry import POOLS, followed_policies

import manyserver as ms
from manyserver.disciplines import discipline
from manyserver.policies import Policy
from manyserver.simulation.jobs.dispatcher import _cycle
from manyserver.simulation.jobs.replica import JobReplica

ONE = [ms.Pool(1, 1)]
SKEWED = ms.size_law("hyperexponential", scv=4)


def nginx(weights: np.ndarray, steps: int) -> list[int]:
    """Go round servers as nginx does, one by one."""
    current, chosen = np.zeros(len(weights), dtype=int), []
    for _ in range(steps):
        current += weights
        best = int(current.argmax())
        current[best] -= weights.sum()
        chosen.append(best)
    return chosen


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 3, 2), (5, 1, 1), (2, 2, 7)])
def test_cycle_is_that_of_nginx(weights: tuple[int, ...]) -> None:
    system = ms.System(0.5, POOLS, n_servers=8)
    each = np.repeat(weights, system.counts)
    expected = nginx(each, 2 * each.sum())
    assert expected[: each.sum()] == expected[each.sum() :]
    assert _cycle(system, weights).tolist() == expected[: each.sum()]


@pytest.mark.parametrize("policy", followed_policies(), ids=str)
@pytest.mark.parametrize("order", ["ps", "fcfs"])
@pytest.mark.parametrize("moves", [1, 4])
def test_servers_are_busy_until_the_dispatcher_says(policy: Policy, order: str, moves: int) -> None:
    system = ms.System(0.45, POOLS, n_servers=40)
    start = np.concatenate([np.ones((3, 3)), np.zeros((3, 1))], axis=1)
    replica = JobReplica(system, policy, SKEWED, discipline(order), start, (1, moves))
    for _ in range(moves):
        replica.warm_up(round(50 * replica.rate))
    free, speed = replica.dispatcher.free, np.repeat(system.speeds, system.counts)
    if not policy.by_work:
        assert not free.size
        return
    busy = replica.servers.code[:40] % replica.levels > 0
    until = replica.servers.busy_until(replica.levels, speed)
    # The time of the last arrival is that up to which servers are brought up to date.
    assert free[busy] == pytest.approx(until[busy], abs=1e-9)
    assert np.all(free[~busy] <= replica.now + 1e-9)
    heap, first = replica.dispatcher.heap, replica.dispatcher.first
    if heap.size:
        assert sorted(heap) == list(range(40))
        for begin, end in itertools.pairwise(first):
            own = heap[begin:end]
            assert len(set(speed[own])) == 1
            for place in range(1, len(own)):
                assert free[own[(place - 1) // 2]] <= free[own[place]]


@pytest.mark.parametrize("d", [None, 2])
def test_the_work_does_not_depend_on_the_discipline(d: int | None) -> None:
    system = ms.System(0.7, POOLS, n_servers=8)
    ps, fcfs = (
        ms.simulate(
            system,
            ms.policy("least_work", d=d),
            sizes=SKEWED,
            discipline=order,
            horizon=500,
            start=np.array([[1.0, 0.0]] * 3),
            control_variates=False,
        )
        for order in ("ps", "fcfs")
    )
    for name in ("pool_share", "pool_utilization", "longest_queue_tail"):
        same = slice(0, 2) if name == "longest_queue_tail" else slice(None)
        assert ps[name].values[same] == pytest.approx(fcfs[name].values[same], rel=1e-9)
    assert float(ps.little_residual) < 1e-9
    assert float(ps.sojourn_mean) != pytest.approx(float(fcfs.sojourn_mean), rel=1e-3)


@pytest.mark.parametrize("name", ["round_robin", "least_work", "central_queue"])
def test_one_server_is_pollaczek_khinchine(name: str) -> None:
    """4 standard errors, 3 policies: a false alarm in 5000 seeds."""
    system = ms.System(0.6, ONE, n_servers=1)
    result = ms.simulate(system, ms.policy(name), sizes=SKEWED, horizon=20_000)
    error = abs(float(result.waiting_mean) - 0.6 * (1 + 4) / (2 * 0.4))
    assert error <= 2 * float(result.waiting_mean_half_width)


def test_least_work_without_room_to_wait() -> None:
    """Both servers are looked at, so that it is M/M/2/2; a false alarm in 15 000 seeds."""
    system = ms.System(0.8, [ms.Pool(1, 1, 1)], n_servers=2)
    result = ms.simulate(system, ms.policy("least_work", d=2), sizes=SKEWED, horizon=5000)
    error = abs(float(result.blocking_probability) - ms.erlang_b(2, 1.6))
    assert error <= 2 * float(result.blocking_probability_half_width)


def test_one_queue_is_the_least_work_of_all() -> None:
    system = ms.System(0.7, POOLS, n_servers=8)
    results = [
        ms.simulate(system, ms.policy(name), sizes=SKEWED, discipline="fcfs", horizon=200)
        for name in ("central_queue", "least_work")
    ]
    assert results[0].sojourn_mean == results[1].sojourn_mean


def test_more_knowledge_is_better() -> None:
    """Compared with the same arrivals, so that the order is certain."""
    names = ["central_queue", "jsq", "round_robin", "random"]
    system = ms.System(0.8, ONE, n_servers=10)
    policies = [ms.policy(name) for name in names]
    result = ms.compare(system, policies, against="previous", precision=0.05)
    gain = result.sojourn_mean_difference[1:] - 2 * result.sojourn_mean_difference_half_width[1:]
    assert np.all(gain > 0)
