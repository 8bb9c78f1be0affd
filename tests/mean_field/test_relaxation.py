"""Relaxation times where servers announce themselves: the limit, and exact chains."""

import numpy as np
import pytest

import manyserver as ms
from manyserver.exact.chain import build_chain
from manyserver.policies import Policy

ONE = [ms.Pool(1, 1)]
POLICIES = [
    ms.policy("jsq"),
    ms.policy("jsq", ties="fastest"),
    ms.policy("sed"),
    ms.policy("jiq"),
    ms.policy("threshold", threshold=2),
]


def exact_relaxation(system: ms.System, policy: Policy) -> float:
    """Time constant of the slowest mode of the chain."""
    caps = []
    for pool, count in zip(system.pools, system.counts, strict=True):
        assert pool.buffer is not None
        caps.append((pool.buffer,) * count)
    chain = build_chain(system, policy, tuple(caps))
    rates = (chain.up + chain.down).toarray()
    eigenvalues = np.sort(np.linalg.eigvals(rates - np.diag(rates.sum(axis=0))).real)
    assert eigenvalues[-1] == pytest.approx(0, abs=1e-10)
    return float(-1 / eigenvalues[-2])


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("rate", [0.3, 0.8, 0.95, 1.3])
def test_small_chains(policy: Policy, rate: float) -> None:
    """The estimate is at least half of the truth, and not much more."""
    for pools in (
        [ms.Pool(1, 1, buffer=5)],
        [ms.Pool("1/2", "1/5", buffer=4), ms.Pool("1/2", "9/5", buffer=4)],
    ):
        system = ms.System(rate, pools, 4)
        ratio = ms.relaxation_time(system, policy) / exact_relaxation(system, policy)
        assert 0.5 < ratio < 5


@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_one_pool_in_the_limit(rate: float) -> None:
    """JSQ forgets at the rate 1; thresholds at that of the linearised finite queues."""
    assert ms.relaxation_time(ms.System(rate, ONE), ms.policy("jsq")) == pytest.approx(1)
    system, policy = ms.System(rate, ONE), ms.policy("threshold", threshold=2)
    limit = ms.fixed_point(system, policy)
    start = limit.queue_tail.values.copy()
    start[0, 1:3] -= 1e-3
    time = ms.relaxation_time(system, policy, limit)
    path = ms.mean_field(system, policy, [8 * time, 9 * time], start=start)
    gone = np.abs(path.queue_tail.values[:, 0, 1] - limit.queue_tail.values[0, 1])
    assert gone[0] / gone[1] == pytest.approx(np.e, rel=0.02)


def test_pools_filled_one_after_the_other() -> None:
    """Between two critical loads an idle slow pool fills at the rate of its speed."""
    pools = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
    assert ms.relaxation_time(ms.System(0.95, pools), ms.policy("sed")) == pytest.approx(5)


def test_finite_systems_are_one_queue_near_a_critical_load() -> None:
    """N (sqrt(S) - sqrt(lambda))**2 is the gap of an M/M/1 queue."""
    for n in (10, 40):
        time = ms.relaxation_time(ms.System(0.99, ONE, n), ms.policy("jsq"))
        assert time == pytest.approx(1 + 1 / (n * (1 - 0.99**0.5) ** 2), rel=1e-12)
    many = ms.relaxation_time(ms.System(0.99, ONE, 10**8), ms.policy("jsq"))
    assert many == pytest.approx(1, rel=1e-3)


def test_load_one_is_approached_slowly() -> None:
    full = [ms.Pool(1, 1, buffer=4)]
    policy = ms.policy("jiq")
    assert ms.relaxation_time(ms.System(1.0, full), policy) == np.inf
    assert 1 < ms.relaxation_time(ms.System(1.0, full, 100), policy) < 1000
    with pytest.raises(ValueError, match=r"load is 1\.5; must be below one for an optimal"):
        ms.fixed_point(ms.System(1.5, full), ms.policy("optimal_split"))
