"""Finite buffers: closed forms, conservation, exact chains, and where there is no fixed point."""

import numpy as np
import pytest
from tests.registry import POOLS, policies

import manyserver as ms
from manyserver.mean_field.drift import Drift
from manyserver.mean_field.solver import solve
from manyserver.policies import Policy

BOUNDED = [
    ms.Pool("1/4", "1/2", buffer=3),
    ms.Pool("1/4", "3/2", buffer=5),
    ms.Pool("1/2", 1, buffer=2),
]
PAIR = [ms.Pool("1/2", "1/2", buffer=3), ms.Pool("1/2", "3/2", buffer=5)]
LIMITS = [policy for policy in policies() if not policy.replacement]
"""With replacement the limit is the same."""
OVERLOADED = [policy for policy in LIMITS if "optimal" not in f"{policy.name} {policy}"]
"""All but the optimal splits: there is none of more than can be served."""


def one(speed: float, buffer: int | None) -> list[ms.Pool]:
    return [ms.Pool(1, speed, buffer=buffer)]


@pytest.mark.parametrize("rate", [0.5, 0.9999, 1.0, 1.7, 20.0])
def test_random_routing_makes_servers_with_finite_queues(rate: float) -> None:
    """M/M/1/B in every pool, with its spectral gap C + a - 2 sqrt(C a) cos(pi / (B + 1))."""
    system, policy = ms.System(rate, PAIR), ms.policy("random")
    result = ms.fixed_point(system, policy)
    blocked, gaps = 0.0, []
    for pool, (speed, buffer) in enumerate([(0.5, 3), (1.5, 5)]):
        law = (rate / speed) ** np.arange(buffer + 1)
        law /= law.sum()
        expected = law[::-1].cumsum()[::-1]
        assert result.queue_tail.values[pool, : buffer + 1] == pytest.approx(expected, rel=1e-13)
        assert np.all(result.queue_tail.values[pool, buffer + 1 :] == 0)
        blocked += law[-1] / 2
        gaps.append(speed + rate - 2 * np.sqrt(speed * rate) * np.cos(np.pi / (buffer + 1)))
    assert float(result.blocking_probability) == pytest.approx(blocked, rel=1e-13)
    jobs = float(result.jobs_per_server)
    assert float(result.sojourn_mean) == pytest.approx(jobs / (rate * (1 - blocked)), rel=1e-13)
    assert ms.relaxation_time(system, policy) == pytest.approx(1 / min(gaps), rel=1e-12)


@pytest.mark.parametrize("buffer", [1, 2, 6])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("rate", [0.3, 0.95, 1.0, 1.5])
def test_equal_servers_by_two_methods(rate: float, d: int, buffer: int) -> None:
    """The recursion from the top against the general solver."""
    system, policy = ms.System(rate, one(1, buffer)), ms.policy("sq", d=d)
    tails = ms.fixed_point(system, policy).queue_tail.values
    drift = Drift(system, policy, buffer + 1)
    general = drift.tails(solve(drift, np.zeros(buffer)))
    assert tails == pytest.approx(general, rel=1e-11, abs=1e-15)
    balance = rate * (tails[0, :-1] ** d - tails[0, -1] ** d)
    assert balance == pytest.approx(tails[0, 1:], rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    ("rate", "policy"),
    [(0.5, policy) for policy in LIMITS] + [(1.3, policy) for policy in OVERLOADED],
    ids=str,
)
def test_flows_balance(policy: Policy, rate: float) -> None:
    """As many jobs leave as are accepted, and trajectories from empty end there."""
    system = ms.System(rate, BOUNDED)
    result = ms.fixed_point(system, policy)
    tails = result.queue_tail.values
    assert np.all(np.diff(tails, axis=1) <= 0)
    occupancy = -np.diff(tails, axis=1, append=0)
    joins = result.joining_rate.values * occupancy * system.fractions[:, None]
    accepted = rate * (1 - float(result.blocking_probability))
    assert joins.sum() == pytest.approx(accepted, rel=1e-12)
    assert joins[:, 1:].sum() == pytest.approx(rate * float(result.waiting_probability), rel=1e-12)
    assert system.fractions @ (system.speeds * tails[:, 1]) == pytest.approx(accepted, rel=1e-12)
    jobs = float(result.jobs_per_server)
    assert accepted * float(result.sojourn_mean) == pytest.approx(jobs, rel=1e-14)
    assert float(result.residual) < 1e-13
    assert float(result.truncation_error) == 0
    path = ms.mean_field(system, policy, [0.0, 10 + 25 * ms.relaxation_time(system, policy)])
    levels = min(path.sizes["level"], tails.shape[1])
    end = path.queue_tail.values[-1]
    assert end[:, :levels] == pytest.approx(tails[:, :levels], abs=1e-9)
    blocking = float(path.blocking_probability[-1])
    assert blocking == pytest.approx(float(result.blocking_probability), abs=1e-9)


@pytest.mark.parametrize(
    "policy",
    [
        ms.policy("sq", d=2),
        ms.policy("sq", d=2, replacement=True),
        ms.policy("scheme2", d=[1, 1]),
        ms.policy("random"),
    ],
    ids=str,
)
def test_exact_chains_tend_to_the_limit(policy: Policy) -> None:
    """The error of the limit with its 1/N correction falls like 1/N**2, blocking included."""
    pools = [ms.Pool("1/2", "1/2", buffer=2), ms.Pool("1/2", "3/2", buffer=1)]
    names = ["sojourn_mean", "blocking_probability", "waiting_probability", "jobs_per_server"]
    errors = {}
    for n in (10, 20):
        system = ms.System(0.9, pools, n)
        exact, refined = ms.exact(system, policy), ms.refine(system, policy)
        errors[n] = [abs(float(exact[name] - refined[f"{name}_refined"])) for name in names]
        limit = refined.queue_tail_refined.values[:, : exact.sizes["level"]]
        assert exact.queue_tail.values == pytest.approx(limit, abs=0.5 / n**1.5)
    for coarse, fine in zip(errors[10], errors[20], strict=True):
        assert fine < coarse / 3 + 1e-6
        assert fine < 2e-3


@pytest.mark.parametrize("policy", OVERLOADED, ids=str)
def test_conservation_to_order_one_over_n(policy: Policy) -> None:
    assert float(ms.refine(ms.System(1.3, BOUNDED), policy).refinement_residual) < 1e-10


@pytest.mark.parametrize("policy", LIMITS, ids=str)
def test_large_buffers_are_none(policy: Policy) -> None:
    def pools(buffer: int | None) -> list[ms.Pool]:
        return [ms.Pool(pool.fraction, pool.speed, buffer=buffer) for pool in POOLS]

    bounded, free = (ms.fixed_point(ms.System(0.6, pools(b)), policy) for b in (200, None))
    assert float(bounded.sojourn_mean) == pytest.approx(float(free.sojourn_mean), rel=1e-12)
    assert float(bounded.blocking_probability) < 1e-12


def test_a_pool_without_bound_can_get_too_much() -> None:
    """SQ(2), half the servers without room to wait, the others endless.

    With the latter always ranked behind an idle one, ``u / 2 = rate (1 - ((1 + u) / 2)**2)`` of
    the former are busy, and the latter get ``rate (1 / 4 + u / 2)``, at a capacity of 1 / 2.
    """
    pools = [ms.Pool("1/2", 1, buffer=1), ms.Pool("1/2", 1)]
    rate = 1.02
    busy = np.max(np.roots([rate / 4, (1 + rate) / 2, -3 * rate / 4]).real)
    excess = rate * (1 / 4 + busy / 2) - 1 / 2
    message = rf"sends pool 1 about {excess:.2g}"
    with pytest.raises(ms.UnstableSystem, match=message) as caught:
        ms.fixed_point(ms.System(rate, pools), ms.policy("sq", d=2))
    assert caught.value.pools == (1,)
    stable = ms.fixed_point(ms.System(0.85, pools), ms.policy("sq", d=2))
    assert float(stable.truncation_error) < 1e-12
    assert 0 < float(stable.blocking_probability) < 0.2


def test_trajectories_respect_the_buffers() -> None:
    system = ms.System(3.0, BOUNDED)
    path = ms.mean_field(system, ms.policy("sq", d=2), np.linspace(0, 20, 11))
    for pool, buffer in enumerate([3, 5, 2]):
        assert np.all(path.queue_tail.values[:, pool, buffer + 1 :] == 0)
    assert np.all(np.diff(path.blocking_probability.values) > -1e-9)
    with pytest.raises(ValueError, match=r"start: queue tails of pool 2 reach beyond its buffer"):
        ms.mean_field(system, ms.policy("sq", d=2), [1.0], start=np.ones((3, 4)))
