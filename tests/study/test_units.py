from typing import Any

import pytest

from manyserver.plan import Plan
from manyserver.study.study import read_study

GRID = {"start": 0.1, "stop": 0.7, "count": 7}


@pytest.mark.parametrize("most,sizes", [(7, [7]), (6, [4, 3]), (3, [3, 2, 2]), (1, [1] * 7)])
def test_large_units_are_split_into_parts_alike(
    most: int, sizes: list[int], write_study: Any
) -> None:
    changes = {"policies": [{"name": "sq", "d": 2}], "sweep.arrival_rate": GRID}
    whole = read_study(write_study(changes))
    parts = read_study(write_study({**changes, "unit_points": most}))
    assert [len(unit.points) for unit in parts.units.values()] == sizes
    assert {p.id for u in parts.units.values() for p in u.points} == {p.id for p in whole.points}
    name = next(iter(whole.units))
    expected = [name] if len(sizes) == 1 else [f"{name}_part{i + 1}" for i in range(len(sizes))]
    assert list(parts.units) == expected
    if most == 6:
        rates = [p.labels["arrival_rate"] for p in parts.units[f"{name}_part1"].points]
        assert rates == [0.1, 0.3, 0.5, 0.7]


@pytest.mark.parametrize("cores,threads", [(None, 4), (1, 1), (2, 1), (7, 2), (64, 16)])
def test_a_study_uses_all_cores_where_threads_help(
    cores: int | None, threads: int, write_study: Any
) -> None:
    """Four units on a machine, or on a cluster of which a method says how many it wants."""
    changes = {"methods": {"mean_field": {}, "simulation": {}}, "sweep.n_servers": [10, "limit"]}
    plan = Plan(write_study(changes).parents[1])
    assert len(plan.study("small").units) == 4
    assert plan.threads("simulation", cores) == threads
    assert plan.threads("mean_field", cores) == 1
