"""Announced servers and finite buffers: every output against the exact chain; stability."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import stdtrit
from tests.registry import BOUNDED, announced_policies, policies

import manyserver as ms
from manyserver.compare import compare
from manyserver.policies import Policy
from manyserver.simulation import saturation
from manyserver.simulation.saturation import refuse_unstable

UNEQUAL = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
OUTPUTS = (
    "queue_tail",
    "queue_mean",
    "jobs_per_server",
    "sojourn_mean",
    "waiting_probability",
    "blocking_probability",
    "messages_per_job",
)


def assert_close(result: xr.Dataset, exact: xr.Dataset, names: tuple[str, ...] = OUTPUTS) -> None:
    """Within 5 standard errors: a right value fails with probability 1e-6 to 2e-5.

    Tails below 0.02 are left out: intervals of what hardly ever happens are not to be relied on.
    """
    quantile = stdtrit(float(result.n_batches) - 1 - float(result.n_controls), 0.975)
    for name in names:
        actual, expected, half_width = xr.align(
            result[name], exact[name], result[name + "_half_width"], join="inner"
        )
        seen = expected.values > 0.02 if name == "queue_tail" else np.full(expected.shape, True)
        error = np.nan_to_num(half_width.values / quantile)
        difference = np.abs(actual.values - expected.values)
        assert (difference <= 5 * error + 1e-5)[seen].all(), name


@pytest.mark.parametrize("policy", [*policies(), *announced_policies()], ids=str)
def test_every_policy_with_buffers(policy: Policy, seed: int) -> None:
    """All of 40 policies and 20 values each fail with probability below 0.01 by chance."""
    system = ms.System(0.9, BOUNDED, n_servers=8)
    result = ms.simulate(system, policy, seed=(seed, 41), horizon=6000.0)
    assert bool(result.interval_reliable)
    exact = ms.exact(system, policy, tolerance=1e-9)
    names = OUTPUTS if policy.name != "pull" else OUTPUTS[:-1]
    assert_close(result, exact, names)
    assert float(result.blocking_probability) > 0.001


@pytest.mark.parametrize("policy", announced_policies(), ids=str)
def test_every_announced_policy(policy: Policy, seed: int) -> None:
    """As above, without buffers."""
    system = ms.System(0.5, [ms.Pool("1/3", "2/3"), ms.Pool("2/3", "7/6")], n_servers=3)
    result = ms.simulate(system, policy, seed=(seed, 42), precision=0.01)
    assert bool(result.precision_met)
    assert float(result.blocking_probability) == 0.0
    assert float(result.blocking_probability_half_width) == 0.0
    names = OUTPUTS if policy.name != "pull" else OUTPUTS[:-1]
    assert_close(result, ms.exact(system, policy, tolerance=1e-5), names)


def test_without_control_variates(seed: int) -> None:
    """Blocking and sojourn from the arrivals that were counted."""
    system = ms.System(1.2, BOUNDED, n_servers=8)
    for policy in (ms.policy("jiq", d=2), ms.policy("sq", d=2)):
        result = ms.simulate(
            system, policy, seed=(seed, 43), horizon=6000.0, control_variates=False
        )
        assert_close(result, ms.exact(system, policy, tolerance=1e-9))


@pytest.mark.parametrize("policy", [ms.policy("jsq"), ms.policy("jiq")], ids=str)
def test_erlang_loss(policy: Policy, seed: int) -> None:
    """Without room to wait, 100 servers of load 0.95 lose what Erlang's formula says."""
    system = ms.System(0.95, [ms.Pool(1, 1, buffer=1)], n_servers=100)
    result = ms.simulate(system, policy, seed=(seed, 44), horizon=1000.0)
    loss = 1.0
    for servers in range(1, 101):
        loss = 95 * loss / (servers + 95 * loss)
    half_width = float(result.blocking_probability_half_width)
    assert abs(float(result.blocking_probability) - loss) <= 2.5 * half_width
    assert half_width < 0.02 * loss
    assert float(result.waiting_probability) == 0.0
    assert float(result.sojourn_mean) == pytest.approx(1, abs=1e-9)


def test_one_message_for_every_busy_period(seed: int) -> None:
    """The idle servers that are joined have reported before."""
    system = ms.System(0.7, [ms.Pool(1, 1)], n_servers=1000)
    result = ms.simulate(system, ms.policy("jiq"), seed=(seed, 45), horizon=200.0)
    messages, width = (float(result["messages_per_job" + end]) for end in ("", "_half_width"))
    assert abs(messages - 1 + float(result.waiting_probability)) <= 2.5 * width
    assert 0 < width < 0.01


def test_difference_with_buffers(seed: int) -> None:
    system = ms.System(0.9, BOUNDED, n_servers=8)
    pair = [ms.policy("jsq"), ms.policy("jiq")]
    truth = [float(ms.exact(system, policy).sojourn_mean) for policy in pair]
    result = compare(system, pair, seed=(seed, 46), precision=0.005)
    half_width = float(result.sojourn_mean_difference_half_width[1])
    assert abs(float(result.sojourn_mean_difference[1]) - truth[1] + truth[0]) <= 2.5 * half_width
    assert result.variance_ratio_plain[1] > 2


def test_a_horizon_waits_for_a_slow_system(seed: int) -> None:
    """JSQ settles at once with many servers, and in many units of time with few at high load;
    the start is an empty system."""
    system = ms.System(0.9, [ms.Pool(1, 1)], n_servers=3)
    policy = ms.policy("jsq")
    result = ms.simulate(system, policy, seed=(seed, 47), horizon=6e4, start=np.array([[1.0, 0.0]]))
    assert float(result.autocorrelation_time) > 25
    assert bool(result.interval_reliable)
    assert_close(result, ms.exact(system, policy, tolerance=1e-5))


def test_saturation_as_in_the_exact_chain(seed: int) -> None:
    """Within 4 standard errors: fails by chance with probability 1e-4."""
    for rate in (0.3, 0.42):
        system = ms.System(rate, UNEQUAL, n_servers=2)
        margin = refuse_unstable(system, ms.policy("jiq"), (seed,))
        assert margin is not None
        busy = (2 * rate / 1.8) / (1 + rate / 1.8)
        expected = 1 - rate * busy / 2 / 0.1
        assert abs(float(margin.value) - expected) <= 2.1 * float(margin.half_width)
        assert float(margin.half_width) < 0.02
        other = refuse_unstable(system, ms.policy("jiq"), (seed, 1))
        assert other is not None
        assert margin.value != other.value


def test_where_nothing_can_saturate(seed: int) -> None:
    for pools in ([ms.Pool(1, 1)], UNEQUAL):
        assert refuse_unstable(ms.System(0.5, pools, 100), ms.policy("jsq"), (seed,)) is None
        assert refuse_unstable(ms.System(0.15, pools, 100), ms.policy("jiq"), (seed,)) is None
    assert refuse_unstable(ms.System(0.9, [ms.Pool(1, 1)], 100), ms.policy("jiq"), (seed,)) is None


def test_unstable_below_a_load_of_one() -> None:
    """JIQ with 50 slow servers of 100, at a load of 0.95."""
    system = ms.System(0.95, UNEQUAL, n_servers=100)
    jsq, jiq = ms.policy("jsq"), ms.policy("jiq")
    message = r"arrival_rate = 0\.95: policy jiq sends pool 0 0\.10"
    with pytest.raises(ms.UnstableSystem, match=message) as error:
        ms.simulate(system, jiq)
    assert error.value.pools == (0,)
    with pytest.raises(ms.UnstableSystem, match=message):
        compare(system, [jsq, jiq])


def test_several_routers_of_pull_saturate_a_slow_pool_earlier(seed: int) -> None:
    """A slow server of two gets 0.26 jobs per unit of time, and can do 0.2; JIQ is stable."""
    system = ms.System(0.5, UNEQUAL, n_servers=4)
    with pytest.raises(ms.UnstableSystem, match=r"policy pull sends pool 0 0\.1[23]"):
        refuse_unstable(system, ms.policy("pull", routers=2), (seed,))
    margin = refuse_unstable(system, ms.policy("jiq"), (seed,))
    assert margin is not None
    assert margin.value > 2 * margin.half_width


def test_undecided_stability_is_said(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The slow one of two servers gets just what it can serve at this rate."""
    monkeypatch.setattr(saturation, "MOST_STEPS", 4_000_000)
    refuse_unstable.cache_clear()
    rate = (0.1 + np.sqrt(0.01 + 4 * 0.18)) / 2
    system = ms.System(round(rate, 6), UNEQUAL, n_servers=2)
    result = ms.simulate(system, ms.policy("jiq"), seed=(seed, 48), horizon=100.0, max_events=1e5)
    half_width = float(result.stability_margin_half_width)
    assert abs(float(result.stability_margin)) <= 2 * half_width
    assert not bool(result.interval_reliable)
    refuse_unstable.cache_clear()
