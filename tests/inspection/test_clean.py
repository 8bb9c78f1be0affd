from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from manyserver.study.storage.locks import sole_run
from manyserver.study.storage.records import Record

if TYPE_CHECKING:
    from tests.inspection.conftest import Project

WIDE = {"arrival_rate": [0.5, 0.6, 0.7], "n_servers": ["limit"]}
NARROW = {"arrival_rate": [0.5], "n_servers": ["limit"]}


def stored(project: "Project") -> list[float]:
    """Arrival rates in the store."""
    points = project.plan.study("every").points
    return [
        point.labels["arrival_rate"] for point in points if point.id in project.store.find(points)
    ]


@pytest.fixture
def wasteful(project: "Project") -> "Project":
    """A project with a point that no study uses, one of other code, and side files of both."""
    project.write("every", sweep=WIDE)
    for point in project.plan.study("every").points:
        if point.labels["arrival_rate"] == 0.6:
            project.store.append(point, Record(point.parameters, point.code, {}), seconds=2.0)
        project.store.side_file(point).write_bytes(b"123")
    old = project.results / "points" / "mean_field-0123456789abcdef"
    old.mkdir()
    record = Record({"method": "mean_field"}, "0123456789abcdef", {})
    (old / "cell.jsonl").write_text("damaged\n")
    assert record.values == {}
    return project


def test_used_points_are_not_listed(wasteful: "Project") -> None:
    said = wasteful.ask("clean", "--unreferenced", "--yes")
    assert [line.split(": ", 1)[1] for line in said[:1]] == [
        "0 points, 0.00 MB, 0 s of CPU time; computed by other code"
    ]
    assert stored(wasteful) == [0.5, 0.6, 0.7]


def test_what_no_study_uses_is_removed_after_a_yes(wasteful: "Project") -> None:
    wasteful.write("every", sweep=NARROW)
    said = wasteful.ask("clean", "--unreferenced", answer="n\n", code=0)
    assert "1 points, 0.00 MB, 2 s of CPU time; no study has them" in said[1]
    wasteful.write("every", sweep=WIDE)
    assert stored(wasteful) == [0.5, 0.6, 0.7]
    wasteful.write("every", sweep=NARROW)
    wasteful.ask("clean", "--unreferenced", answer="y\n")
    said = wasteful.ask("clean", "--unreferenced")
    assert said == ["every stored point is used by a study"]
    wasteful.write("every", sweep=WIDE)
    # 0.7 is used by the study `small`.
    assert stored(wasteful) == [0.5, 0.7]
    points = wasteful.plan.study("every").points
    left = [p for p in points if wasteful.store.side_file(p).exists()]
    assert [point.labels["arrival_rate"] for point in left] == [0.5, 0.7]
    assert len(list((wasteful.results / "points").iterdir())) == 1


def test_nothing_is_removed_while_a_run_goes_on(wasteful: "Project") -> None:
    with sole_run(wasteful.results):
        said = wasteful.ask("clean", "--unreferenced", "--yes", code=1)
    assert "another run builds these results (process " in said[-1]
    assert (wasteful.results / "points" / "mean_field-0123456789abcdef").exists()


def test_a_store_that_is_not_there(tmp_path: Path, project: "Project") -> None:
    said = project.call("clean", "--unreferenced", "--results", str(tmp_path / "nowhere"))
    assert said == "every stored point is used by a study\n"
