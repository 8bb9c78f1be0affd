"""Replications that an earlier request has measured: fewer are simulated, nothing else changes."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import xarray as xr

import manyserver as ms
from manyserver.simulate import simulate
from manyserver.simulation.lengths import Lengths, kept_pieces, make_plan

ONE_POOL = [ms.Pool(1, 1)]
TWO_POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
SQ2 = ms.policy("sq", d=2)
HYPER = ms.size_law("hyperexponential", scv=4)


class Memory:
    """A cache that lasts as long as the test."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.reused = self.needed = 0

    def load(self) -> dict[str, np.ndarray]:
        return self.arrays

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = {name: values.copy() for name, values in arrays.items()}


def content(result: xr.Dataset) -> dict[str, bytes]:
    return {str(name): result[name].values.tobytes() for name in result.variables}


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ({"precision": 0.01}, {"precision": 0.0005}),
        ({"precision": 0.01, "replications": 3}, {"precision": 0.01, "replications": 15}),
        ({"horizon": 800.0, "replications": 2}, {"horizon": 800.0, "replications": 9}),
    ],
    ids=["precision", "replications", "horizon"],
)
@pytest.mark.parametrize(
    ("pools", "policy", "service"),
    [
        (TWO_POOLS, ms.policy("scheme1", d=[2, 2]), {}),
        (ONE_POOL, ms.policy("jsq"), {}),
        (ONE_POOL, ms.policy("pull", routers=3), {}),
        (TWO_POOLS, ms.policy("scheme2", d=[2, 2]), {"sizes": HYPER, "discipline": "ps"}),
        (ONE_POOL, ms.policy("jiq"), {"sizes": HYPER, "discipline": "fcfs"}),
    ],
    ids=["sampled", "counts", "pull", "ps", "fcfs"],
)
def test_the_result_does_not_depend_on_earlier_requests(
    pools: list[ms.Pool],
    policy: ms.policies.Policy,
    service: dict[str, Any],
    smaller: dict[str, Any],
    larger: dict[str, Any],
    seed: int,
) -> None:
    system = ms.System(0.9, pools, n_servers=10)
    cache = Memory()
    if service and "precision" in smaller:
        # Jobs that are followed are known less precisely.
        smaller, larger = (
            {**options, "precision": max(0.01, 10 * options["precision"])}
            for options in (smaller, larger)
        )

    def run(options: dict[str, Any], cache: Memory | None = None) -> xr.Dataset:
        return simulate(system, policy, seed=(seed, 41), cache=cache, **service, **options)

    few = run(smaller, cache)
    assert (cache.reused, cache.needed) == (0, int(few.n_replications))
    many = run(larger, cache)
    assert (cache.reused, cache.needed) == (few.n_replications, many.n_replications)
    assert cache.reused < cache.needed
    assert content(many) == content(run(larger))
    # The smaller request again finds all that it needs, and no more of it.
    again = run({**smaller, "threads": 2}, cache)
    assert (cache.reused, cache.needed) == (few.n_replications, few.n_replications)
    assert content(again) == content(few) == content(run(smaller))


def test_replications_of_another_system_are_ignored(seed: int) -> None:
    system = ms.System(0.7, ONE_POOL, n_servers=10)
    options = {"horizon": 300.0, "seed": (seed, 42)}
    cache = Memory()
    simulate(system, SQ2, cache=cache, **options)  # type: ignore[arg-type]
    for changed in (
        {"seed": (seed, 43)},
        {"horizon": 301.0},
        {"horizon": None, "precision": 0.1},
        {"moments": True},
        {"start": np.ones((1, 2))},
        {"max_events": 1e9},
    ):
        other = Memory()
        other.save(cache.arrays)
        result = simulate(system, SQ2, cache=other, **{**options, **changed})  # type: ignore[arg-type]
        assert other.reused == 0, changed
        assert content(result) == content(simulate(system, SQ2, **{**options, **changed}))  # type: ignore[arg-type]
    # Control variates are chosen when all has been measured.
    result = simulate(system, SQ2, cache=cache, control_variates=False, **options)  # type: ignore[arg-type]
    assert cache.reused == 8
    assert int(result.n_controls) == 0


def test_replications_of_other_sizes_are_ignored(seed: int) -> None:
    """Measured ones too, which look alike."""
    system = ms.System(0.7, ONE_POOL, n_servers=5)
    laws = [ms.size_law("empirical", values=values, mean=1) for values in ([1, 2, 3], [1, 2, 6])]
    services: list[dict[str, Any]] = [
        {"sizes": laws[0], "discipline": "ps"},
        {"sizes": laws[0], "discipline": "fcfs"},
        {"sizes": laws[1], "discipline": "fcfs"},
        {"sizes": HYPER, "discipline": "fcfs"},
        {},
    ]
    cache = Memory()
    for number, service in enumerate(services):
        for reused in (0, 8):
            simulate(system, SQ2, horizon=100.0, seed=(seed, 46), cache=cache, **service)
            assert cache.reused == reused, (number, service)


def test_covariances_are_kept(seed: int) -> None:
    system = ms.System(0.7, TWO_POOLS, n_servers=10)
    policy = ms.policy("scheme1", d=[1, 2])
    options = {"horizon": 300.0, "seed": (seed, 44), "moments": True}
    cache = Memory()
    simulate(system, policy, cache=cache, replications=3, **options)  # type: ignore[arg-type]
    more = simulate(system, policy, cache=cache, **options)  # type: ignore[arg-type]
    assert cache.reused == 3
    assert "occupancy_covariance" in more
    assert content(more) == content(simulate(system, policy, **options))  # type: ignore[arg-type]


def test_a_bound_on_the_events_shortens_all_replications(seed: int) -> None:
    system = ms.System(0.9, ONE_POOL, n_servers=3)
    options = {"precision": 0.0001, "max_events": 3e5, "seed": (seed, 45)}
    cache = Memory()
    few = simulate(system, SQ2, cache=cache, **options)  # type: ignore[arg-type]
    assert float(few.n_events) < 3e5
    assert not bool(few.precision_met)
    again = simulate(system, SQ2, cache=cache, **options)  # type: ignore[arg-type]
    assert cache.reused == 8
    assert content(again) == content(few)
    # One more makes all shorter.
    other = simulate(system, SQ2, cache=cache, replications=9, **options)  # type: ignore[arg-type]
    assert cache.reused == 0
    assert content(other) == content(simulate(system, SQ2, replications=9, **options))  # type: ignore[arg-type]


def test_plans_are_cut_into_whole_samples() -> None:
    """Plans are as long as asked for, or a little longer; hardly, unless they are very short."""
    for measured in np.geomspace(1, 1e12, 50):
        for slowest in np.geomspace(1, 1e7, 15):
            for sample_steps in (8, 41, 130, 5000):
                plan = make_plan(Lengths(5.0, measured, slowest, sample_steps))
                assert plan.fine * plan.steps % plan.period == 0
                assert 1 <= plan.head <= plan.pieces
                assert plan.fine <= 1024
                assert 0.999 <= plan.measured / measured <= 2.0
                if measured > 1e4 * sample_steps:
                    assert plan.measured <= 1.02 * measured


def test_kept_pieces_divide_each_other_and_are_enough() -> None:
    kept = [kept_pieces(number, 48) for number in range(300)]
    assert all(a % b == 0 for a, b in itertools.pairwise(kept))
    assert all(b * (number + 1) >= 96 for number, b in enumerate(kept) if number)
    assert kept[0] == 48
    assert kept[-1] == 1
    assert [kept_pieces(number, 1) for number in (0, 50)] == [1, 1]
