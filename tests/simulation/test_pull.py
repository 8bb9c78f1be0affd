"""The kernel of PULL against the exact chain, the fluid limit, and what is known of large systems.

All tests draw from fixed seeds. A comparison with an exact value allows four standard errors.
"""

import numpy as np
import pytest
import xarray as xr

import manyserver as ms
from manyserver.policies import Policy
from manyserver.policies.pull import Pull
from manyserver.schema import HALF_WIDTH
from manyserver.simulation.pull_replica import PullReplica

SLOW_AND_FAST = [ms.Pool("1/2", "1/5", buffer=2), ms.Pool("1/2", "9/5", buffer=3)]
ONE = [ms.Pool(1, 1)]


def pull(routers: int) -> Policy:
    return ms.policy("pull", routers=routers)


CASES = [
    pytest.param(0.6, SLOW_AND_FAST, 4, 2, id="two pools"),
    pytest.param(0.6, SLOW_AND_FAST, 8, 3, id="three routers"),
    pytest.param(0.6, SLOW_AND_FAST, 4, 1, id="one router"),
    pytest.param(1.2, [ms.Pool(1, 1, buffer=4)], 5, 2, id="overloaded"),
    pytest.param(0.5, [ms.Pool(1, 1, buffer=1)], 6, 4, id="buffer of one"),
    pytest.param(0.4, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")], 4, 2, id="infinite buffers"),
]


@pytest.mark.parametrize(("rate", "pools", "n", "routers"), CASES)
@pytest.mark.parametrize("controlled", [True, False])
def test_simulation_is_exact(
    rate: float, pools: list[ms.Pool], n: int, routers: int, controlled: bool, seed: int
) -> None:
    """All false alarms together: 12 cases with 9 values, 6e-5 each, under 1 %."""
    system = ms.System(rate, pools, n_servers=n)
    expected = ms.exact(system, pull(routers), tolerance=1e-6)
    result = ms.simulate(
        system, pull(routers), seed=seed, precision=0.01, control_variates=controlled
    )
    assert bool(result.interval_reliable)
    for name in (
        "sojourn_mean",
        "waiting_probability",
        "blocking_probability",
        "empty_router_probability",
        "idle_concentration",
        "messages_per_job",
        "queue_mean",
    ):
        _agree(result, expected, name)


def _agree(result: xr.Dataset, expected: xr.Dataset, name: str) -> None:
    values, half_widths = result[name].values, result[name + HALF_WIDTH].values
    error = np.abs(values - expected[name].values)
    known = np.isfinite(half_widths)
    assert np.all(error[known] <= 2 * half_widths[known] + 1e-5), name
    assert np.all(error[~known] < 1e-3), name


def test_tables_grow_while_it_runs() -> None:
    system = ms.System(0.9, ONE, n_servers=20)
    start = np.array([[1.0, 0.9, 0.0]])
    short, long = (
        PullReplica(system, pull(3), start, (1,), levels=levels).advance(4, 20_000, 100)
        for levels in (2, 64)
    )
    levels = min(short.tails.shape[2], long.tails.shape[2])
    assert short.tails.shape[2] < 64
    assert np.array_equal(short.tails[:, :, :levels], long.tails[:, :, :levels])
    assert np.array_equal(short.tallies, long.tallies)
    assert np.array_equal(short.observations.squared_jobs, long.observations.squared_jobs)


@pytest.mark.parametrize("routers", [2, 3, 7])
def test_it_starts_with_a_split_that_is_uniform_on_the_simplex(routers: int) -> None:
    """``E sum_r (I_r / I)**2 = 2 / (R + 1)``; false alarm 6e-5."""
    system = ms.System(0.5, ONE, n_servers=10_000)
    start = np.array([[1.0, 0.5, 0.0]])
    parts = []
    for number in range(400):
        replica = PullReplica(system, pull(routers), start, (2, number))
        assert replica.known.sum() == 10_000 - replica.tail_counts()[0, 1]
        parts.append(((replica.known / replica.known.sum()) ** 2).sum())
    error = np.std(parts) / np.sqrt(len(parts))
    assert np.mean(parts) == pytest.approx(2 / (routers + 1), abs=4 * error + 1e-4)


def test_a_million_servers_follow_the_fluid_limit() -> None:
    """The smaller router runs out and fills again; deviations are of order 1 / sqrt(n)."""
    n, split = 1_000_000, np.array([0.8, 0.2])
    system = ms.System(0.6, ONE, n_servers=n)
    tails = np.array([[1, 0.5, 0.45]])
    idle = np.array([[0.5]]) * split
    start = xr.Dataset(
        {"queue_tail": (("pool", "level"), tails), "router_idle": (("pool", "router"), idle)}
    )
    times = np.arange(0, 4.01, 0.05)
    path = ms.mean_field(system, pull(2), times, start=start)
    replica = PullReplica(system, pull(2), np.pad(tails, ((0, 0), (0, 1))), (3,))
    replica.messages[:] = np.round(n * idle)
    replica.known[:] = replica.messages.sum(axis=0)
    steps = round(0.1 * replica.rate)
    known, means, empty = [replica.known / n], [], []
    for _ in range(40):
        piece = replica.advance(1, steps)
        means.append(piece.tails[0, 0, 1:3])
        empty.append(piece.tallies[0, 1] / steps / 2)
        known.append(replica.known / n)
    assert np.array(known) == pytest.approx(path.router_idle.values[::2, 0], abs=8e-3)
    fluid = path.queue_tail.values[:, 0, 1:3]
    simpson = (fluid[:-2:2] + 4 * fluid[1::2] + fluid[2::2]) / 6
    assert np.array(means) == pytest.approx(simpson, abs=8e-3)
    # Within an interval of time a router can run out, so only those away from it are compared.
    slow = path.empty_router_probability.values
    inside = (slow[:-2:2] > 0) & (slow[2::2] > 0)
    average = (slow[:-2:2] + 4 * slow[1::2] + slow[2::2]) / 6
    assert inside.sum() > 3
    assert np.array(empty)[inside] == pytest.approx(average[inside], abs=1e-2)


def test_large_systems_are_as_the_theory_says(seed: int) -> None:
    """n = 400, load .7: P(empty) is above its limit by a term of relative order 1 / sqrt(n).

    The split of the idle servers is that on the simplex. False alarm 6e-5 for each.
    """
    system = ms.System(0.7, ONE, n_servers=400)
    result = ms.simulate(system, pull(2), seed=seed, horizon=3500.0)
    theory = ms.pull_asymptotics(system, pull(2))
    ratio = float(result.empty_router_probability / theory.empty_router_probability_refined)
    error = float(result.empty_router_probability_half_width / result.empty_router_probability)
    assert bool(result.interval_reliable)
    assert error < 0.02
    assert 1 - 2 * error < ratio < 1.12 + 2 * error
    split, width = float(result.idle_concentration), float(result.idle_concentration_half_width)
    assert split == pytest.approx(2 / 3, abs=2 * width + 0.03)
    waits = float(result.waiting_probability)
    assert float(result.messages_per_job) == pytest.approx(1 - waits, abs=1e-3)


@pytest.mark.parametrize("routers", [2, 5])
def test_the_control_variate_of_the_split_has_mean_zero(routers: int) -> None:
    system = ms.System(0.7, [ms.Pool("1/2", 1, buffer=2), ms.Pool("1/2", 2)], n_servers=30)
    replica = PullReplica(system, Pull(routers), np.array([[1, 0.6, 0], [1, 0.5, 0]]), (5,))
    replica.warm_up(50_000)
    zeros = replica.own_controls(replica.advance(64, 20_000, 50))[:, 0]
    assert abs(zeros.mean()) < 4 * zeros.std() / np.sqrt(len(zeros))
    assert zeros.std() > 0


def test_batches_are_as_long_as_the_split_needs() -> None:
    """A time that is long enough for JIQ is not for two routers."""
    system = ms.System(0.7, ONE, n_servers=1000)
    reliable = [
        bool(ms.simulate(system, policy, horizon=400.0).interval_reliable)
        for policy in (ms.policy("jiq"), pull(2))
    ]
    assert reliable == [True, False]


def test_random_arrivals_can_saturate_a_slow_pool() -> None:
    pools = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
    with pytest.raises(ms.UnstableSystem, match=r"policy pull sends pool 0 0\.1\d+ .*") as error:
        ms.simulate(ms.System(0.5, pools, n_servers=4), pull(2))
    assert error.value.pools == (0,)


def test_policies_are_compared_with_common_random_numbers(seed: int) -> None:
    system = ms.System(0.7, ONE, n_servers=50)
    result = ms.compare(system, [pull(1), pull(2)], seed=seed, precision=0.01)
    assert float(result.sojourn_mean_difference[1]) > 0
