"""The part of the jobs that goes to each pool, however it is computed."""

import numpy as np
import pytest

import manyserver as ms
from manyserver.policies import Policy

ENDLESS = [ms.Pool("1/2", "1/2"), ms.Pool("1/2", "3/2")]
BOUNDED = [ms.Pool("1/2", "1/2", 3), ms.Pool("1/2", "3/2", 1)]


@pytest.mark.parametrize("pools", [ENDLESS, BOUNDED], ids=["endless", "bounded"])
@pytest.mark.parametrize(
    "policy",
    [
        ms.policy("sed"),
        ms.policy("scheme1", d=[1, 1]),
        ms.policy("pull", routers=2),
    ],
    ids=str,
)
def test_simulated_as_in_the_exact_chain(policy: Policy, pools: list[ms.Pool]) -> None:
    """4 standard errors of about 32 batches, 12 shares: a false alarm in 1000 seeds."""
    system = ms.System(0.6, pools, n_servers=4)
    exact = ms.exact(system, policy, tolerance=1e-6).pool_share
    assert exact.sum() == pytest.approx(1, abs=1e-14)
    for controlled in (False, True):
        result = ms.simulate(system, policy, horizon=4000, seed=5, control_variates=controlled)
        assert result.pool_share.sum() == pytest.approx(1, abs=1e-12)
        error = np.abs(result.pool_share - exact)
        assert np.all(error <= 2 * result.pool_share_half_width + 1e-5)


def test_of_a_given_split() -> None:
    random = ms.policy("random", probabilities=[0.2, 0.8])
    system = ms.System(0.6, ENDLESS, n_servers=2)
    for result in (ms.exact(system, random), ms.fixed_point(system, random)):
        assert result.pool_share.values == pytest.approx([0.2, 0.8], abs=1e-9)


@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
def test_of_many_servers(discipline: str) -> None:
    """What joins a pool of the limit leaves it: speeds times busy servers."""
    policy = ms.policy("scheme1", d=[1, 1])
    sizes = ms.size_law("erlang", shape=2)
    result = ms.fixed_point(ms.System(0.6, ENDLESS), policy, sizes=sizes, discipline=discipline)
    busy = result.queue_tail.values[:, 1]
    assert result.pool_share.values == pytest.approx(busy * [0.25, 0.75] / 0.6, abs=1e-9)
