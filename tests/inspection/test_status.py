from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from manyserver.inspection.status import status
from manyserver.plan import Plan
from manyserver.study.points import Unit
from manyserver.study.running.compute import KERNELS, kernel_cache
from manyserver.study.running.cost import COMPILE_SECONDS, Cost, Timings, expected
from manyserver.study.storage.records import Record

if TYPE_CHECKING:
    from tests.inspection.conftest import Project


def test_points_are_counted_by_study_and_in_all(project: "Project") -> None:
    project.write("other", sweep={"arrival_rate": [0.3, 0.5, 0.6], "n_servers": ["limit"]})
    rows = [line.split() for line in project.ask("status")]
    assert " ".join(rows[0]) == "study points stored to do failed left out CPU seconds left"
    assert [row[:6] for row in rows[1:]] == [
        ["other", "3", "1", "2", "0", "0"],
        ["small", "2", "2", "0", "0", "0"],
        ["all", "5", "3", "2", "0", "0"],
    ]


TRUTH = 140.0


def unit_of(project: "Project") -> Unit:
    return next(iter(project.plan.study("other").units.values()))


def test_a_fresh_clone_is_told_how_long_the_default_studies_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a run, figures too, took TRUTH s of CPU time."""
    folder = Path(__file__).parents[2] / "config"
    plan = Plan(folder)
    monkeypatch.chdir(tmp_path)
    fresh = sum(row.seconds for row in status(plan, Path("results")))
    assert TRUTH / 2 < fresh < TRUTH * 2
    # Kernels are compiled once, for whichever study needs them first.
    kernel_cache("simulation", KERNELS).mkdir(parents=True)
    later = sum(row.seconds for row in status(plan, Path("results")))
    assert fresh - later == pytest.approx(COMPILE_SECONDS)


def test_times_come_from_the_nearest_points(project: "Project") -> None:
    sweep = {"arrival_rate": [0.5, 0.7], "n_servers": [10, 20]}
    methods = {"simulation": {"precision": 0.1}}
    project.write("other", sweep=sweep, methods=methods, fits=[])
    points = project.plan.study("other").points
    assert Timings(project.store).cost(points[0]).guessed
    assert expected(unit_of(project), Timings(project.store)).seconds is None
    values = {"sojourn_mean": 2.0, "sojourn_mean_half_width": 0.2}
    record = Record(points[0].parameters, points[0].code, values)
    project.store.append(points[0], record, seconds=3.0)
    timings = Timings(project.store)
    assert [timings.cost(point) for point in points] == [Cost(3.0, 3.0)] * 4
    assert expected(unit_of(project), timings) == (2, "simulation", 3.0)
    project.write("other", sweep=sweep, methods={"simulation": {"precision": 0.05}}, fits=[])
    points = project.plan.study("other").points
    # The same cell needs (0.1 / 0.05)^2 the time, from the precision it has; another cell is only
    # guessed from all of them.
    assert [timings.cost(point).worst for point in points] == [12.0, 12.0, 3.0, 3.0]
