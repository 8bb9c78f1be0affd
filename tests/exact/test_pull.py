"""The exact chain of PULL against closed forms, a chain of single servers, and an identity."""

import itertools
import math

import numpy as np
import pytest
from tests.exact.servers_with_messages import servers_with_messages

import manyserver as ms
from manyserver.exact import stationary_law
from manyserver.exact.pull import RoutedStates, build_routed_chain
from manyserver.exact.routers import count_routed_states
from manyserver.exact.states import enumerate_states
from manyserver.policies import Policy
from manyserver.statistics.erlang import erlang_b, erlang_c

SLOW_AND_FAST = [ms.Pool("1/2", "1/5", buffer=2), ms.Pool("1/2", "9/5", buffer=3)]


def pull(routers: int) -> Policy:
    return ms.policy("pull", routers=routers)


def test_known_values() -> None:
    """Computed for another chain of (Y, X), C = (.2, 1.8), 2 + 2 servers."""
    result = ms.exact(ms.System(0.6, SLOW_AND_FAST, n_servers=4), pull(2))
    assert float(result.sojourn_mean) == pytest.approx(2.05724285159, abs=1e-11)
    assert float(result.empty_router_probability) == pytest.approx(0.51788205734, abs=1e-11)
    assert float(result.blocking_probability) == pytest.approx(0.16374585806, abs=1e-11)


@pytest.mark.parametrize("routers", [1, 2, 3])
@pytest.mark.parametrize("buffers", [(1, 2), (2, 1)])
def test_chain_of_single_servers(routers: int, buffers: tuple[int, int]) -> None:
    pools = [ms.Pool("1/3", "1/2", buffers[0]), ms.Pool("2/3", "5/4", buffers[1])]
    system = ms.System(0.9, pools, n_servers=3)
    states, law, blocked = servers_with_messages(system, routers)
    result = ms.exact(system, pull(routers))
    jobs = np.array([[own for own, _ in state] for state in states])
    known = np.array(
        [[sum(own == r for _, own in state) for r in range(routers)] for state in states]
    )
    busy = [
        float(law @ (jobs[:, :1] > 0).mean(axis=1)),
        float(law @ (jobs[:, 1:] > 0).mean(axis=1)),
    ]
    assert result.queue_tail.values[:, 1] == pytest.approx(busy, abs=1e-12)
    assert float(result.blocking_probability) == pytest.approx(blocked, abs=1e-12)
    empty = law @ (known == 0).mean(axis=1)
    assert float(result.empty_router_probability) == pytest.approx(empty, abs=1e-12)
    squares = (law @ (known**2).sum(axis=1)) / (law @ known.sum(axis=1) ** 2)
    assert float(result.idle_concentration) == pytest.approx(squares, abs=1e-12)


@pytest.mark.parametrize("buffer", [3, None])
def test_one_router_is_jiq(buffer: int | None) -> None:
    pools = [ms.Pool("1/2", "1/2", buffer), ms.Pool("1/2", "3/2", buffer)]
    system = ms.System(0.4, pools, n_servers=4)
    one, jiq = (ms.exact(system, p, tolerance=1e-8) for p in (pull(1), ms.policy("jiq")))
    for name in jiq.data_vars:
        assert one[name].values == pytest.approx(jiq[name].values, rel=1e-9, abs=1e-12, nan_ok=True)
    assert float(one.idle_concentration) == 1


@pytest.mark.parametrize("routers", [1, 2, 4])
def test_what_leaves_an_empty_router_is_told_apart(routers: int) -> None:
    """An arrival at an empty router waits, is lost, or makes an idle server take its message back.

    As many servers become idle as idle ones are joined: one message each.
    """
    result = ms.exact(ms.System(0.6, SLOW_AND_FAST, n_servers=4), pull(routers))
    accepted = 1 - float(result.blocking_probability)
    waits, empty = float(result.waiting_probability), float(result.empty_router_probability)
    assert float(result.messages_per_job) == pytest.approx(1 - waits / accepted, abs=1e-12)
    taken_back = empty - waits - float(result.blocking_probability)
    assert taken_back == pytest.approx(0, abs=1e-12) if routers == 1 else taken_back > 0.01


@pytest.mark.parametrize("n", [2, 5])
def test_buffers_of_one_give_the_erlang_loss_formula(n: int) -> None:
    system = ms.System(0.7, [ms.Pool(1, 1, buffer=1)], n_servers=n)
    result = ms.exact(system, pull(1))
    assert float(result.blocking_probability) == pytest.approx(erlang_b(n, 0.7 * n), rel=1e-12)
    assert float(result.empty_router_probability) == pytest.approx(erlang_b(n, 0.7 * n), rel=1e-12)


def test_the_loss_system_is_in_detailed_balance() -> None:
    """One router, buffers of one, speeds C_j: ``(n - b)! (n lambda)**b / prod C_j**b_j``."""
    pools = [ms.Pool("2/5", "1/2", buffer=1), ms.Pool("3/5", "3/2", buffer=1)]
    system = ms.System(0.8, pools, n_servers=5)
    law = stationary_law(system, pull(1))
    slow, fast = law.jobs[:, :2].sum(axis=1), law.jobs[:, 2:].sum(axis=1)
    weights = [
        math.factorial(5 - i - j) * 4.0 ** (i + j) * math.comb(2, i) * math.comb(3, j)
        / (0.5**i * 1.5**j)
        for i, j in zip(slow.tolist(), fast.tolist(), strict=True)
    ]  # fmt: skip
    assert law.probabilities == pytest.approx(np.array(weights) / sum(weights), rel=1e-11)


@pytest.mark.parametrize("buffer", [None, 1, 2])
@pytest.mark.parametrize("rate", [0.3, 0.8])
def test_one_router_is_empty_between_erlang_b_and_c(buffer: int | None, rate: float) -> None:
    system = ms.System(rate, [ms.Pool(1, 1, buffer)], n_servers=3)
    empty = float(ms.exact(system, pull(1), tolerance=1e-6).empty_router_probability)
    bounds = ms.pull_asymptotics(system, pull(1))
    assert float(bounds.empty_router_lower) == pytest.approx(erlang_b(3, 3 * rate))
    if buffer == 1:
        assert empty == pytest.approx(float(bounds.empty_router_upper), rel=1e-11)
    else:
        assert float(bounds.empty_router_upper) == pytest.approx(erlang_c(3, 3 * rate))
        assert float(bounds.empty_router_lower) < empty < float(bounds.empty_router_upper)


@pytest.mark.parametrize(
    ("pools", "n", "routers"),
    [
        (SLOW_AND_FAST, 6, 3),
        ([ms.Pool(1, 1, buffer=3)], 5, 5),
        ([ms.Pool("1/2", "1/2"), ms.Pool("1/2", "3/2")], 4, 2),
    ],
    ids=["two pools", "a router for each server", "infinite buffers"],
)
def test_the_split_of_idle_servers_does_not_drift(
    pools: list[ms.Pool], n: int, routers: int
) -> None:
    """``E G (sum_r I_r**2 - I**2 / R) = 0``, from which the rate at which waiting vanishes follows.

    With one pool the states are lumped: R = n has all partitions of the idle servers.
    """
    law = stationary_law(ms.System(0.4, pools, n_servers=n), pull(routers), tolerance=1e-7)
    assert isinstance(law.states, RoutedStates)
    known = law.states.messages.sum(axis=1, dtype=float)
    idle, empty = known.sum(axis=1), (known == 0).sum(axis=1)
    to_idle = 1 - empty / routers * (1 - idle / n)
    back = empty * (idle * (n - idle) / routers + (known**2).sum(axis=1))
    assert (routers - 1) * law.probabilities @ to_idle == pytest.approx(
        law.probabilities @ back / n, rel=1e-7
    )


@pytest.mark.parametrize("routers", [1, 2, 3, 6])
@pytest.mark.parametrize("caps", [((2, 2, 1),), ((3, 1), (2, 1, 0))])
def test_states_are_counted_as_listed(caps: tuple[tuple[int, ...], ...], routers: int) -> None:
    count = sum(len(own) for own in caps)
    pools = [ms.Pool(f"{len(own)}/{count}", 1) for own in caps]
    system = ms.System(0.5, pools, n_servers=count)
    states = build_routed_chain(system, routers, caps).states
    assert isinstance(states, RoutedStates)
    rows = np.concatenate([states.jobs, states.messages.reshape(len(states.jobs), -1)], axis=1)
    assert len(np.unique(rows, axis=0)) == len(rows) == count_routed_states(caps, routers)
    for start, (own, idle) in zip(
        itertools.accumulate(map(len, caps), initial=0),
        zip(caps, states.messages.sum(axis=2).T, strict=True),
        strict=False,
    ):
        assert np.array_equal((states.jobs[:, start : start + len(own)] == 0).sum(axis=1), idle)
    assert len(np.unique(states.jobs, axis=0)) == len(enumerate_states(caps).jobs)


def test_too_many_states_are_counted_without_listing_them() -> None:
    system = ms.System(0.5, [ms.Pool(1, 1, buffer=2)], n_servers=200)
    with pytest.raises(ValueError, match=r"n_servers = 200: .* at least .* states"):
        ms.exact(system, pull(150))


def test_random_arrivals_can_saturate_a_slow_pool() -> None:
    """C = (.2, 1.8): a slow server that is always busy gets .26 jobs per unit of time, of .2."""
    pools = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
    with pytest.raises(
        ms.UnstableSystem, match=r"sends pool 0 0\.1295.*capacity of 0\.1$"
    ) as error:
        ms.exact(ms.System(0.5, pools, n_servers=4), pull(2))
    assert error.value.pools == (0,)
