"""Servers that announce themselves: stationary states and trajectories of the limit."""

import numpy as np
import pytest
from tests.mean_field.counting import simulate_counts
from tests.mean_field.pouring import Pouring
from tests.registry import POOLS, announced_policies

import manyserver as ms
from manyserver.mean_field import CriticalLoad, NotSmooth
from manyserver.policies import Policy

ONE = [ms.Pool(1, 1)]
PAIR = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
BOUNDED = [
    ms.Pool("1/4", "1/2", buffer=3),
    ms.Pool("1/4", "3/2", buffer=5),
    ms.Pool("1/2", 1, buffer=2),
]
POLICIES = [
    policy
    for policy in [*announced_policies(), ms.policy("threshold", threshold=2, ties="fastest")]
    if not policy.replacement and policy.name != "pull"
]
"""With replacement the limit is the same, and PULL with one router is JIQ."""
SYSTEMS = [ms.System(0.6, POOLS), ms.System(0.9, BOUNDED), ms.System(1.3, BOUNDED)]


def start_tails(system: ms.System, kind: str, levels: int = 8) -> np.ndarray:
    """Servers without jobs, with five jobs or full, or with a random number of jobs."""
    tails = np.zeros((len(system.pools), levels))
    tails[:, 0] = 1
    rng = np.random.default_rng(5)
    for row, pool in zip(tails, system.pools, strict=True):
        top = 5 if pool.buffer is None else pool.buffer
        if kind == "full":
            row[1 : top + 1] = 1
        elif kind == "random":
            row[1 : top + 1] = np.sort(rng.random(top))[::-1]
    return tails


def fit(tails: np.ndarray, levels: int) -> np.ndarray:
    fitted = np.zeros((len(tails), levels))
    kept = min(levels, tails.shape[1])
    fitted[:, :kept] = tails[:, :kept]
    return fitted


@pytest.mark.parametrize("policy", [ms.policy("jsq"), ms.policy("jiq"), ms.policy("jiq", d=3)])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.95, 0.999999])
def test_idle_servers_alike(policy: Policy, rate: float) -> None:
    """JSQ = JIQ: u_j = theta / (theta + C_j), sum_j gamma_j C_j u_j = lambda, and no queues."""
    system = ms.System(rate, POOLS)
    result = ms.fixed_point(system, policy)
    busy = result.queue_tail.values[:, 1]
    theta = result.joining_rate.values[:, 0]
    assert busy == pytest.approx(theta / (theta + system.speeds), rel=1e-12)
    assert theta == pytest.approx(np.full(3, theta[0]), rel=1e-12)
    assert system.fractions @ (system.speeds * busy) == pytest.approx(rate, rel=1e-14)
    assert np.all(result.queue_tail.values[:, 2:] == 0)
    assert float(result.waiting_probability) == pytest.approx(0, abs=1e-15)


def test_fast_servers_first() -> None:
    """The claims for C = (1/5, 9/5) at 0.95, and greedy filling of three pools."""
    system = ms.System(0.95, PAIR)
    assert float(ms.fixed_point(system, ms.policy("sed")).sojourn_mean) == pytest.approx(5.0)
    fastest = ms.fixed_point(system, ms.policy("jsq", ties="fastest"))
    assert float(fastest.sojourn_mean) == pytest.approx(0.75 / 0.95, rel=1e-14)
    greedy = ms.fixed_point(ms.System(0.775, POOLS), ms.policy("jsq", ties="fastest"))
    assert greedy.queue_tail.values[:, 1] == pytest.approx([0, 1, 0.8], abs=1e-14)
    assert np.all(greedy.queue_tail.values[:, 2:] == 0)


def test_shortest_delay_fills_faster_servers_to_the_ratio_of_speeds() -> None:
    """floor(C_j / C_i) jobs at all servers faster than the partly idle pool i, also at ties."""
    pools = [ms.Pool("1/4", 1), ms.Pool("1/4", "5/2"), ms.Pool("1/4", 3), ms.Pool("1/4", "1/9")]
    result = ms.fixed_point(ms.System(1.5, pools), ms.policy("sed"))
    assert result.queue_mean.values == pytest.approx([0.5, 2, 3, 0], abs=1e-13)
    result = ms.fixed_point(ms.System(1.64, pools), ms.policy("sed"))
    assert result.queue_mean.values == pytest.approx([9, 22, 27, 0.54], abs=1e-11)


@pytest.mark.parametrize("threshold", [1, 2, 5])
@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_thresholds_are_finite_queues(threshold: int, rate: float) -> None:
    """Equal servers are M/M/1/t queues, with the arrival rate at which they do all the work."""
    result = ms.fixed_point(ms.System(rate, ONE), ms.policy("threshold", threshold=threshold))
    tails = result.queue_tail.values[0]
    theta = float(result.joining_rate[0, 0])
    law = theta ** np.arange(threshold + 1)
    assert -np.diff(tails, append=0)[: threshold + 1] == pytest.approx(law / law.sum(), rel=1e-12)
    assert tails[1] == pytest.approx(rate, rel=1e-14)
    assert np.all(tails[threshold + 1 :] == 0)


def test_more_work_than_can_be_done() -> None:
    """Full servers block; what is left of the arrivals by idle ones makes the draws."""
    result = ms.fixed_point(ms.System(1.3, BOUNDED), ms.policy("sed"))
    assert result.queue_mean.values.tolist() == [3, 5, 2]
    assert float(result.blocking_probability) == pytest.approx(0.3 / 1.3, rel=1e-14)
    # Equal servers under JIQ: all busy, and above one job an M/M/1/4 queue with arrival rate a.
    result = ms.fixed_point(ms.System(1.2, [ms.Pool(1, 1, buffer=5)]), ms.policy("jiq"))
    occupancy = -np.diff(result.queue_tail.values[0], append=0)
    a = 1.2 - occupancy[1]
    law = a ** np.arange(5)
    assert occupancy[1:6] == pytest.approx(law / law.sum(), rel=1e-11)
    assert float(result.blocking_probability) == pytest.approx(0.2 / 1.2, rel=1e-12)
    assert np.isinf(result.joining_rate.values[0, 0])
    assert result.joining_rate.values[0, 1:] == pytest.approx([a, a, a, a, 0], rel=1e-11)


def test_many_stationary_states_are_refused() -> None:
    with pytest.raises(CriticalLoad, match=r"arrival_rate = 0.9: is exactly what pool 1 can") as it:
        ms.fixed_point(ms.System(0.9, PAIR), ms.policy("sed"))
    assert it.value.pools == (1,)
    with pytest.raises(CriticalLoad, match="pool 0 can serve"):
        ms.fixed_point(ms.System(1.0, [ms.Pool(1, 1, buffer=3)]), ms.policy("jsq"))
    # With ties to the fastest a slow server gets a job only after the fast ones, one job each.
    result = ms.fixed_point(ms.System(0.9, PAIR), ms.policy("jsq", ties="fastest"))
    assert result.queue_mean.values.tolist() == [0, 1]
    result = ms.fixed_point(ms.System(1.0, [ms.Pool(1, 1, buffer=1)]), ms.policy("jsq"))
    assert result.queue_mean.values.tolist() == [1]
    endless = [ms.Pool("1/2", 1, buffer=1), ms.Pool("1/2", 1)]
    with pytest.raises(ms.UnstableSystem, match="sends to pool 1 what the others have no room"):
        ms.fixed_point(ms.System(1.1, endless), ms.policy("jsq"))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("system", SYSTEMS, ids=["free", "bounded", "overloaded"])
def test_flows_balance_and_trajectories_end_there(policy: Policy, system: ms.System) -> None:
    result = ms.fixed_point(system, policy)
    tails = result.queue_tail.values
    assert np.all(np.diff(tails, axis=1) <= 0)
    rate = system.arrival_rate
    accepted = rate * (1 - float(result.blocking_probability))
    work = system.fractions * system.speeds
    assert work @ tails[:, 1] == pytest.approx(accepted, rel=1e-12)
    waiting = work @ fit(tails, 3)[:, 2] / rate
    assert waiting == pytest.approx(float(result.waiting_probability), abs=1e-13)
    assert float(result.sojourn_mean) * accepted == pytest.approx(float(result.jobs_per_server))
    assert float(result.residual) < 1e-13
    relaxation = ms.relaxation_time(system, policy, result)
    assert 0 < relaxation < 100
    stays = ms.mean_field(system, policy, [0.0, 5.0], start=result)
    assert stays.queue_tail.values[1] == pytest.approx(stays.queue_tail.values[0], abs=1e-10)
    path = ms.mean_field(system, policy, [0.0, 100 + 25 * relaxation])
    end = fit(path.queue_tail.values[-1], tails.shape[1])
    assert end == pytest.approx(tails, abs=1e-8)
    blocking = float(path.blocking_probability[-1])
    assert blocking == pytest.approx(float(result.blocking_probability), abs=1e-8)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("kind", ["full", "random"])
@pytest.mark.parametrize("system", SYSTEMS, ids=["free", "bounded", "overloaded"])
def test_arrivals_are_poured(policy: Policy, kind: str, system: ms.System) -> None:
    """A twin with steps h has an error of c h; without it both agree to 1e-5."""
    start = start_tails(system, kind)
    path = ms.mean_field(system, policy, [1.5], start=start)
    exact = fit(path.queue_tail.values[-1], 12)
    coarse, fine = (
        Pouring(system, policy, 12).run(fit(start, 12), 1.5, steps) for steps in (75, 150)
    )
    assert fine == pytest.approx(exact, abs=6e-3)
    assert 2 * fine - coarse == pytest.approx(exact, abs=2e-4)


def test_one_pool_slides_and_leaves() -> None:
    """JSQ, two jobs at b of the servers and one at the others.

    While b > 1 - lambda, all arrivals that do not take a server that has just become idle join
    others with one job: b falls at the rate 1 - lambda. Then there are idle servers, a time s
    later ``1 - u_1 = (1 - lambda) (1 - (1 + s) exp(-s))`` and ``u_2 = (1 - lambda) exp(-s)``.
    """
    rate, b = 0.7, 0.9
    turn = (b - (1 - rate)) / (1 - rate)
    times = np.array([0.0, 1.0, turn, turn + 1e-3, turn + 0.5, turn + 3.0])
    path = ms.mean_field(ms.System(rate, ONE), ms.policy("jsq"), times, start=[[1.0, 1.0, b]])
    after = np.maximum(times - turn, 0.0)
    decay = np.exp(-after)
    first = 1 - (1 - rate) * (1 - (1 + after) * decay)
    second = np.where(times < turn, b - (1 - rate) * times, (1 - rate) * decay)
    assert path.queue_tail.values[:, 0, 1] == pytest.approx(first, abs=2e-9)
    assert path.queue_tail.values[:, 0, 2] == pytest.approx(second, abs=2e-9)
    waiting = np.where(times <= turn, (rate - 1 + second) / rate, 0.0)
    assert path.waiting_probability.values == pytest.approx(waiting, abs=1e-8)


def test_fast_pool_fills_and_overflows() -> None:
    """JSQ to the fastest from empty: u_2' = lambda / gamma - C u_2 until it is full."""
    rate, times = 0.95, np.linspace(0, 6, 13)
    path = ms.mean_field(ms.System(rate, PAIR), ms.policy("jsq", ties="fastest"), times)
    filling = 2 * rate / 1.8 * (1 - np.exp(-1.8 * times))
    full = -np.log(1 - 0.9 / rate) / 1.8
    assert path.queue_tail.values[:, 1, 1] == pytest.approx(np.minimum(filling, 1), abs=2e-9)
    overflow = 0.5 * (1 - np.exp(-0.2 * np.maximum(times - full, 0)))
    assert path.queue_tail.values[:, 0, 1] == pytest.approx(overflow, abs=2e-9)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_trajectory_balances_mass(policy: Policy) -> None:
    """Jobs change by arrivals less departures: integrated by the trapezoidal rule."""
    system, times = ms.System(1.1, BOUNDED), np.linspace(0, 2, 501)
    path = ms.mean_field(system, policy, times, start=start_tails(system, "random"))
    work = path.queue_tail.values[:, :, 1] @ (system.fractions * system.speeds)
    accepted = system.arrival_rate * (1 - path.blocking_probability.values)
    gained = np.trapezoid(accepted - work, times)
    jobs = path.jobs_per_server.values
    # Where the best servers run out the integrand jumps, within one step of 0.004.
    assert jobs[-1] - jobs[0] == pytest.approx(gained, abs=5e-3)
    assert np.all(np.diff(path.queue_tail.values, axis=2) <= 0)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_large_buffers_are_none(policy: Policy) -> None:
    bounded = [ms.Pool(pool.fraction, pool.speed, buffer=30) for pool in POOLS]
    start = start_tails(ms.System(0.8, POOLS), "random")
    ends = []
    for pools in (POOLS, bounded):
        system = ms.System(0.8, pools)
        path = ms.mean_field(system, policy, [2.0], start=start)
        ends.append(fit(path.queue_tail.values[0], 12))
    assert ends[0] == pytest.approx(ends[1], abs=1e-8)
    states = [ms.fixed_point(ms.System(0.8, pools), policy) for pools in (POOLS, bounded)]
    assert float(states[0].sojourn_mean) == pytest.approx(float(states[1].sojourn_mean), rel=1e-13)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_order_of_the_pools_makes_no_difference(policy: Policy) -> None:
    order = [2, 0, 1]
    for rate in (0.7, 1.3):
        here, there = (
            ms.fixed_point(ms.System(rate, pools), policy)
            for pools in (BOUNDED, [BOUNDED[pool] for pool in order])
        )
        assert there.queue_mean.values == pytest.approx(here.queue_mean.values[order], rel=1e-11)


@pytest.mark.parametrize(
    ("policy", "rate"),
    [
        (ms.policy("jsq"), 0.5),
        (ms.policy("jiq"), 0.5),
        (ms.policy("threshold", threshold=2), 0.5),
        (ms.policy("jsq", ties="fastest"), 2.0),
        (ms.policy("jiq", d=2, ties="fastest"), 2.0),
    ],
    ids=str,
)
def test_exact_chains_tend_to_the_limit(policy: Policy, rate: float) -> None:
    """Away from critical loads the error falls by half or more from 6 to 12 servers."""
    pools = [ms.Pool("1/2", "1/2", buffer=2), ms.Pool("1/2", "3/2", buffer=2)]
    limit = ms.fixed_point(ms.System(rate, pools), policy)
    errors = {}
    for n in (6, 12):
        exact = ms.exact(ms.System(rate, pools, n), policy)
        difference = exact.queue_tail.values[:, :3] - fit(limit.queue_tail.values, 3)
        errors[n] = [
            np.abs(difference).max(),
            abs(float(exact.blocking_probability - limit.blocking_probability)),
            abs(float(exact.sojourn_mean / limit.sojourn_mean - 1)),
        ]
    assert np.all(np.array(errors[12]) < 0.6 * np.array(errors[6]) + 2e-3)
    assert max(errors[12]) < 0.1


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (ms.policy("jsq"), "random"),
        (ms.policy("sed"), "empty"),
        (ms.policy("jiq"), "full"),
        (ms.policy("threshold", threshold=2), "random"),
    ],
    ids=str,
)
def test_simulations_follow_the_trajectory(policy: Policy, kind: str) -> None:
    """Jobs per pool of 20000 servers, to 4 standard errors of the arrivals and departures.

    The noise of these, rate 2 over a time of 1.5, moves the jobs of a pool by at most
    sqrt(2 * 1.5 / (fraction N)): a false alarm in 5000 tests of three pools.
    """
    system, n = ms.System(0.9, POOLS), 20_000
    start = start_tails(system, kind)
    path = ms.mean_field(system, policy, [1.5], start=start)
    jobs = simulate_counts(system, policy, n, start, 1.5, seed=11)
    error = np.sqrt(2 * 1.5 / (system.fractions * n))
    assert np.all(np.abs(jobs - path.queue_mean.values[0]) < 4 * error)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_there_is_no_expansion(policy: Policy) -> None:
    with pytest.raises(NotSmooth, match="servers announce themselves"):
        ms.refine(ms.System(0.5, POOLS), policy)
