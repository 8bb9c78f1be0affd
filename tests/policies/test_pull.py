"""PULL as a policy: with one router it is JIQ, with several nothing takes it for memoryless."""

from collections.abc import Callable

import numpy as np
import pytest

import manyserver as ms
from manyserver.joining import JoiningLaw
from manyserver.mean_field import NotSmooth

POOLS = [ms.Pool("1/2", "1/2", buffer=2), ms.Pool("1/2", "3/2")]
SYSTEM = ms.System(0.5, POOLS, n_servers=4)


def test_one_router_is_jiq() -> None:
    pull, jiq = ms.policy("pull", routers=1), ms.policy("jiq")
    assert pull.sampling(SYSTEM) == jiq.sampling(SYSTEM)
    idle_first = jiq.rank_table(SYSTEM, 6) > 0
    full = np.arange(6) >= np.array([[2], [6]])
    assert np.array_equal(pull.rank_table(SYSTEM, 6), np.where(full, 2, idle_first))


@pytest.mark.parametrize(
    "read",
    [
        lambda policy: policy.sampling(SYSTEM),
        lambda policy: policy.rank_table(SYSTEM, 4),
        lambda policy: JoiningLaw(SYSTEM, policy, 4),
    ],
    ids=["sampling", "rank table", "joining law"],
)
def test_several_routers_are_not_memoryless(read: Callable[[object], object]) -> None:
    with pytest.raises(ValueError, match=r"routers = 2: policy pull remembers which router"):
        read(ms.policy("pull", routers=2))


def test_without_memory_it_has_one_router_and_others_are_as_they_are() -> None:
    assert ms.policy("pull", routers=2).memoryless == ms.policy("pull", routers=1)
    assert ms.policy("sq", d=2).memoryless == ms.policy("sq", d=2)


@pytest.mark.parametrize("routers", [1, 2])
def test_it_has_no_expansion(routers: int) -> None:
    with pytest.raises(NotSmooth, match="policy pull: servers announce themselves"):
        ms.refine(ms.System(0.5, [ms.Pool(1, 1)]), ms.policy("pull", routers=routers))


@pytest.mark.parametrize("routers", [0, -1, 1.0, True, "2"])
def test_routers_are_counted(routers: object) -> None:
    with pytest.raises(ValueError, match=r"routers = .*: must be an integer >= 1"):
        ms.policy("pull", routers=routers)


def test_there_are_no_more_routers_than_servers() -> None:
    ms.policy("pull", routers=4).check(SYSTEM)
    ms.policy("pull", routers=5).check(ms.System(0.5, POOLS))
    with pytest.raises(ValueError, match=r"routers = 5: must be at most 4, the number of servers"):
        ms.policy("pull", routers=5).check(SYSTEM)
