"""Samples of the state against the state itself; the control variates have mean zero."""

import numpy as np
import pytest
from numba import njit
from tests.registry import EQUAL, POOLS, policies

import manyserver as ms
from manyserver.exact import stationary_law
from manyserver.joining import JoiningLaw
from manyserver.policies import Policy
from manyserver.simulation.choices import make_choices
from manyserver.simulation.controls import _columns
from manyserver.simulation.replica import Measured, Replica
from manyserver.simulation.samples import Samples, add_choices, make_samples, make_scratch

BOTH = pytest.mark.parametrize("pools", [POOLS, EQUAL], ids=["unequal", "equal"])
ALL = pytest.mark.parametrize("policy", policies(), ids=str)


@njit
def law_in_states(choices, scratch, tails, sums):  # type: ignore[no-untyped-def]
    for state in range(len(tails)):
        for pool in range(tails.shape[1]):
            scratch.top[pool] = 0
            for level in range(tails.shape[2]):
                scratch.tail[pool, level] = tails[state, pool, level]
                scratch.top[pool] += tails[state, pool, level] > 0
        add_choices(choices, scratch, sums, state)


def compiled_law(system: ms.System, policy: Policy, tail_counts: np.ndarray) -> np.ndarray:
    """Joining law in several states, shape (state, pool, level)."""
    levels = tail_counts.shape[2]
    choices = make_choices(system, policy, levels)
    sums = np.zeros(tail_counts.shape)
    law_in_states(choices, make_scratch(choices, levels), tail_counts.astype(float), sums)
    return sums


@BOTH
@ALL
def test_compiled_law(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    system = ms.System(0.8, pools, n_servers=24)
    random = np.random.default_rng((seed, 21))
    counts = np.array(system.counts)[:, None]
    tails = np.sort(random.integers(0, counts + 1, (20, 3, 5)), axis=2)[:, :, ::-1]
    tails = np.concatenate([np.broadcast_to(counts, (20, 3, 1)), tails], axis=2)
    law = JoiningLaw(system, policy, 6, finite=True)
    expected = np.array([law.probabilities(state / counts) for state in tails])
    assert compiled_law(system, policy, tails) == pytest.approx(expected, abs=1e-14)


@BOTH
@ALL
def test_controls_have_mean_zero(policy: Policy, pools: list[ms.Pool]) -> None:
    """On the exact chain, state by state, up to the states that are left out."""
    small = [ms.System(0.2, pools, n_servers=n) for n in (4, 8)]
    system = next(system for system in small if fits(policy, system))
    tolerance = 1e-6
    law = stationary_law(system, policy, tolerance=tolerance)
    states = len(law.probabilities)
    tails = np.concatenate([law.tails(), np.zeros((states, 3, 1))], axis=2)
    servers = np.array(system.counts)[:, None]
    jobs = law.jobs.sum(axis=1) / system.n_servers
    work = tails[:, :, 1] @ (system.fractions * system.speeds)
    samples = Samples(
        taken=np.ones((states, 2)),
        tails=tails * servers,
        squares=np.zeros(tails.shape),
        choices=compiled_law(system, policy, (tails * servers).round()),
        totals=np.stack([jobs**2, jobs * (work - system.arrival_rate)], axis=1),
        products=np.zeros((states, 3, 0, 3, 0)),
    )
    often = np.full(tails.shape, 1e9)
    columns = _columns(system, Measured(tails, often, np.zeros(states), samples), each=4)
    mean, size = law.probabilities @ columns, law.probabilities @ np.abs(columns)
    assert columns.shape == (states, 1 + 3 * min(4, law.levels))
    assert (np.abs(mean) <= 20 * tolerance).all()
    assert (np.sort(size)[-2:] > 1e4 * tolerance).all()


def fits(policy: Policy, system: ms.System) -> bool:
    try:
        policy.check(system)
    except ValueError:
        return False
    return True


@BOTH
@ALL
def test_sample_is_the_state(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    system = ms.System(0.8, pools, n_servers=12)
    start = np.array([[1.0, 0.75, 0.5, 0.25]] * 3)
    together, alone = (Replica(system, policy, start, (seed, 22), levels=8) for _ in range(2))
    pieces, samples, period = 3, 4, 50
    measured = together.advance(pieces, samples * period, period, moments=True)
    expected = make_samples(pieces, 3, together.levels, moments=True)
    for piece in range(pieces):
        for number in range(samples):
            alone.advance(1, period)
            add_sample(expected, piece, number, alone)
    assert together.codes.tolist() == alone.codes.tolist()
    for field in ("taken", "tails", "squares", "choices", "totals"):
        actual, wanted = getattr(measured.samples, field), getattr(expected, field)
        assert actual == pytest.approx(wanted, abs=1e-11)
    actual = measured.samples.products
    earlier = np.arange(3)[:, None] >= np.arange(3)
    assert (actual == expected.products * earlier[:, None, :, None]).all()


def add_sample(sums: Samples, piece: int, number: int, replica: Replica) -> None:
    system, tails = replica.system, replica.tail_counts()
    tails = np.pad(tails, ((0, 0), (0, sums.tails.shape[2] - tails.shape[1])))
    sums.taken[piece, 0] += 1
    sums.tails[piece] += tails
    sums.squares[piece] += tails**2
    sums.choices[piece] += compiled_law(system, replica.policy, tails[None])[0]
    jobs = tails[:, 1:].sum() / system.n_servers
    work = tails[:, 1] @ system.speeds / system.n_servers
    sums.totals[piece] += jobs**2, jobs * (work - system.arrival_rate)
    if number % 4 == 0:
        held = -np.diff(tails, axis=1, append=0)[:, : sums.products.shape[2]]
        held = np.pad(held, ((0, 0), (0, sums.products.shape[2] - held.shape[1])))
        sums.taken[piece, 1] += 1
        sums.products[piece] += np.multiply.outer(held, held)
