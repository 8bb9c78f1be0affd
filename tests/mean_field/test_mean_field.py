"""The fixed point and trajectories: closed forms, the papers' equations, conservation laws."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from tests.registry import POOLS, policies

import manyserver as ms
from manyserver.mean_field.drift import Drift
from manyserver.mean_field.solver import pseudo_transient, solve
from manyserver.policies import Policy

PAIR = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]


@pytest.mark.parametrize("d", [1, 2, 3, 10])
@pytest.mark.parametrize("load", [0.3, 0.9, 0.999])
def test_equal_servers_have_the_closed_form(load: float, d: int) -> None:
    """SQ(d): u_k = load**((d**k - 1) / (d - 1)), also by the general solver."""
    system = ms.System(load, [ms.Pool(1, 1)])
    result = ms.fixed_point(system, ms.policy("sq", d=d))
    levels = [0, 1, 2, 3, 4]
    exact = [load ** (k if d == 1 else (d**k - 1) // (d - 1)) for k in levels]
    # Tails below 1e-308 underflow to zero on both sides.
    assert result.queue_tail.values[0, :5] == pytest.approx(exact, rel=1e-12, abs=1e-300)
    if d > 1:
        drift = Drift(system, ms.policy("sq", d=d), 24)
        general = drift.tails(solve(drift, np.zeros(23)))
        assert general[0, :5] == pytest.approx(exact, rel=1e-12, abs=1e-16)


@pytest.mark.parametrize("policy", policies(), ids=str)
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_flows_balance(policy: Policy, load: float) -> None:
    """Across every level, jobs go up as often as down; (5.1) times occupancy is the flow."""
    system = ms.System(load, POOLS)
    result = ms.fixed_point(system, policy)
    tails = result.queue_tail.values
    assert np.all(np.diff(tails, axis=1) <= 0)
    assert np.all((tails >= 0) & (tails <= 1))
    occupancy = -np.diff(tails, axis=1, append=0)
    up = result.joining_rate.values * occupancy
    down = system.speeds[:, None] * occupancy
    assert up[:, :-1] == pytest.approx(down[:, 1:], rel=1e-9, abs=1e-15)
    assert system.fractions @ (system.speeds * tails[:, 1]) == pytest.approx(load, rel=1e-13)
    assert float(result.jobs_per_server) == pytest.approx(
        load * float(result.sojourn_mean), rel=1e-15
    )
    assert float(result.residual) < 1e-13
    assert float(result.truncation_error) < 1e-12


@pytest.mark.parametrize("policy", policies(), ids=str)
def test_trajectories_from_empty_rise_to_the_fixed_point(policy: Policy) -> None:
    system = ms.System(0.5, POOLS)
    times = [0.0, 1.0, 3.0, 10.0, 60 * ms.relaxation_time(system, policy)]
    path = ms.mean_field(system, policy, times)
    limit = ms.fixed_point(system, policy)
    levels = min(path.sizes["level"], limit.sizes["level"])
    last = path.queue_tail.values[-1, :, :levels]
    assert last == pytest.approx(limit.queue_tail.values[:, :levels], abs=1e-8)
    # The joining law is monotone for all these policies, so the empty start only rises.
    assert np.all(np.diff(path.queue_tail.values, axis=0) > -1e-9)


def test_a_trajectory_from_its_fixed_point_stays() -> None:
    system, policy = ms.System(0.9, PAIR), ms.policy("scheme2", d=[2, 2])
    limit = ms.fixed_point(system, policy)
    for start in (limit, limit.queue_tail.values, system):
        path = ms.mean_field(system, policy, [0.0, 5.0], start=start)
        assert path.jobs_per_server.values == pytest.approx(float(limit.jobs_per_server), rel=1e-9)


def test_a_trajectory_balances_mass() -> None:
    """Jobs per server change by arrivals less departures: integrated by the trapezoidal rule."""
    system, policy = ms.System(0.9, PAIR), ms.policy("scheme1", d=[2, 1])
    times = np.linspace(0, 2, 2001)
    path = ms.mean_field(system, policy, times, start=ms.System(0.3, PAIR))
    work = path.queue_tail.values[:, :, 1] @ (system.fractions * system.speeds)
    gained = np.trapezoid(system.arrival_rate - work, times)
    jobs = path.jobs_per_server.values
    assert jobs[-1] - jobs[0] == pytest.approx(gained, abs=1e-6)


def scheme_drift(system: ms.System, d: list[int], tails: np.ndarray, scheme: int) -> np.ndarray:
    """(4.2)-(4.9) of arXiv:1502.05786 word by word; pools in ascending order of speed."""
    speeds = [pool.speed for pool in system.pools]
    n_pools, levels = tails.shape

    def index(n: int, j: int, i: int) -> int:
        if scheme == 1:
            return n - 1 if i < j else n
        ratio = speeds[i] * (n - 1) / speeds[j]
        return int(np.ceil(float(ratio))) if i < j else ratio.__floor__() + 1

    def tail(i: int, k: int) -> float:
        return float(tails[i, k]) if k < levels else 0.0

    result = np.zeros((n_pools, levels))
    for j, n in itertools.product(range(n_pools), range(1, levels)):
        gain = system.arrival_rate / system.fractions[j]
        gain *= tail(j, n - 1) ** d[j] - tail(j, n) ** d[j]
        for i in range(n_pools):
            if i != j:
                gain *= tail(i, index(n, j, i)) ** d[i]
        result[j, n] = gain - system.speeds[j] * (tail(j, n) - tail(j, n + 1))
    return result


@pytest.mark.parametrize("scheme", [1, 2])
def test_the_drift_is_the_papers(scheme: int) -> None:
    # Powers of two, so that the paper's ceilings and floors are exact in floating point too.
    pools = [ms.Pool("1/4", "1/2"), ms.Pool("1/2", 1), ms.Pool("1/4", 2)]
    system, d = ms.System(0.8, pools), [2, 1, 3]
    drift = Drift(system, ms.policy(f"scheme{scheme}", d=d), 9)
    tails = np.sort(np.random.default_rng(2).random((3, 9)))[:, ::-1].copy()
    tails[:, 0] = 1
    expected = scheme_drift(system, d, tails, scheme)[:, 1:].ravel()
    assert drift(drift.state(tails)) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("load", [0.5, 0.99])
@pytest.mark.parametrize("d", [[2, 2], [1, 1], [5, 5]])
def test_necessary_identity_of_scheme_1(load: float, d: list[int]) -> None:
    """(4.13): sum_j P_{l+1}^j / Delta_j = prod_j (P_l^j)^{d_j}, also for very small tails."""
    system = ms.System(load, PAIR)
    tails = ms.fixed_point(system, ms.policy("scheme1", d=d)).queue_tail.values
    delta = load / (system.fractions * system.speeds)
    left = (tails[:, 1:] / delta[:, None]).sum(axis=0)
    right = np.prod(tails[:, :-1] ** np.array(d)[:, None], axis=0)
    used = right > 1e-290
    assert left[used] == pytest.approx(right[used], rel=1e-11)


@pytest.mark.parametrize("policy", policies(), ids=str)
def test_the_order_of_the_pools_makes_no_difference(policy: Policy) -> None:
    order = [2, 0, 1]
    parameters = dict(policy.parameters)
    for name in ("d", "probabilities", "weights"):
        value = parameters.get(name)
        if isinstance(value, list):
            parameters[name] = [value[pool] for pool in order]
    permuted = ms.policy(policy.name, **parameters)
    here = ms.fixed_point(ms.System(0.8, POOLS), policy)
    there = ms.fixed_point(ms.System(0.8, [POOLS[pool] for pool in order]), permuted)
    assert float(there.sojourn_mean) == pytest.approx(float(here.sojourn_mean), rel=1e-12)
    assert there.queue_mean.values == pytest.approx(here.queue_mean.values[order], rel=1e-11)


@pytest.mark.parametrize("name", ["scheme1", "scheme2", "sed"])
def test_equal_pools_are_one_pool(name: str) -> None:
    """Two of each of two equal halves is, in the limit, four of the whole."""
    halves = [ms.Pool("1/2", 1), ms.Pool("1/2", 1)]
    two = ms.fixed_point(ms.System(0.9, halves), ms.policy(name, d=[2, 2]))
    one = ms.fixed_point(ms.System(0.9, [ms.Pool(1, 1)]), ms.policy("sq", d=4))
    assert float(two.sojourn_mean) == pytest.approx(float(one.sojourn_mean), rel=1e-12)


def random_instance(seed: int) -> tuple[ms.System, Policy]:
    rng = np.random.default_rng(seed)
    n_pools = int(rng.integers(2, 7))
    weights = [int(weight) for weight in rng.integers(1, 10, n_pools)]
    fractions = [Fraction(weight, sum(weights)) for weight in weights]
    speeds = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 9, (n_pools, 2))]
    capacity = sum(f * s for f, s in zip(fractions, speeds, strict=True))
    pools = [ms.Pool(f, s / capacity) for f, s in zip(fractions, speeds, strict=True)]
    policy = ms.policy(
        str(rng.choice(["scheme1", "scheme2", "sed"])),
        d=[int(d) for d in rng.integers(1, 11, n_pools)],
    )
    return ms.System(float(rng.choice([0.3, 0.7, 0.9, 0.99, 0.999])), pools), policy


@pytest.mark.parametrize("seed", range(12))
def test_two_methods_find_the_same_fixed_point(seed: int) -> None:
    """Newton's method, and implicit Euler steps from the empty system, on random instances."""
    system, policy = random_instance(seed)
    result = ms.fixed_point(system, policy)
    tails = result.queue_tail.values
    drift = Drift(system, policy, 2 * int(np.flatnonzero((tails > 1e-17).any(axis=0))[-1]) + 2)
    state = pseudo_transient(drift, np.zeros(drift.state(tails).shape))
    assert state is not None
    jobs = float(system.fractions @ drift.tails(state)[:, 1:].sum(axis=1))
    assert jobs == pytest.approx(float(result.jobs_per_server), rel=1e-12)


def test_pools_that_nobody_picks_stay_empty() -> None:
    result = ms.fixed_point(ms.System(0.3, PAIR), ms.policy("hybrid_sq", d=2))
    assert result.queue_tail.values[0, 1:].max() == 0
    assert result.queue_mean.values[0] == 0
    assert np.all(result.joining_rate.values[0] == 0)


def test_results_are_labelled() -> None:
    result = ms.fixed_point(ms.System(0.5, PAIR), ms.policy("scheme1", d=[1, 1]))
    assert result.queue_tail.dims == ("pool", "level")
    assert result.sojourn_mean.attrs["units"] == "time"
    assert result.pool_speed.values.tolist() == [0.2, 1.8]
    assert all(variable.attrs["long_name"] for variable in result.data_vars.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"times": [1.0, 0.5]}, r"times = \[1.0, 0.5\]: must be finite, increasing"),
        ({"times": [-1.0]}, r"times = \[-1.0\]: must be"),
        ({"start": "full"}, r"start = 'full': must be 'empty', a System, or queue tails"),
        ({"start": [[1, 0.5]]}, r"start: queue tails of shape \(1, 2\) must have shape \(2, level"),
        ({"start": [[1, 0.5], [1, 1.5]]}, r"start: queue tails of shape \(2, 2\)"),
        ({"start": ms.System(0.5, [ms.Pool(1, 1)])}, r"start: must be a system with the same p"),
    ],
)
def test_bad_trajectories_are_refused(changes: dict[str, object], message: str) -> None:
    arguments = {"times": [0.0, 1.0], "start": "empty"} | changes
    with pytest.raises(ValueError, match=message):
        ms.mean_field(ms.System(0.5, PAIR), ms.policy("scheme1", d=[1, 1]), **arguments)  # type: ignore


def test_what_cannot_be_computed_is_refused() -> None:
    with pytest.raises(ms.UnstableSystem, match="policy sq sends pool 0"):
        ms.fixed_point(ms.System(0.5, PAIR), ms.policy("sq", d=2))


@pytest.mark.parametrize("load,d", [(0.955, 5), (0.96, 3), (0.98, 5)])
def test_much_faster_servers_fill_up_before_slow_ones_are_joined(load: float, d: int) -> None:
    # Up to 19 jobs at a server that is 20 times as fast are better than an idle slow one.
    system = ms.System(load, [ms.Pool("1/2", "2/21"), ms.Pool("1/2", "40/21")])
    state = ms.fixed_point(system, ms.policy("sed", d=(d, d)))
    slow, fast = state.queue_tail.sel(level=1).values
    assert fast == pytest.approx(1, abs=1e-4)
    # What the fast servers cannot do is done by the slow ones.
    assert slow * 1 / 21 + fast * 20 / 21 == pytest.approx(load, rel=1e-12)
    assert state.sojourn_mean.item() == pytest.approx(10, rel=0.06)
