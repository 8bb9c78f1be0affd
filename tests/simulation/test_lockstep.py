"""The kernel for replications that are simulated together: its twin, its law, its lanes."""

import tracemalloc
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from numba import njit
from scipy.stats import chisquare
from tests.registry import BOUNDED, EQUAL, POOLS, announced_policies, policies
from tests.simulation.twin import LockstepTwin

import manyserver as ms
from manyserver.exact import stationary_law
from manyserver.joining import JoiningLaw
from manyserver.policies import Policy
from manyserver.simulation.kernels import MOST_LEVELS, MOST_POLLS, in_lockstep
from manyserver.simulation.lanes import LANES
from manyserver.simulation.lockstep_kernel import BLOCK, FLUSH, _draw, _play
from manyserver.simulation.lockstep_replicas import Lockstep
from manyserver.simulation.replica import Measured
from manyserver.simulation.server_replica import ServerReplica

START = np.array([[1.0, 0.75, 0.5, 0.25]] * 3)
ALL = pytest.mark.parametrize("policy", policies(), ids=str)
EVERY = pytest.mark.parametrize(
    "pools", [POOLS, EQUAL, BOUNDED], ids=["unequal", "equal", "bounded"]
)


def start(pools: list[ms.Pool]) -> np.ndarray:
    tails = START.copy()
    for tail, pool in zip(tails, pools, strict=True):
        tail[4 if pool.buffer is None else pool.buffer + 1 :] = 0
    return tails


def lockstep(
    system: ms.System,
    policy: Policy,
    tails: np.ndarray,
    seeds: Sequence[tuple[int, ...]],
    **more: int,
) -> Lockstep:
    return Lockstep([ServerReplica(system, policy, tails, seed, **more) for seed in seeds])


def jobs_of(tails: np.ndarray) -> list[list[int]]:
    held = -np.diff(tails, axis=1, append=0)
    return [[level for level, count in enumerate(row) for _ in range(count)] for row in held]


def assert_same(one: Measured, other: Measured) -> None:
    """The same, whatever levels there are that nobody has reached."""
    levels = min(one.tails.shape[2], other.tails.shape[2])
    for a, b in zip((*one[:4], *one.observations), (*other[:4], *other.observations), strict=True):
        cut = [x[:, :, :levels] if x.ndim == 3 else x for x in (a, b)]
        assert (cut[0] == cut[1]).all()
        assert all(not x[:, :, levels:].any() for x in (a, b) if x.ndim == 3)


@EVERY
@ALL
def test_twin_follows_the_same_path(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    system = ms.System(0.8, pools, n_servers=12)
    seeds = [(seed, 1, lane) for lane in range(3)]
    group = lockstep(system, policy, start(pools), seeds)
    twins = [
        LockstepTwin(
            system, policy, group.tables, [int(word) for word in replica.rng],
            jobs_of(replica.tail_counts()),
        )
        for replica in group.replicas
    ]  # fmt: skip
    pieces, steps = 3, 100
    measured = group.advance_all(pieces, steps)
    servers = np.array(system.counts)[:, None]
    for twin, mine in zip(twins, measured, strict=True):
        tails, joins = np.zeros(mine.tails.shape), np.zeros(mine.joins.shape)
        leaves, blocked = np.zeros(mine.joins.shape), np.zeros((pieces, 3))
        for piece in range(pieces):
            for _ in range(steps):
                arrival, pool, before = twin.step()
                joins[piece, pool, before] += arrival and before < twin.room[pool]
                blocked[piece, pool] += arrival and before == twin.room[pool]
                leaves[piece, pool, before] += not arrival and before > 0
                for number, here in enumerate(twin.jobs):
                    counts = np.bincount(here, minlength=group.levels)
                    tails[piece, number] += counts[::-1].cumsum()[::-1]
        assert (mine.joins == joins).all()
        assert (mine.leaves == leaves).all()
        assert (mine.blocked == blocked).all()
        assert mine.tails == pytest.approx(tails / steps / servers, abs=1e-12)


@njit
def play_frozen(tables, state, block, blocks):  # type: ignore[no-untyped-def]
    """Play steps, but never change the state."""
    frozen = state.tail.copy()
    for _ in range(blocks):
        _draw(tables, state.rng, block)
        for step in range(BLOCK):
            _play(tables, state, block, step, step + 1)
            state.tail[...] = frozen


@pytest.mark.parametrize("pools", [POOLS, EQUAL], ids=["unequal", "equal"])
@ALL
def test_law_of_the_choice(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    """Chi-square; rejects a right kernel with probability 1e-6 in each case."""
    system = ms.System(0.9, pools, n_servers=12)
    levels = np.sort(np.random.default_rng(seed).random((3, 4)))[:, ::-1]
    tails = np.hstack([np.ones((3, 1)), levels])
    replica = ServerReplica(system, policy, tails, (seed, 2))
    group = Lockstep([replica] * LANES)
    group.state.rng[...] = np.random.default_rng((seed, 2)).integers(
        2**64, size=group.state.rng.shape, dtype=np.uint64
    )
    play_frozen(group.tables, group.state, group.block, 60_000 // (LANES * BLOCK))
    # A row holds the arrivals that found one job less.
    joined = group.state.joins.astype(np.int64).sum(axis=1).reshape(3, -1)
    joined = np.roll(joined, -1, axis=1)
    law = JoiningLaw(system, policy, group.levels, finite=True)
    expected = law.probabilities(replica.tail_counts() / np.array(system.counts)[:, None])
    assert (joined[expected < 1e-14] == 0).all()
    possible = expected > 1e-3
    total = joined[possible].sum()
    assert joined.sum() - total <= 0.01 * joined.sum()
    if possible.sum() > 1:
        share = expected[possible] / expected[possible].sum()
        assert chisquare(joined[possible], share * total).pvalue > 1e-6


@ALL
def test_states_are_those_of_the_exact_chain(policy: Policy, seed: int) -> None:
    """Chi-square over 300 states of 4000 independent samples; false alarms 1e-6 in each case."""
    system = ms.System(0.8, BOUNDED, n_servers=8)
    law = stationary_law(system, policy)
    tails = np.rint(law.tails() * np.array(system.counts)[:, None]).astype(int)
    levels = tails.shape[2]
    seeds = [(seed, 8, lane) for lane in range(LANES)]
    group = lockstep(system, policy, start(BOUNDED), seeds)
    seen: Counter[bytes] = Counter()
    for _ in range(250):
        # Some ten units of time, after which it has forgotten the last sample.
        group.advance_all(1, 150)
        states = group.state.tail.reshape(3, -1, LANES)[:, 1:levels].astype(int)
        seen.update(states[..., lane].tobytes() for lane in range(LANES))
    found = np.array([seen.pop(state.tobytes(), 0) for state in tails[:, :, 1:].copy()])
    assert not seen
    expected = law.probabilities * found.sum()
    often = expected >= 5
    found, expected = (np.append(x[often], x[~often].sum()) for x in (found, expected))
    assert chisquare(found, expected).pvalue > 1e-6


@pytest.mark.parametrize("pools", [POOLS, BOUNDED], ids=["unequal", "bounded"])
@ALL
def test_lanes_do_not_know_each_other(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    """Also where levels are added, and sums and observations cut in another way."""
    system = ms.System(0.9, pools, n_servers=12)
    seeds = [(seed, 3, lane) for lane in range(LANES)]
    group = lockstep(system, policy, start(pools), seeds, levels=8)
    together = group.advance_all(4, 3000, 60, moments=True)
    for lane in (0, 7, LANES - 1):
        alone = lockstep(system, policy, start(pools), seeds[lane : lane + 1])
        assert_same(alone.advance_all(4, 3000, 60, moments=True)[0], together[lane])


def test_levels_are_added(seed: int) -> None:
    system = ms.System(0.95, [ms.Pool(1, 1)], n_servers=20)
    full = np.ones((1, 7))
    seeds = [(seed, 4, lane) for lane in range(LANES)]
    small, large = (
        lockstep(system, ms.policy("random"), full, seeds, levels=levels) for levels in (8, 256)
    )
    assert small.levels == 8
    for _ in range(3):
        pairs = zip(small.advance_all(3, 5003, 5003), large.advance_all(3, 5003, 5003), strict=True)
        for one, other in pairs:
            assert_same(one, other)
    assert small.levels > 8


def test_pieces_may_be_cut_anywhere(seed: int) -> None:
    system = ms.System(0.9, POOLS, n_servers=1200)
    seeds = [(seed, 5, lane) for lane in range(2)]
    policy = ms.policy("scheme2", d=[2, 1, 2])
    whole, cut = (lockstep(system, policy, START, seeds) for _ in range(2))
    cuts = (1, BLOCK - 1, BLOCK, BLOCK + 7, FLUSH, FLUSH + 1)
    steps = sum(cuts)
    parts = [cut.advance_all(1, part) for part in cuts]
    for lane, one in enumerate(whole.advance_all(1, steps)):
        own = [part[lane] for part in parts]
        assert one.joins.tolist() == np.sum([part.joins for part in own], axis=0).tolist()
        sums = sum(part.tails * size for part, size in zip(own, cuts, strict=True))
        assert one.tails == pytest.approx(sums / steps, rel=1e-12)
    assert (whole.state.tail == cut.state.tail).all()


def test_a_hundred_million_servers_take_kilobytes(seed: int) -> None:
    system = ms.System(0.9, [ms.Pool(1, 1)], n_servers=10**8)
    policy = ms.policy("sq", d=2)
    tails = ms.fixed_point(system, policy).queue_tail.values
    lockstep(system, policy, tails, [(seed, 6)]).advance_all(1, 10)
    tracemalloc.start()
    group = lockstep(system, policy, tails, [(seed, 6, lane) for lane in range(LANES)])
    measured = group.advance_all(1, 100_000)
    assert tracemalloc.get_traced_memory()[1] < 2**19
    tracemalloc.stop()
    # Arrivals are 9 of 19 steps; they find level k with probability s_k**2 - s_{k+1}**2. 5 sigma.
    joins = sum(one.joins[0, 0] for one in measured)
    steps, law = LANES * 100_000, np.zeros(len(joins))
    law[: tails.shape[1]] = -np.diff(tails[0] ** 2, append=0)
    expected = steps * 9 / 19 * law
    # Sums of so many servers do not fit into 32 bits; the numbers change by at most the steps.
    for one in measured:
        assert one.tails[0, 0, : tails.shape[1]] == pytest.approx(tails[0], abs=1.01e-3)
    assert (abs(joins - expected) < 5 * np.sqrt(expected + 25)).all()


def test_common_random_numbers(seed: int) -> None:
    """What a step is does not depend on the policy, nor where it departs from."""
    system = ms.System(0.8, POOLS, n_servers=1000)
    some = [ms.policy("sq", d=3), ms.policy("hybrid_sq", d=2), ms.policy("scheme1", d=[1, 2, 2])]
    accepted = [
        lockstep(system, policy, START, [(seed, 7)]).advance_all(50, BLOCK)[0].accepted.tolist()
        for policy in some
    ]
    assert accepted[0] == accepted[1] == accepted[2]


def test_which_replications_are_simulated_together() -> None:
    one = [ms.Pool(1, 1)]
    system = ms.System(0.9, one, n_servers=1000)

    def chosen(policy: Policy, levels: int = 5) -> bool:
        return in_lockstep(system, policy, np.ones((1, levels + 1)))

    assert chosen(ms.policy("sq", d=2))
    assert chosen(ms.policy("sq", d=2), MOST_LEVELS)
    assert not chosen(ms.policy("sq", d=2), MOST_LEVELS + 1)
    assert chosen(ms.policy("sq", d=MOST_POLLS))
    assert not chosen(ms.policy("sq", d=MOST_POLLS + 1))
    assert not chosen(ms.policy("pull", routers=2))
    assert not any(chosen(policy) for policy in announced_policies())
