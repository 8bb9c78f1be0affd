import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.registry import BOUNDED, POOLS, announced_policies, policies

import manyserver as ms
from manyserver.mean_field.independent.pools import IndependentPool
from manyserver.policies import Policy, names, policy_class
from manyserver.policies.messages import messages
from manyserver.policies.saturation import saturated, saturations
from manyserver.policies.split import naive_split, optimal_split

UNEQUAL = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]


def test_the_registry_finds_every_policy() -> None:
    assert set(names()) >= {
        "random",
        "naive_split",
        "optimal_split",
        "sq",
        "hybrid_sq",
        "scheme1",
        "scheme2",
        "sed",
        "jsq",
        "jiq",
        "threshold",
    }
    assert all(policy_class(name).name == name for name in names())


def test_parameters_are_plain_values() -> None:
    policy = ms.policy("hybrid_sq", d=np.array([2, 3]), split=[0.25, 0.75])
    assert policy.parameters == {"d": [2, 3], "replacement": False, "split": [0.25, 0.75]}
    assert policy == ms.policy("hybrid_sq", **policy.parameters)


def test_scheme_2_prefers_speed_per_job_before_the_arrival() -> None:
    """(2.4) of arXiv:1502.05786: idle first; exact ties at a speed ratio of 9 to the fastest."""
    ranks = ms.policy("scheme2", d=[1, 1]).rank_table(ms.System(0.5, UNEQUAL), 20)
    slow, fast = ranks
    assert fast[0] < slow[0] < fast[1]
    assert fast[9] < slow[1] < fast[10]
    assert fast[18] < slow[2] < fast[19]


def test_sed_counts_the_arrival() -> None:
    slow, fast = ms.policy("sed", d=[1, 1]).rank_table(ms.System(0.5, UNEQUAL), 20)
    assert fast[8] < slow[0] < fast[9]


@pytest.mark.parametrize("pair", [("1/10", "3/10"), ("2/3", "4/3"), ("1/5", "9/5")])
def test_scheme_2_agrees_with_the_papers_integer_indices(pair: tuple[str, str]) -> None:
    """(2.9), (2.10): a type-j server with k jobs beats type i<j iff q_i >= ceil(C_i k / C_j)."""
    speeds = [Fraction(value) for value in pair]
    scale = 1 / sum(speeds) * 2
    pools = [ms.Pool("1/2", speed * scale) for speed in speeds]
    slow, fast = ms.policy("scheme2", d=[1, 1]).rank_table(ms.System(0.5, pools), 60)
    for k in range(1, 60):
        first_beaten = math.ceil(speeds[0] * k / speeds[1])
        assert np.array_equal(fast[k] < slow, np.arange(60) >= first_beaten)
        first_beaten = math.floor(speeds[1] * k / speeds[0]) + 1
        assert np.array_equal(slow[k] < fast, np.arange(60) >= first_beaten)


def test_equal_speeds_tie_even_where_ties_go_to_the_fastest() -> None:
    system = ms.System(0.5, [ms.Pool("1/2", 1), ms.Pool("1/2", 1)])
    ranks = ms.policy("scheme1", d=[1, 1]).rank_table(system, 4)
    assert np.array_equal(ranks[0], ranks[1])


@pytest.mark.parametrize("policy", [*policies(), *announced_policies()], ids=str)
def test_ranks_do_not_decrease_with_the_level(policy: Policy) -> None:
    ranks = policy.rank_table(ms.System(0.5, POOLS), 30)
    assert np.all(np.diff(ranks, axis=1) >= 0)
    assert sorted(set(ranks.ravel())) == list(range(ranks.max() + 1))


@pytest.mark.parametrize("policy", [*policies(), *announced_policies()], ids=str)
def test_full_servers_come_last(policy: Policy) -> None:
    ranks = policy.rank_table(ms.System(0.5, BOUNDED), 6)
    full = np.arange(6) >= np.array([[2], [3], [1]])
    assert len(set(ranks[full])) == 1
    assert ranks[~full].max() < ranks[full].min()
    unbounded = policy.rank_table(ms.System(0.5, POOLS), 6)
    assert np.argsort(ranks[~full]).tolist() == np.argsort(unbounded[~full]).tolist()


def test_which_servers_are_announced() -> None:
    system = ms.System(0.5, BOUNDED)

    def levels(name: str, **parameters: object) -> list[int]:
        sampling = ms.policy(name, **parameters).sampling(system)
        return [int(own.sum()) for own in sampling.announced_levels(system, 6)]

    assert levels("sq", d=2) == [0, 0, 0]
    assert levels("jiq") == [1, 1, 1]
    assert levels("threshold", threshold=2) == [2, 2, 1]
    assert levels("jsq") == levels("threshold", threshold=9) == [2, 3, 1]


def test_messages() -> None:
    """Queries at the draws, reports of servers that become available, one per departure."""
    system = ms.System(0.5, [ms.Pool(1, 1)])
    joins, leaves = np.array([[4.0, 2.0, 0.0]]), np.array([[0.0, 3.0, 2.0]])

    def sent(name: str, **parameters: object) -> float:
        sampling = ms.policy(name, **parameters).sampling(system)
        return float(messages(system, sampling, np.array(7.0), joins, leaves))

    assert sent("random") == sent("sq", d=1) == 0
    assert sent("sq", d=3) == 7 * 2 * 3
    assert sent("scheme1", d=[2]) == 7 * 2 * 2
    assert sent("jsq") == sent("sed") == 5
    assert sent("jiq") == 3
    assert sent("jiq", d=2) == 3 + (7 - 4) * 2 * 2
    assert sent("threshold", threshold=2) == 2
    assert sent("threshold", threshold=3) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ms.policy("schem1", d=[1]), r"'schem1': unknown policy; did you mean 'scheme1'"),
        (lambda: ms.policy("sq", D=2), r"D = 2: unknown parameter of policy 'sq'; .*: d, repl"),
        (lambda: ms.policy("sq"), r"d: is missing; policy 'sq' needs it"),
        (lambda: ms.policy("sq", d=0), r"d = 0: must be an integer >= 1"),
        (lambda: ms.policy("sq", d=2.0), r"d = 2.0: must be an integer >= 1"),
        (lambda: ms.policy("sq", d=True), r"d = True: must be an integer >= 1"),
        (lambda: ms.policy("sq", d=2, ties="slowest"), r"ties = 'slowest': must be 'uniform' or"),
        (lambda: ms.policy("scheme1", d=2), r"d = 2: must be a list with one integer >= 0"),
        (lambda: ms.policy("scheme1", d=[0, 0]), r"d = \[0, 0\]: at least one pool must be looked"),
        (lambda: ms.policy("sed", d=[1, -1]), r"d = -1: must be an integer >= 0"),
        (lambda: ms.policy("hybrid_sq", d=[2, 0]), r"d = 0: must be an integer >= 1"),
        (lambda: ms.policy("hybrid_sq", d=2, split="best"), r"split = 'best': must be 'optimal'"),
        (
            lambda: ms.policy("random", probabilities=[0.5, 0.6]),
            r"must be numbers in \[0, 1\]",
        ),
        (lambda: ms.policy("random", probabilities=0.5), r"probabilities = 0.5: must be numbers"),
        (
            lambda: ms.policy("sq", d=2, replacement="yes"),
            r"replacement = 'yes': must be true",
        ),
    ],
)
def test_bad_parameters_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    "policy",
    [
        ms.policy("scheme1", d=[2]),
        ms.policy("sed", d=[2, 2, 2]),
        ms.policy("hybrid_sq", d=[2]),
        ms.policy("random", probabilities=[1.0]),
    ],
)
def test_one_value_is_needed_for_every_pool(policy: Policy) -> None:
    with pytest.raises(ValueError, match=r"must have one for each of the 2 pools"):
        policy.check(ms.System(0.1, UNEQUAL))


def test_random_takes_every_server_alike_by_default() -> None:
    system = ms.System(0.1, [ms.Pool("1/4", 1), ms.Pool("3/4", 1)])
    sampling = ms.policy("random").sampling(system)
    assert [branch.probability for branch in sampling.branches] == [0.25, 0.75]


def test_distinct_servers_must_exist() -> None:
    system = ms.System(0.1, UNEQUAL, n_servers=4)
    with pytest.raises(ValueError, match=r"d = 3: must be at most 2, the number .* in pool 1"):
        ms.policy("scheme1", d=[2, 3]).check(system)
    with pytest.raises(ValueError, match=r"d = 5: must be at most 4, .* in the system"):
        ms.policy("sq", d=5).check(system)
    ms.policy("scheme1", d=[2, 3], replacement=True).check(system)


def test_whole_system_sampling_has_a_smaller_stability_region() -> None:
    """C = (1/5, 9/5), d = 2: stable below an arrival rate of 0.4."""
    policy = ms.policy("sq", d=2)
    policy.check(ms.System(0.3999, UNEQUAL))
    with pytest.raises(ms.UnstableSystem, match=r"policy sq sends pool 0 at least 0\.1 ") as error:
        policy.check(ms.System(0.4, UNEQUAL))
    assert error.value.pools == (0,)


def test_stability_without_replacement_depends_on_the_number_of_servers() -> None:
    """Two of 4 servers, both slow with probability 1/6: stable below 0.1 * 6 = 0.6."""
    policy = ms.policy("sq", d=2)
    policy.check(ms.System(0.599, UNEQUAL, n_servers=4))
    with pytest.raises(ms.UnstableSystem):
        policy.check(ms.System(0.6, UNEQUAL, n_servers=4))


def test_sets_of_pools_saturate_together() -> None:
    pools = [ms.Pool("1/4", "1/2"), ms.Pool("1/4", "1/2"), ms.Pool("1/2", "3/2")]
    with pytest.raises(ms.UnstableSystem, match=r"pools \[0, 1\] together") as error:
        ms.policy("scheme1", d=[1, 1, 0]).check(ms.System(0.3, pools))
    assert error.value.pools == (0, 1)


def test_splits_are_the_known_optima() -> None:
    """C = (1/5, 9/5), 0.7: 1/28 to the slow pool (water filling); the whole at 0.3."""
    assert optimal_split(ms.System(0.7, UNEQUAL))[0] == pytest.approx(1 / 28, rel=1e-13)
    assert optimal_split(ms.System(0.3, UNEQUAL)) == (0.0, 1.0)
    assert optimal_split(ms.System(0.3, UNEQUAL), d=2) == (0.0, 1.0)
    assert naive_split(ms.System(0.3, UNEQUAL)) == pytest.approx((0.1, 0.9), rel=1e-15)


@pytest.mark.parametrize("d", [1, 2, [1, 3]])
@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 0.99])
def test_no_other_split_is_better(d: int | list[int], load: float) -> None:
    pools = [ms.Pool("1/4", "1/2"), ms.Pool("3/4", "7/6")]
    system = ms.System(load, pools)
    best = optimal_split(system, d)

    def sojourn(first: float) -> float:
        split = ms.policy("hybrid_sq", d=d, split=[first, 1 - first])
        return float(ms.fixed_point(system, split).sojourn_mean)

    step = 1e-4
    neighbours = [first for first in (best[0] - step, best[0] + step) if 0 <= first <= 1]
    assert all(sojourn(best[0]) <= sojourn(first) for first in neighbours)


def test_sets_of_pools_that_may_saturate() -> None:
    """Only where the draws alone would overload them, and with infinite buffers."""

    def pools(system: ms.System, policy: Policy) -> list[tuple[int, ...]]:
        return [found.pools for found in saturations(system, policy)]

    jiq = ms.policy("jiq")
    assert pools(ms.System(0.5, UNEQUAL), jiq) == [(0,)]
    assert pools(ms.System(0.19, UNEQUAL), jiq) == []
    assert pools(ms.System(0.9, [ms.Pool(1, 1)]), jiq) == []
    # With two looks an arrival is forced into a half of the servers once in four times.
    assert pools(ms.System(0.39, UNEQUAL), ms.policy("jiq", d=2)) == []
    assert pools(ms.System(0.41, UNEQUAL), ms.policy("jiq", d=2)) == [(0,)]
    assert pools(ms.System(0.3, UNEQUAL), ms.policy("jsq")) == []
    assert pools(ms.System(0.3, UNEQUAL), ms.policy("sq", d=2)) == []
    bounded = [ms.Pool("1/2", "1/5", 5), ms.Pool("1/2", "9/5")]
    assert pools(ms.System(0.5, bounded), jiq) == []
    assert pools(ms.System(0.4, POOLS), ms.policy("threshold", threshold=3)) == []
    assert pools(ms.System(0.8, POOLS), ms.policy("threshold", threshold=3)) == [(0,)]
    changed = saturated(ms.System(0.5, UNEQUAL, 4), (0,)).pools
    assert (changed[0].buffer, changed[1]) == (1, UNEQUAL[1])


def test_optimal_split_with_very_many_choices() -> None:
    """Below some load one job more adds no waiting in double precision: any such load is best."""
    d = [200, 10, 3]
    system = ms.System(0.5, [ms.Pool("1/3", 1), ms.Pool("1/3", "3/2"), ms.Pool("1/3", 2)])

    def jobs(split: tuple[float, ...]) -> float:
        rates = 3 * system.arrival_rate * np.array(split)
        pools = zip(rates, system.speeds, d, strict=True)
        return sum(IndependentPool(float(a), float(c), n).queue_mean() for a, c, n in pools)

    best = jobs(optimal_split(system, d))
    for i, j in itertools.permutations(range(3), 2):
        other = np.array(optimal_split(system, d)) + 0.01 * (np.eye(3)[i] - np.eye(3)[j])
        assert other.min() < 0 or jobs(tuple(other)) > best - 1e-12


def test_the_best_split_is_checked_without_looking_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stable wherever any split is; what does not fit is refused as for given splits."""
    policy = ms.policy("hybrid_sq", d=2)
    with pytest.raises(ValueError, match="load is 1; must be below one"):
        policy.check(ms.System(1, [ms.Pool("1/2", 1, 3), ms.Pool("1/2", 1, 3)]))
    monkeypatch.setattr("manyserver.policies.hybrid_sq.optimal_split", None)
    policy.check(ms.System(1 - 2**-53, UNEQUAL))
    with pytest.raises(ValueError, match=r"d = 2: must be at most 1"):
        policy.check(ms.System(0.5, UNEQUAL, n_servers=2))
    with pytest.raises(ValueError, match=r"d = \[2\]"):
        ms.policy("hybrid_sq", d=[2]).check(ms.System(0.5, UNEQUAL))
