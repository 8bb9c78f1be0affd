"""Observations of the state against the state itself; the control variates have mean zero."""

import itertools
import math

import numpy as np
import pytest
from numba import njit
from tests.registry import BOUNDED, EQUAL, POOLS, announced_policies, policies

import manyserver as ms
from manyserver.exact import stationary_law
from manyserver.joining import JoiningLaw
from manyserver.policies import Policy
from manyserver.simulation.controls import BATCHES_FOR_CUBES, PRODUCTS, _columns
from manyserver.simulation.joining_tables import make_joining_tables
from manyserver.simulation.lockstep_replicas import Lockstep
from manyserver.simulation.observations import (
    DRIFTS,
    Observations,
    add_joining_law,
    add_totals,
    make_observations,
    make_scratch,
)
from manyserver.simulation.occupancy_replica import OccupancyReplica
from manyserver.simulation.replica import Measured
from manyserver.simulation.server_replica import ServerReplica

EVERY = pytest.mark.parametrize(
    "pools", [POOLS, EQUAL, BOUNDED], ids=["unequal", "equal", "bounded"]
)
ALL = pytest.mark.parametrize("policy", [*policies(), *announced_policies()], ids=str)


@njit
def sample_states(joining, scratch, tails, observations):  # type: ignore[no-untyped-def]
    for state in range(len(tails)):
        jobs, work = 0.0, 0.0
        for pool in range(tails.shape[1]):
            scratch.top[pool] = 0
            for level in range(tails.shape[2]):
                scratch.tail[pool, level] = tails[state, pool, level]
                scratch.top[pool] += tails[state, pool, level] > 0
                jobs += tails[state, pool, level] if level else 0.0
            work += joining.speed[pool] * tails[state, pool, 1]
        blocked = add_joining_law(joining, scratch, observations.joining, state)
        jobs, work = jobs / joining.servers, work / joining.servers
        add_totals(jobs, work, blocked, state, joining, scratch, observations)


def compiled_samples(system: ms.System, policy: Policy, tail_counts: np.ndarray) -> Observations:
    """Several states of tails (state, pool, level), each a sample of its own."""
    n_states, n_pools, levels = tail_counts.shape
    joining = make_joining_tables(system, policy, levels)
    observations = make_observations(n_states, n_pools, levels, moments=False)
    scratch = make_scratch(joining, levels)
    sample_states(joining, scratch, tail_counts.astype(float), observations)
    return observations._replace(tails=tail_counts)


@EVERY
@ALL
def test_compiled_law(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    system = ms.System(0.8, pools, n_servers=24)
    random = np.random.default_rng((seed, 21))
    counts = np.array(system.counts)[:, None]
    tails = np.sort(random.integers(0, counts + 1, (20, 3, 5)), axis=2)[:, :, ::-1]
    tails = np.concatenate([np.broadcast_to(counts, (20, 3, 1)), tails], axis=2)
    law = JoiningLaw(system, policy, 6, finite=True)
    full = law.full[:, :-1]
    tails[:, :, 1:][:, full] = 0
    tails[:2, :, 1:] = ~full * counts  # no room at all, if there are buffers
    expected = np.array([law.probabilities(state / counts) for state in tails])
    observations = compiled_samples(system, policy, tails)
    blocked = observations.blocked
    assert observations.joining == pytest.approx(expected, abs=1e-14)
    assert blocked == pytest.approx(1 - expected.sum(axis=(1, 2)), abs=1e-13)
    assert (blocked[:2] == (pools is BOUNDED)).all()


@EVERY
@ALL
def test_controls_have_mean_zero(policy: Policy, pools: list[ms.Pool]) -> None:
    """On the exact chain, state by state, up to the states that are left out."""
    rate = 0.7 if pools is BOUNDED else 0.2
    small = [ms.System(rate, pools, n_servers=n) for n in (4, 8)]
    system = next(system for system in small if fits(policy, system))
    tolerance = 1e-6
    law = stationary_law(system, policy, tolerance=tolerance)
    states = len(law.probabilities)
    tails = np.concatenate([law.tails(), np.zeros((states, 3, 1))], axis=2)
    servers = np.array(system.counts)[:, None]
    observations = compiled_samples(system, policy, (tails * servers).round())
    often = np.full(tails.shape, 1e9)
    none = np.zeros((states, 0))
    batches = Measured(tails, often, often, np.zeros((states, 3)), none, observations)
    products = len(PRODUCTS) - (states < BATCHES_FOR_CUBES)
    columns = _columns(system, batches, most=products + 3 * 4)
    mean, size = law.probabilities @ columns, law.probabilities @ np.abs(columns)
    assert columns.shape == (states, products + 3 * min(4, law.levels))
    assert (np.abs(mean) <= 20 * tolerance).all()
    assert (np.sort(size)[-2:] > 1e4 * tolerance).all()


def fits(policy: Policy, system: ms.System) -> bool:
    try:
        policy.check(system)
    except ValueError:
        return False
    return True


@EVERY
@ALL
def test_sample_is_the_state(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    system = ms.System(0.8, pools, n_servers=12)
    start = np.array([[1.0, 0.75, 0.5, 0.25]] * 3)
    start[JoiningLaw(system, policy, 3, finite=True).full @ np.eye(3, 4, 1) > 0] = 0
    kernel = OccupancyReplica if policy in announced_policies() else ServerReplica
    together, alone = (kernel(system, policy, start, (seed, 22), levels=8) for _ in range(2))
    pieces, observations, period = 3, 4, 50
    measured = together.advance(pieces, observations * period, period, moments=True)
    expected = make_observations(pieces, 3, together.levels, moments=True)
    for piece in range(pieces):
        for number in range(observations):
            alone.advance(1, period)
            add_sample(expected, piece, number, system, policy, alone.tail_counts())
    assert together.tail_counts().tolist() == alone.tail_counts().tolist()
    assert_samples(measured.observations, expected)


@EVERY
@pytest.mark.parametrize("policy", policies(), ids=str)
def test_sample_of_a_lane_is_its_state(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    system = ms.System(0.8, pools, n_servers=12)
    start = np.array([[1.0, 0.75, 0.5, 0.25]] * 3)
    start[JoiningLaw(system, policy, 3, finite=True).full @ np.eye(3, 4, 1) > 0] = 0
    together, alone = (
        Lockstep([ServerReplica(system, policy, start, (seed, 23, i), levels=8) for i in range(2)])
        for _ in range(2)
    )
    pieces, observations, period = 3, 4, 50
    measured = together.advance_all(pieces, observations * period, period, moments=True)
    expected = [make_observations(pieces, 3, together.levels, moments=True) for _ in range(2)]
    for piece in range(pieces):
        for number in range(observations):
            alone.advance_all(1, period)
            tails = alone.state.tail.reshape(3, alone.levels, -1).astype(int)
            tails[:, 0] = np.array(system.counts)[:, None]
            for lane in range(2):
                add_sample(expected[lane], piece, number, system, policy, tails[..., lane])
    for lane in range(2):
        assert_samples(measured[lane].observations, expected[lane])


def assert_samples(observations: Observations, expected: Observations) -> None:
    for field in (
        "taken",
        "multiplied",
        "tails",
        "squares",
        "joining",
        "squared_jobs",
        "blocked",
        "drifts",
    ):
        actual, wanted = getattr(observations, field), getattr(expected, field)
        assert actual == pytest.approx(wanted, abs=1e-11)
    actual = observations.products
    earlier = np.arange(3)[:, None] >= np.arange(3)
    assert (actual == expected.products * earlier[:, None, :, None]).all()


def add_sample(
    sums: Observations,
    piece: int,
    number: int,
    system: ms.System,
    policy: Policy,
    tails: np.ndarray,
) -> None:
    tails = np.pad(tails, ((0, 0), (0, sums.tails.shape[2] - tails.shape[1])))
    sums.taken[piece] += 1
    sums.tails[piece] += tails
    sums.squares[piece] += tails**2
    one = compiled_samples(system, policy, tails[None])
    sums.joining[piece] += one.joining[0]
    jobs = tails[:, 1:].sum() / system.n_servers
    sums.squared_jobs[piece] += jobs**2
    sums.blocked[piece] += one.blocked[0]
    sums.drifts[piece] += drifts(system, tails, one.joining[0])
    if number % 4 == 0:
        held = -np.diff(tails, axis=1, append=0)[:, : sums.products.shape[2]]
        held = np.pad(held, ((0, 0), (0, sums.products.shape[2] - held.shape[1])))
        sums.multiplied[piece] += 1
        sums.products[piece] += np.multiply.outer(held, held)


def drifts(system: ms.System, tails: np.ndarray, joining: np.ndarray) -> np.ndarray:
    """By definition: rates of all transitions times what the functions change."""
    servers = sum(system.counts)

    def functions(tails: np.ndarray) -> np.ndarray:
        values = {"l": tails[:, 1:].sum() / servers}
        values |= {name: tails[:, k] @ system.speeds / servers for k, name in ((1, "w"), (2, "v"))}
        return np.array([math.prod(values[letter] for letter in name) for name in DRIFTS])

    total = np.zeros(len(DRIFTS))
    for pool, level in itertools.product(range(len(tails)), range(tails.shape[1] - 1)):
        held = tails[pool, level] - tails[pool, level + 1]
        up, down = tails.copy(), tails.copy()
        up[pool, level + 1] += 1
        down[pool, level] -= 1
        arrivals = system.arrival_rate * servers * joining[pool, level]
        departures = system.speeds[pool] * held if level else 0.0
        for rate, after in ((arrivals, up), (departures, down)):
            total += rate * (functions(after) - functions(tails))
    return total


@pytest.mark.parametrize("n_servers", [10, 50])
def test_long_tails_bias_nothing(n_servers: int, seed: int) -> None:
    """Of 20 intervals, the mean error over the half-width is normal with s.d. 0.114.

    One of 0.46, four standard errors, has probability 6e-5. With controls for the levels alone
    that are reached often, 20 intervals of random routing were off by 0.4 on average.
    """
    system = ms.System(0.8, [ms.Pool(1, 1)], n_servers=n_servers)
    errors = []
    for number in range(20):
        result = ms.simulate(system, ms.policy("random"), precision=0.01, seed=(seed, 60, number))
        errors.append(float((result.sojourn_mean - 5.0) / result.sojourn_mean_half_width))
        assert float(result.sojourn_mean_half_width) < 5e-4
    assert abs(np.mean(errors)) < 0.46
