"""Overloaded sets of pools, found without looking at all of them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import manyserver as ms
from manyserver.model import System
from manyserver.policies import Branch, Draw, Policy, Sampling, names, policy_class, stability
from manyserver.policies.stability import capacity_of, forced_into, overloaded_pools


def _random_system(rng: np.random.Generator, n_pools: int) -> System:
    """Return a system with a load of at least 0.3 and speeds that differ by up to 20."""
    counts = rng.integers(1, 4, n_pools)
    n_servers = int(counts.sum())
    pools = [
        ms.Pool(
            Fraction(int(count), n_servers),
            Fraction(int(rng.integers(1, 21)), 10),
            1 if rng.random() < 0.1 else None,
        )
        for count in counts
    ]
    capacity = float(sum(pool.fraction * pool.speed for pool in pools))
    finite = n_servers if rng.random() < 0.5 else None
    return System(rng.uniform(0.3, 0.999) * capacity, pools, finite)


def _random_sampling(rng: np.random.Generator, system: System) -> Sampling:
    """Draw from disjoint sets of pools, in up to three different ways."""
    branches = []
    n_branches = int(rng.integers(1, 4))
    for probability in rng.dirichlet(np.ones(n_branches)):
        n_draws = int(rng.integers(1, len(system.pools) + 1))
        # Set number n_draws is looked at by no draw.
        drawn = rng.integers(0, n_draws + (rng.random() < 0.3), len(system.pools))
        draws = tuple(
            Draw(tuple(int(j) for j in np.flatnonzero(drawn == draw)), int(rng.integers(1, 3)))
            for draw in range(n_draws)
            if (drawn == draw).any()
        )
        if draws:
            branches.append(Branch(float(probability), draws))
    total = sum(branch.probability for branch in branches)
    parts = tuple(Branch(branch.probability / total, branch.draws) for branch in branches)
    return Sampling(parts, replacement=bool(rng.random() < 0.5))


def _stays(system: System, draw: Draw, pools: tuple[int, ...], replacement: bool) -> float:
    """Probability that a draw looks at these pools only, from its definition."""
    inside = [pool for pool in draw.pools if pool in pools]
    if system.n_servers is None or replacement:
        fractions = system.fractions
        return float(sum(fractions[inside]) / sum(fractions[list(draw.pools)])) ** draw.count
    few, available = (sum(system.counts[pool] for pool in of) for of in (inside, draw.pools))
    return math.comb(few, draw.count) / math.comb(available, draw.count)


def _enough_servers(system: System, sampling: Sampling) -> bool:
    """Say whether distinct servers can be drawn."""
    return (
        system.n_servers is None
        or sampling.replacement
        or all(
            draw.count <= sum(system.counts[pool] for pool in draw.pools)
            for branch in sampling.branches
            for draw in branch.draws
        )
    )


def _overloaded(system: System, sampling: Sampling) -> list[tuple[int, ...]]:
    """Look at all sets of pools without bounds."""
    endless = [number for number, pool in enumerate(system.pools) if pool.buffer is None]
    subsets = itertools.chain(
        *(itertools.combinations(endless, size) for size in range(1, len(endless) + 1))
    )
    return [
        pools
        for pools in subsets
        if system.arrival_rate
        * sum(
            branch.probability
            * math.prod(_stays(system, draw, pools, sampling.replacement) for draw in branch.draws)
            for branch in sampling.branches
        )
        >= float(capacity_of(system, pools))
    ]


@pytest.mark.parametrize("most_sets", [1000, 0], ids=["one by one", "by the shortest vector"])
def test_as_by_all_subsets(most_sets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "MOST_SETS", most_sets)
    rng = np.random.default_rng(20_11)
    unstable = 0
    for _ in range(600):
        system = _random_system(rng, int(rng.integers(1, 7)))
        sampling = _random_sampling(rng, system)
        if not sampling.branches or not _enough_servers(system, sampling):
            continue
        expected = _overloaded(system, sampling)
        found = overloaded_pools(system, sampling)
        assert (found is None) == (not expected)
        if found is not None:
            unstable += 1
            assert found in expected
            assert not any(
                set(fewer) < set(found) and len(fewer) == len(found) - 1 for fewer in expected
            )
    assert 100 < unstable < 500


def _machines(n_pools: int, load: float, n_servers: int | None = None) -> System:
    """Return pools of equal size with speeds from a half to one and a half, and capacity one."""
    speeds = [Fraction(n_pools + 2 * (37 * j % n_pools), 2 * n_pools) for j in range(n_pools)]
    scale = sum(speeds) / n_pools
    pools = [ms.Pool(Fraction(1, n_pools), speed / scale) for speed in speeds]
    return System(load, pools, n_servers)


@pytest.mark.parametrize("n_pools", [27, 100])
@pytest.mark.parametrize("name", names())
def test_many_pools(name: str, n_pools: int) -> None:
    """All subsets of so many pools would take forever."""
    given: dict[str, dict[str, object]] = {
        name: {"d": [2] * n_pools} for name in ("scheme1", "scheme2")
    }
    given |= {"threshold": {"threshold": 2}, "pull": {"routers": 2}}
    given |= {
        name: {"weights": [1] * n_pools} for name in ("weighted_random", "weighted_round_robin")
    }
    fields = policy_class(name).parameter_names()
    choices: dict[str, object] = {"d": 2} if "d" in fields and name not in ("sed", "jiq") else {}
    ms.policy(name, **given.get(name, choices)).check(_machines(n_pools, 0.4))


def test_general_draws_from_many_pools() -> None:
    n_pools = 27
    system = _machines(n_pools, 0.6)
    every = tuple(range(n_pools))
    alone = tuple(Draw((pool,), 1) for pool in every)
    neighbours = [Branch(0.3 / n_pools, (Draw((j, (j + 1) % n_pools), 2),)) for j in every]
    mixed = Sampling((Branch(0.3, alone), Branch(0.4, (Draw(every, 2),)), *neighbours))
    assert overloaded_pools(system, mixed) is None
    slowest = min(every, key=lambda pool: system.pools[pool].speed)
    part = float(capacity_of(system, (slowest,))) / system.arrival_rate
    heavy = Sampling((Branch(part, (Draw((slowest,), 1),)), Branch(1 - part, alone)))
    assert overloaded_pools(system, heavy) == (slowest,)
    assert forced_into(system, heavy, (slowest,)) == pytest.approx(0.6 * part)


@pytest.mark.parametrize(
    ("policy", "load"),
    [
        (ms.policy("sq", d=2), 1 - 2**-53),
        (ms.policy("scheme1", d=[1, 1, 1]), 1 - 2**-53),
        (ms.policy("naive_split"), 1 - 2**-53),
        (ms.policy("hybrid_sq", d=2, split="naive"), 1 - 2**-53),
        (ms.policy("hybrid_sq", d=2), 1 - 1e-12),
        (ms.policy("optimal_split"), 1 - 1e-12),
    ],
    ids=str,
)
def test_loads_just_below_one_are_stable(policy: Policy, load: float) -> None:
    pools = [ms.Pool("1/3", 1), ms.Pool("1/3", "8/7"), ms.Pool("1/3", "6/7")]
    if policy.name == "sq":
        pools = [ms.Pool(1, 1)]
    policy.check(ms.System(load, pools))


def test_a_flow_equal_to_the_capacity_is_unstable() -> None:
    system = ms.System(0.6, [ms.Pool("1/3", "9/10"), ms.Pool("2/3", 3)])
    with pytest.raises(ms.UnstableSystem) as error:
        ms.policy("random", probabilities=[0.5, 0.5]).check(system)
    assert error.value.pools == (0,)
