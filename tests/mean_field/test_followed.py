"""The limit of round robin, least work and a central queue, against closed forms and simulation."""

import math

import numpy as np
import pytest
from tests.registry import POOLS

import manyserver as ms

ONE = [ms.Pool(1, 1)]
LAWS = [
    ms.size_law("exponential"),
    ms.size_law("erlang", shape=4),
    ms.size_law("hyperexponential", scv=4),
]


def log_tail(w: np.ndarray, rate: float, d: int) -> np.ndarray:
    """Logarithm of the fraction of servers with more work, Hellemans and Van Houdt (2018)."""
    inner = rate + (rate ** (1 - d) - rate) * np.exp((d - 1) * w)
    return np.asarray(np.log(inner) / (1 - d))


@pytest.mark.parametrize("rate", [0.1, 0.7, 0.99])
@pytest.mark.parametrize("d", [2, 3, 10])
def test_least_work_of_exponential_sizes(rate: float, d: int) -> None:
    result = ms.fixed_point(ms.System(rate, ONE), ms.policy("least_work", d=d))
    mean = math.fsum(rate ** (d * n) / (1 + n * (d - 1)) for n in range(5000))
    assert float(result.sojourn_mean) == pytest.approx(mean, rel=1e-10)
    assert float(result.waiting_probability) == pytest.approx(rate**d)
    assert float(result.residual) < 1e-10
    part = 1 - result["quantile"].values
    work = result.work_quantile.values
    inside = work > 0
    assert log_tail(work, rate, d)[inside] == pytest.approx(np.log(part)[inside], rel=1e-8)
    # The sojourn time of a job is longer with the tail of the work over the load.
    stays = result.sojourn_quantile.values
    assert log_tail(stays, rate, d) == pytest.approx(np.log(rate * part), rel=1e-8)
    waits = result.waiting_quantile.values
    some = waits > 0
    assert d * log_tail(waits, rate, d)[some] == pytest.approx(np.log(part)[some], rel=1e-8)


@pytest.mark.parametrize("sizes", LAWS, ids=str)
@pytest.mark.parametrize("speed", [1, 2])
def test_one_choice_is_pollaczek_khinchine(sizes: ms.SizeLaw, speed: int) -> None:
    pools = [ms.Pool("1/4", speed), ms.Pool("3/4", speed)]
    result = ms.fixed_point(
        ms.System(0.9 * speed, pools), ms.policy("least_work", d=1), sizes=sizes
    )
    waiting = 0.9 * (1 + sizes.scv) / (2 * 0.1) / speed
    assert float(result.waiting_mean) == pytest.approx(waiting, rel=1e-10)
    assert float(result.work_mean) == pytest.approx(waiting, rel=1e-10)
    assert result.pool_share.values == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize("sizes", LAWS, ids=str)
def test_many_servers_come_close_to_least_work(sizes: ms.SizeLaw) -> None:
    """Of order 1/N, which a difference of two N shows; 4 standard errors, a false alarm in 5000."""
    policy = ms.policy("least_work", d=2)
    limit = float(ms.fixed_point(ms.System(0.7, ONE), policy, sizes=sizes).sojourn_mean)
    runs = [
        ms.simulate(ms.System(0.7, ONE, n_servers=n), policy, sizes=sizes, precision=0.001)
        for n in (500, 1000)
    ]
    few, many = (float(run.sojourn_mean) for run in runs)
    error = math.hypot(*(w * float(r.sojourn_mean_half_width) for w, r in zip((1, 2), runs)))  # noqa: B905
    assert abs(2 * many - few - limit) <= 2 * error + 1e-4


def test_round_robin_of_many_servers() -> None:
    """Queues D/M/1; of order 1/N, 4 standard errors of 3 pools: a false alarm in 5000 seeds."""
    system, policy = ms.System(0.4, POOLS), ms.policy("round_robin")
    limit = ms.fixed_point(system, policy)
    same = ms.fixed_point(system, ms.policy("weighted_round_robin", weights=[2, 2, 2]))
    assert same.queue_mean.equals(limit.queue_mean)
    finite = ms.simulate(ms.System(0.4, POOLS, n_servers=2000), policy, precision=0.005)
    error = np.abs(finite.queue_mean - limit.queue_mean)
    assert np.all(error <= 2 * finite.queue_mean_half_width + 0.002 * limit.queue_mean)
    # The probability that an arrival finds a server of load 0.8 busy solves this.
    busy = limit.queue_tail.values[0, 2] / 0.8
    assert busy == pytest.approx(math.exp(-(1 - busy) / 0.8), rel=1e-12)
    balance = limit.queue_tail.values[:, 1] @ (system.fractions * system.speeds)
    assert balance == pytest.approx(0.4, rel=1e-12)


def test_nobody_waits_in_one_queue_of_many_servers() -> None:
    for name in ("central_queue", "least_work"):
        for sizes in LAWS:
            result = ms.fixed_point(ms.System(0.7, POOLS), ms.policy(name), sizes=sizes)
            assert float(result.waiting_probability) == pytest.approx(0, abs=1e-12)
            assert result.pool_utilization.values == pytest.approx([0, 1, 0.65])


@pytest.mark.parametrize(
    ("policy", "pools", "sizes", "discipline", "told"),
    [
        (ms.policy("least_work", d=2), POOLS, None, None, "equal speeds"),
        (ms.policy("least_work", d=2), ONE, None, "ps", "'fcfs' only"),
        (ms.policy("least_work", d=2), ONE, ms.size_law("lognormal", scv=4), None, "phase type"),
        (ms.policy("least_work", d=2), [ms.Pool(1, 1, 3)], None, None, "buffer None"),
        (
            ms.policy("weighted_round_robin", weights=[1, 3, 2]),
            POOLS,
            None,
            None,
            "equal weights",
        ),
        (ms.policy("round_robin"), ONE, LAWS[1], None, "exponential sizes only"),
        (ms.policy("round_robin"), [ms.Pool(1, 1, 3)], None, None, "buffer None"),
    ],
)
def test_what_is_not_known_is_told(
    policy: ms.Policy, pools: list[ms.Pool], sizes: ms.SizeLaw, discipline: str, told: str
) -> None:
    with pytest.raises(ms.NotKnown, match=told):
        ms.fixed_point(ms.System(0.4, pools), policy, sizes=sizes, discipline=discipline)
