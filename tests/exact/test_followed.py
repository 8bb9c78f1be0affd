"""Round robin and a central queue without approximation."""

import math

import numpy as np
import pytest

import manyserver as ms

ONE = [ms.Pool(1, 1)]
UNEQUAL = [ms.Pool("1/2", "1/2"), ms.Pool("1/2", "3/2")]


def test_one_queue_of_equal_servers() -> None:
    result = ms.exact(ms.System(10 / 14, ONE, n_servers=14), ms.policy("central_queue"))
    waits = ms.erlang_c(14, 10.0)
    assert float(result.waiting_probability) == pytest.approx(waits, rel=1e-12)
    assert float(result.waiting_mean) == pytest.approx(waits / 4, rel=1e-12)
    assert float(result.sojourn_mean) == pytest.approx(1 + waits / 4, rel=1e-12)
    assert float(result.waiting_variance) == pytest.approx((2 * waits - waits**2) / 16, rel=1e-12)
    high = result.waiting_quantile.sel(quantile=0.99)
    assert waits * math.exp(-4 * float(high)) == pytest.approx(0.01, rel=1e-12)
    assert float(result.waiting_quantile.sel(quantile=0.5)) == 0


def test_one_queue_of_two_unequal_servers() -> None:
    """States by hand: both idle, the slow or the fast one busy, both; then a geometric queue."""
    rate, slow, fast = 1.2, 0.5, 1.5
    balance = np.array(
        [
            [-rate, slow, fast, 0],
            [0, -rate - slow, 0, fast],
            [rate, 0, -rate - fast, slow],
            [1, 1, 1, 1 / (1 - rate / 2)],
        ]
    )
    state = np.linalg.solve(balance, [0, 0, 0, 1])
    result = ms.exact(ms.System(0.6, UNEQUAL, n_servers=2), ms.policy("central_queue"))
    both = state[3] / (1 - rate / 2)
    assert float(result.waiting_probability) == pytest.approx(both, rel=1e-10)
    assert result.pool_utilization.values == pytest.approx(both + state[1:3], rel=1e-10)
    jobs = state[1] + state[2] + 2 * both + both * (rate / 2) / (1 - rate / 2)
    assert float(result.sojourn_mean) == pytest.approx(jobs / rate, rel=1e-10)


@pytest.mark.parametrize(
    ("policy", "rate"), [(ms.policy("central_queue"), 0.8), (ms.policy("round_robin"), 0.4)]
)
def test_simulated_alike(policy: ms.Policy, rate: float) -> None:
    """4 standard errors, at most 10 numbers: a false alarm in 1500 seeds."""
    system = ms.System(rate, UNEQUAL, n_servers=6)
    exact = ms.exact(system, policy)
    result = ms.simulate(system, policy, horizon=8000, seed=3)
    names = {"sojourn_mean", "waiting_probability", "waiting_mean", "pool_share", "queue_mean"}
    for name in names & {str(known) for known in exact.data_vars}:
        error = np.abs(result[name] - exact[name])
        assert np.all(error <= 2 * result[f"{name}_half_width"] + 1e-5), name


def test_round_robin_of_one_server_is_m_m_1() -> None:
    result = ms.exact(ms.System(0.8, ONE, n_servers=1), ms.policy("round_robin"))
    assert float(result.sojourn_mean) == pytest.approx(5, rel=1e-12)
    assert result.joining_rate.values == pytest.approx(0.8)


def test_round_robin_of_two_servers() -> None:
    """Two phases between arrivals: sigma (1 + (1 - sigma) / (2 rho))^2 = 1 has a quadratic root."""
    rate = 0.8
    result = ms.exact(ms.System(rate, ONE, n_servers=2), ms.policy("round_robin"))
    roots = np.roots([1, -(1 + 4 * rate), 4 * rate**2])
    sigma = float(roots[roots < 1][0])
    assert float(result.waiting_probability) == pytest.approx(sigma, rel=1e-12)
    assert float(result.sojourn_mean) == pytest.approx(1 / (1 - sigma), rel=1e-12)


def test_what_is_not_known_is_told() -> None:
    weighted = ms.policy("weighted_round_robin", weights=[1, 3])
    with pytest.raises(ms.NotKnown, match="equal weights"):
        ms.exact(ms.System(0.6, UNEQUAL, n_servers=4), weighted)
    with pytest.raises(ms.NotKnown, match="policy least_work: compares servers by the work"):
        ms.exact(ms.System(0.6, ONE, n_servers=2), ms.policy("least_work", d=2))
