"""Policies under which jobs are followed: what they refuse, and what nothing takes them for."""

import pytest
from tests.registry import POOLS, followed_policies

import manyserver as ms
from manyserver.joining import JoiningLaw
from manyserver.policies import Policy

SYSTEM = ms.System(0.4, POOLS, n_servers=8)
ALL = pytest.mark.parametrize("policy", followed_policies(), ids=str)


@ALL
def test_it_has_no_ranks(policy: Policy) -> None:
    with pytest.raises(ms.NotKnown, match=f"policy {policy.name}: .* works for policies"):
        policy.sampling(SYSTEM)
    with pytest.raises(ms.NotKnown, match=f"policy {policy.name}: .* works for policies"):
        JoiningLaw(SYSTEM, policy, 4)


@ALL
def test_what_is_not_known_is_refused(policy: Policy) -> None:
    for unknown in (ms.refine, ms.relaxation_time, ms.sojourn_law):
        with pytest.raises(ms.NotKnown, match=f"policy {policy.name}: "):
            unknown(SYSTEM, policy)


@ALL
def test_as_many_jobs_go_to_each_pool_without_memory(policy: Policy) -> None:
    assert not policy.memoryless.follows_jobs
    policy.check(SYSTEM)
    policy.memoryless.check(SYSTEM)


@pytest.mark.parametrize("name", ["weighted_round_robin", "weighted_random"])
@pytest.mark.parametrize("weights", [[], 2, "12", [1, 0], [1, 1.5], [1, 1001]])
def test_weights_are_counted(name: str, weights: object) -> None:
    with pytest.raises(ValueError, match=r"weights = .*: must be "):
        ms.policy(name, weights=weights)


def test_there_is_a_weight_for_each_pool() -> None:
    for name in ("weighted_round_robin", "weighted_random"):
        with pytest.raises(ValueError, match=r"weights = \[1, 2\]: has 2 values; must have one"):
            ms.simulate(SYSTEM, ms.policy(name, weights=[1, 2]))


@pytest.mark.parametrize("d", [0, 1.5, True, "2"])
def test_choices_are_counted(d: object) -> None:
    with pytest.raises(ValueError, match=r"d = .*: must be an integer >= 1"):
        ms.policy("least_work", d=d)


def test_no_more_choices_than_servers() -> None:
    with pytest.raises(ValueError, match="d = 9: must be at most 8, the number of servers"):
        ms.policy("least_work", d=9).check(SYSTEM)


@pytest.mark.parametrize("name", ["least_work", "central_queue"])
def test_all_servers_have_no_buffers(name: str) -> None:
    with pytest.raises(ValueError, match=f"policy {name}: .* every pool must have buffer None"):
        ms.policy(name).check(ms.System(0.5, [ms.Pool(1, 1, 2)], n_servers=2))


def test_pools_that_get_too_much_are_refused() -> None:
    with pytest.raises(ms.UnstableSystem, match="policy round_robin sends pool 0"):
        ms.policy("round_robin").check(ms.System(0.6, POOLS))
    ms.policy("weighted_round_robin", weights=[1, 3, 2]).check(ms.System(0.9, POOLS))


def test_load_up_to_which_they_are_stable() -> None:
    """A server of speed one half gets as much as each other one."""
    assert ms.stability_limit(POOLS, ms.policy("round_robin")) == pytest.approx(0.5)
    for name in ("least_work", "central_queue"):
        assert ms.stability_limit(POOLS, ms.policy(name)) == 1


def test_one_queue_is_served_in_order() -> None:
    with pytest.raises(ValueError, match="discipline = 'ps': must be 'fcfs' with policy central"):
        ms.simulate(SYSTEM, ms.policy("central_queue"), discipline="ps")


def test_random_by_weights_is_a_split() -> None:
    weighted = ms.policy("weighted_random", weights=[2, 6, 4])
    assert weighted.probabilities_for(SYSTEM) == (0.125, 0.375, 0.5)  # type: ignore[attr-defined]
