"""The kernel against its twin, and the law of its choices against the joining law."""

import numpy as np
import pytest
from numba import njit
from scipy.stats import chisquare
from tests.registry import BOUNDED, EQUAL, POOLS, policies
from tests.simulation.twin import Twin

import manyserver as ms
from manyserver.joining import JoiningLaw
from manyserver.policies import Policy
from manyserver.simulation.replica import Measured
from manyserver.simulation.server_kernel import _BLOCK, BLOCK, _1, _play, draw_block
from manyserver.simulation.server_replica import ServerReplica

HALF_FULL = np.array([[1.0, 0.75, 0.5, 0.25]] * 3)


def tail_counts(jobs: list[int], pool_of: list[int], levels: int) -> np.ndarray:
    codes = np.array(pool_of) * levels + jobs
    counts = np.bincount(codes, minlength=3 * levels).reshape(3, levels)
    return counts[:, ::-1].cumsum(axis=1)[:, ::-1]


def assert_equal(one: Measured, other: Measured) -> None:
    levels = max(one.tails.shape[2], other.tails.shape[2])
    for a, b in zip(one[:2], other[:2], strict=True):
        wide = [np.pad(x, ((0, 0), (0, 0), (0, levels - x.shape[2]))) for x in (a, b)]
        assert (wide[0] == wide[1]).all()
    assert (one.events == other.events).all()


@pytest.mark.parametrize("pools", [POOLS, EQUAL, BOUNDED], ids=["unequal", "equal", "bounded"])
@pytest.mark.parametrize("policy", policies(), ids=str)
def test_twin_follows_the_same_path(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    system = ms.System(0.8, pools, n_servers=12)
    half_full = HALF_FULL.copy()
    for tail, pool in zip(half_full, pools, strict=True):
        tail[4 if pool.buffer is None else pool.buffer + 1 :] = 0
    replica = ServerReplica(system, policy, half_full, (seed, 1))
    jobs = [int(level) for level in np.concatenate(replica.jobs)]
    twin = Twin(system, policy, replica.polls, [int(word) for word in replica.rng], jobs)
    pieces, steps = 3, 100
    measured = replica.advance(pieces, steps)
    tails, joins = np.zeros(measured.tails.shape), np.zeros(measured.joins.shape)
    leaves, blocked = np.zeros(measured.joins.shape), np.zeros((pieces, 3))
    events = np.zeros(pieces, dtype=int)
    for piece in range(pieces):
        for _ in range(steps):
            tails[piece] += tail_counts(twin.jobs, twin.pool_of, replica.levels)
            arrival, server, before = twin.step()
            here = twin.pool_of[server]
            joins[piece, here, before] += arrival and before < twin.room[here]
            blocked[piece, here] += arrival and before == twin.room[here]
            leaves[piece, here, before] += not arrival and before > 0
            events[piece] += arrival or before > 0
    assert np.concatenate(replica.jobs).tolist() == twin.jobs
    assert (measured.joins == joins).all()
    assert (measured.leaves == leaves).all()
    assert (measured.blocked == blocked).all()
    assert (measured.events == events).all()
    servers = np.array(system.counts)[:, None]
    assert measured.tails == pytest.approx(tails / steps / servers, abs=1e-12)


@njit
def frozen_joins(codes, polls, tables, rng, block, flows, steps):  # type: ignore[no-untyped-def]
    """Count the codes that arrivals join, and the servers, if the state never changes."""
    frozen = codes.copy()
    servers = np.zeros(codes.size, dtype=np.int64)
    step = _BLOCK
    for _ in range(steps):
        if step == _BLOCK:
            draw_block(polls, rng, block)
            step -= _BLOCK
        arrival = block.arrival[step] == _1
        n_polls = np.uint64(polls.fresh.size)
        step, _, _ = _play(codes, flows, tables, block, n_polls, step, step + _1, _1)
        for server in range(codes.size):
            servers[server] += arrival and codes[server] != frozen[server]
            codes[server] = frozen[server]
    return servers


@pytest.mark.parametrize("pools", [POOLS, EQUAL], ids=["unequal", "equal"])
@pytest.mark.parametrize("policy", policies(), ids=str)
def test_law_of_the_choice(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    """Chi-square; rejects a right kernel with probability 1e-6 in each case."""
    system = ms.System(0.9, pools, n_servers=12)
    levels = np.sort(np.random.default_rng(seed).random((3, 4)))[:, ::-1]
    replica = ServerReplica(system, policy, np.hstack([np.ones((3, 1)), levels]), (seed, 2))
    flows = np.zeros(4 * 3 * replica.levels, dtype=np.uint64)
    servers = frozen_joins(
        replica.codes, replica.polls, replica.tables, replica.rng, replica.block, flows, 60_000
    )
    joined = flows.reshape(3, replica.levels, 4)[:, :, 2].astype(int)
    counts = replica.tail_counts()
    law = JoiningLaw(system, policy, replica.levels, finite=True)
    expected = law.probabilities(counts / np.array(system.counts)[:, None])
    assert (joined[expected < 1e-14] == 0).all()
    assert_law(joined, expected)
    # Servers of one pool that hold the same number of jobs are joined equally often.
    here = replica.codes[: system.n_servers].astype(int)
    pool, level = here // replica.levels, here % replica.levels
    alike = counts[pool, level] - counts[pool, level + 1]
    assert_law(servers[: system.n_servers], expected[pool, level] / alike)


def assert_law(joined: np.ndarray, expected: np.ndarray) -> None:
    possible = expected > 1e-3
    total = joined[possible].sum()
    assert joined.sum() - total <= 0.01 * joined.sum()
    if possible.sum() > 1:
        share = expected[possible] / expected[possible].sum()
        assert chisquare(joined[possible], share * total).pvalue > 1e-6


@pytest.mark.parametrize("top", [253, 254])
def test_wider_codes_change_nothing(top: int, seed: int) -> None:
    system = ms.System(0.9, [ms.Pool(1, 1)], n_servers=20)
    policy = ms.policy("sq", d=2)
    full = np.ones((1, top + 1))
    narrow = ServerReplica(system, policy, full, (seed, 3))
    wide = ServerReplica(system, policy, full, (seed, 3), levels=2048)
    assert narrow.codes.dtype == np.uint8
    assert wide.codes.dtype == np.uint16
    for _ in range(3):
        measured = narrow.advance(5, 33)
        assert_equal(measured, wide.advance(5, 33))
    assert narrow.codes.dtype == np.uint16
    assert measured.tails.shape[2] > 256
    assert np.concatenate(narrow.jobs).tolist() == np.concatenate(wide.jobs).tolist()


@pytest.mark.parametrize("policy", policies(), ids=str)
def test_longer_tables_change_nothing(policy: Policy, seed: int) -> None:
    system = ms.System(0.9, POOLS, n_servers=12)
    small = ServerReplica(system, policy, HALF_FULL, (seed, 4), levels=8)
    large = ServerReplica(system, policy, HALF_FULL, (seed, 4))
    assert small.levels == 8
    assert_equal(small.advance(7, 1501), large.advance(7, 1501))
    assert small.rng.tolist() == large.rng.tolist()


def test_pieces_may_be_cut_anywhere(seed: int) -> None:
    system = ms.System(0.9, POOLS, n_servers=12)
    policy = ms.policy("scheme2", d=[2, 1, 2])
    whole, cut = (ServerReplica(system, policy, HALF_FULL, (seed, 5)) for _ in range(2))
    one = whole.advance(1, 10 * BLOCK)
    parts = [cut.advance(1, steps) for steps in (1, BLOCK - 1, BLOCK, BLOCK + 77, 7 * BLOCK - 77)]
    assert one.joins.sum(axis=0).tolist() == sum(p.joins.sum(axis=0) for p in parts).tolist()
    assert whole.codes.tolist() == cut.codes.tolist()


def test_many_servers_without_replacement(seed: int) -> None:
    """Looking at all servers is join the shortest queue."""
    system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=30)
    replica = ServerReplica(system, ms.policy("sq", d=30), np.ones((1, 1)), (seed, 6))
    measured = replica.advance(1, 5000)
    # With half of the servers idle or nearly so, no arrival ever has to wait.
    idle = 30 * (1 - measured.tails[0, 0, 1])
    assert idle > 5
    assert measured.joins[0, 0, 1:].sum() <= 5


def test_draws_of_scattered_pools_are_refused() -> None:
    from manyserver.policies import Branch, Draw, Sampling
    from manyserver.simulation.tables import make_polls

    class Scattered(type(ms.policy("sq", d=2))):  # type: ignore[misc]
        def sampling(self, system: ms.System) -> Sampling:
            return Sampling((Branch(1.0, (Draw((0, 2), 2),)),))

    with pytest.raises(ValueError, match=r"pools = \(0, 2\)"):
        make_polls(ms.System(0.5, POOLS, n_servers=12), Scattered(d=2))
