"""The kernel on counts against its twin."""

import numpy as np
import pytest
from tests.registry import BOUNDED, EQUAL, POOLS, announced_policies
from tests.simulation.twin import CountsTwin

import manyserver as ms
from manyserver.policies import Policy
from manyserver.simulation.occupancy_replica import OccupancyReplica

START = np.array([[1.0, 0.75, 0.25]] * 3)
ALL = pytest.mark.parametrize("policy", announced_policies(), ids=str)
EVERY = pytest.mark.parametrize(
    "pools", [POOLS, EQUAL, BOUNDED], ids=["unequal", "equal", "bounded"]
)


def start(pools: list[ms.Pool]) -> np.ndarray:
    tails = START.copy()
    for tail, pool in zip(tails, pools, strict=True):
        tail[3 if pool.buffer is None else pool.buffer + 1 :] = 0
    return tails


def jobs_of(tails: np.ndarray) -> list[list[int]]:
    held = -np.diff(tails, axis=1, append=0)
    return [[level for level, count in enumerate(row) for _ in range(count)] for row in held]


@EVERY
@ALL
def test_twin_follows_the_same_path(policy: Policy, pools: list[ms.Pool], seed: int) -> None:
    system = ms.System(0.95, pools, n_servers=8)
    replica = OccupancyReplica(system, policy, start(pools), (seed, 1))
    words = [int(word) for word in replica.rng]
    twin = CountsTwin(system, policy, replica.tables, words, jobs_of(replica.tail_counts()))
    pieces, steps = 3, 200
    measured = replica.advance(pieces, steps)
    shape = (pieces, 3, replica.levels)
    tails, joins, leaves = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    blocked = np.zeros((pieces, 3))
    servers = np.array(system.counts)[:, None]
    for piece in range(pieces):
        for _ in range(steps):
            here = np.array(twin.jobs[0] + twin.jobs[1] + twin.jobs[2])
            pool_of = np.repeat(np.arange(3), system.counts)
            for level in range(tails.shape[2]):
                tails[piece][:, level] += np.bincount(pool_of[here >= level], minlength=3)
            arrival, pool, before = twin.step()
            joins[piece, pool, before] += arrival and before < twin.room[pool]
            blocked[piece, pool] += arrival and before == twin.room[pool]
            leaves[piece, pool, before] += not arrival and before > 0
    assert jobs_of(replica.tail_counts()) == [sorted(own) for own in twin.jobs]
    assert (measured.joins == joins).all()
    assert (measured.leaves == leaves).all()
    assert (measured.blocked == blocked).all()
    assert measured.tails == pytest.approx(tails / steps / servers, abs=1e-12)


@ALL
def test_longer_tables_change_nothing(policy: Policy, seed: int) -> None:
    system = ms.System(0.9, POOLS, n_servers=4)
    small, large = (
        OccupancyReplica(system, policy, start(POOLS), (seed, 3), levels=levels)
        for levels in (4, 64)
    )
    assert small.levels == 4
    one, other = small.advance(7, 5001), large.advance(7, 5001)
    levels = small.levels
    assert levels > 4
    for name in ("tails", "joins", "leaves"):
        assert (getattr(one, name) == getattr(other, name)[:, :, :levels]).all()
    assert small.rng.tolist() == large.rng.tolist()
    assert small.held[:3].sum() == large.held[:3].sum()


def test_pieces_may_be_cut_anywhere(seed: int) -> None:
    system = ms.System(0.9, POOLS, n_servers=12)
    whole, cut = (
        OccupancyReplica(system, ms.policy("jiq", d=3), START, (seed, 4)) for _ in range(2)
    )
    one = whole.advance(1, 1000)
    parts = [cut.advance(1, steps) for steps in (1, 99, 400, 500)]
    assert one.joins.sum(axis=0).tolist() == sum(p.joins.sum(axis=0) for p in parts).tolist()
    assert whole.tail.tolist() == cut.tail.tolist()


def test_groups_are_counted(seed: int) -> None:
    """The numbers of servers in the groups are those of the tails after any number of steps."""
    system = ms.System(0.95, POOLS, n_servers=1000)
    for policy in announced_policies():
        replica = OccupancyReplica(system, policy, START, (seed, 5))
        replica.warm_up(20_000)
        expected = np.zeros_like(replica.held)
        np.add.at(expected, replica.tables.group, -np.diff(replica.tail, axis=1))
        assert replica.held.tolist() == expected.tolist()
        assert (replica.tail[:, -1] == 0).all()


def test_ten_million_servers(seed: int) -> None:
    """Join the shortest queue: nobody waits while any server is idle."""
    system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=10**7)
    replica = OccupancyReplica(system, ms.policy("jsq"), np.array([[1.0, 0.5]]), (seed, 6))
    measured = replica.advance(1, 10_000)
    assert measured.joins[0, 0, 1:].sum() == 0
    # Of the steps a third are arrivals, and half of the other two thirds departures; 5 sigma.
    arrivals, departures = measured.accepted[0], measured.leaves.sum()
    assert abs(arrivals - 10_000 / 3) < 5 * np.sqrt(10_000 * 2 / 9)
    assert abs(departures - 10_000 / 3) < 5 * np.sqrt(10_000 * 2 / 9)


def test_the_generators_are_those_of_the_other_kernels(seed: int) -> None:
    """The same word of a step says what it is, for all kernels alike."""
    from manyserver.simulation.lockstep_replicas import Lockstep
    from manyserver.simulation.server_replica import ServerReplica

    system = ms.System(0.8, [ms.Pool(1, 1)], n_servers=100)
    one = OccupancyReplica(system, ms.policy("jsq"), START[:1], (seed, 7))
    other = ServerReplica(system, ms.policy("sq", d=2), START[:1], (seed, 7))
    group = Lockstep([ServerReplica(system, ms.policy("sq", d=2), START[:1], (seed, 7))])
    counts = [group.advance_all(50, 128)[0].accepted.tolist()]
    counts += [replica.advance(50, 128).accepted.tolist() for replica in (one, other)]
    assert counts[0] == counts[1] == counts[2]
