"""What a simulation says that has seen next to nothing."""

from typing import Any

import numpy as np
import pytest

import manyserver as ms
from manyserver.policies import Policy

POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
SQ2 = ms.policy("sq", d=2)
POLICIES = [SQ2, ms.policy("jiq"), ms.policy("pull", routers=2)]
WAYS: list[dict[str, Any]] = [{}, {"discipline": "ps"}, {"discipline": "fcfs"}]
MEANS = ["sojourn_mean", "jobs_per_server", "waiting_probability"]
EMPTY_SOJOURN = 9 / 8
"""Mean sojourn time of jobs that never meet another one, half of them at each speed."""


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_without_arrivals_nothing_is_known(policy: Policy, way: dict[str, Any]) -> None:
    system = ms.System(1e-9, POOLS, n_servers=10)
    result = ms.simulate(system, policy, horizon=1.0, max_events=1e5, **way)
    assert int(result.n_events) == 0
    for name in MEANS:
        assert np.isnan(result[name])
        assert np.isnan(result[f"{name}_half_width"])
    assert not result.interval_reliable


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_few_arrivals_are_said_to_be_few(way: dict[str, Any], seed: int) -> None:
    """Some 50 arrivals: an interval, but none to rely on."""
    system = ms.System(0.05, POOLS, n_servers=10)
    result = ms.simulate(system, SQ2, horizon=12.5, seed=(seed, 50), **way)
    assert not result.interval_reliable
    assert float(result.waiting_probability_half_width) > 0


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_precision_takes_the_arrivals_that_it_needs(
    policy: Policy, way: dict[str, Any], seed: int
) -> None:
    """A value off by 2.5 half-widths, about five standard errors, has probability 1e-6."""
    system = ms.System(1e-3, POOLS, n_servers=10)
    result = ms.simulate(system, policy, precision=0.1, seed=(seed, 51), **way)
    half_width = float(result.sojourn_mean_half_width)
    assert result.precision_met
    assert result.interval_reliable
    assert 0 < half_width <= 0.1 * float(result.sojourn_mean)
    assert abs(float(result.sojourn_mean) - EMPTY_SOJOURN) < 2.5 * half_width


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("max_events", [1.0, 1e3])
def test_few_events_are_no_precision(max_events: float, way: dict[str, Any]) -> None:
    system = ms.System(0.9, POOLS, n_servers=10)
    result = ms.simulate(system, SQ2, precision=0.01, max_events=max_events, **way)
    assert not result.precision_met
    assert not result.interval_reliable


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(("horizon", "max_events"), [(1e300, 1e10), (10.0, 1e3)])
def test_a_horizon_beyond_the_events_is_refused(
    horizon: float, max_events: float, way: dict[str, Any]
) -> None:
    system = ms.System(0.9, POOLS, n_servers=10)
    with pytest.raises(ValueError, match=r"horizon = .* at most max_events = "):
        ms.simulate(system, SQ2, horizon=horizon, max_events=max_events, **way)


def test_events_bound_the_warm_up_too() -> None:
    system = ms.System(0.9, POOLS, n_servers=10)
    result = ms.simulate(system, SQ2, horizon=10.0, max_events=2e3)
    assert int(result.n_events) <= 2e3
    assert not result.interval_reliable


def test_what_all_arrivals_met_need_not_be_certain() -> None:
    system = ms.System(0.9, POOLS, n_servers=10)
    result = ms.simulate(system, SQ2, precision=0.01, max_events=1.0)
    assert float(result.waiting_probability) in (0.0, 1.0)
    assert float(result.waiting_probability_half_width) > 0.1


def test_intervals_of_levels_that_are_hardly_seen() -> None:
    """They cover in .89 of 125 runs: fewer than .77 in one of 30,000 sets of seeds.

    By the weights of the control variates, which the others have, they would in .7.
    """
    system, policy = ms.System(0.4, [ms.Pool(1, 1)], n_servers=5), ms.policy("sq", d=2)
    truth = float(ms.exact(system, policy).queue_tail[0, 4])
    covered = []
    for seed in range(200):
        result = ms.simulate(system, policy, horizon=200, seed=(seed, 44))
        if result.sizes["level"] > 4:
            error = abs(float(result.queue_tail[0, 4]) - truth)
            covered.append(error <= float(result.queue_tail_half_width[0, 4]))
    assert len(covered) > 60
    assert np.mean(covered) > 0.77
