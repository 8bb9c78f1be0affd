from typing import TYPE_CHECKING

import pytest

from manyserver.methods.mean_field import MeanField
from manyserver.study.storage.records import Record

if TYPE_CHECKING:
    from tests.inspection.conftest import Project


def test_a_new_project_computes_all(project: "Project") -> None:
    project.write("other", seed=2, sweep={"arrival_rate": [0.2, 0.3], "n_servers": ["limit"]})
    assert project.ask("why", "other") == [
        "other: 2 points to compute, 0 stored, 0 left out",
        "  2 new",
        "  cube.nc: units are missing",
        "  fits.csv: missing",
    ]


def test_nothing_to_do(project: "Project") -> None:
    said = project.ask("why", "small")
    assert said == ["small: no points to compute, 2 stored, 0 left out; nothing to do"]


def test_new_values_of_an_axis_are_named(project: "Project") -> None:
    project.write(sweep={"arrival_rate": [0.5, 0.6, 0.7], "n_servers": ["limit"]})
    assert project.ask("why", "small") == [
        "small: 1 point to compute, 2 stored, 0 left out",
        "  1 new (arrival_rate 0.6)",
        "  cube.nc: points change",
        "  fits.csv: made from the cube",
    ]


def test_only_new_values_are_named_beside_changed_options(project: "Project") -> None:
    sweep = {"arrival_rate": [0.5, 0.7], "n_servers": [10]}
    methods = {"simulation": {"precision": 0.1}}
    project.write("other", sweep=sweep, methods=methods, fits=[])
    for point in project.plan.study("other").points:
        project.store.append(point, Record(point.parameters, point.code, {}), seconds=1.0)
    sweep["arrival_rate"] = [0.5, 0.6, 0.7]
    methods["simulation"]["precision"] = 0.05
    project.write("other", sweep=sweep, methods=methods, fits=[])
    said = project.ask("why", "other")
    assert set(said[1:3]) == {
        "  1 new (arrival_rate 0.6)",
        "  2 options changed: precision 0.1 -> 0.05",
    }


def test_points_that_are_dropped_cost_nothing(project: "Project") -> None:
    project.write(sweep={"arrival_rate": [0.5], "n_servers": ["limit"]})
    said = project.ask("why", "small")
    assert said[0] == "small: no points to compute, 1 stored, 0 left out"
    assert said[-1] == "  1 point no more in the study; the store keeps them"


def test_changed_code_is_named(project: "Project") -> None:
    (folder,) = (project.results / "points").iterdir()
    modules = folder / "code.json"
    text = modules.read_text()
    there = '"manyserver.mean_field.fixed_point": "'
    assert there in text
    modules.write_text(text.replace(there, f"{there}00"))
    folder.rename(folder.with_name("mean_field-0123456789abcdef"))
    unit = next((project.results / "small" / "units").rglob("*.jsonl"))
    unit.unlink()
    code = project.plan.study("small").points[0].code
    assert project.ask("why", "small")[1] == (
        "  2 of mean_field: its code changed, manyserver.mean_field.fixed_point "
        f"(fingerprint 0123456789abcdef -> {code})"
    )


@pytest.mark.parametrize(
    "changes,reason",
    [
        ({"methods": {"simulation": {"precision": 0.2}}}, "options changed: precision 0.5 -> 0.2"),
        ({"methods": {"simulation": {}}}, "options changed: precision 0.5 -> default"),
        ({"seed": 7}, "seed changed: "),
    ],
)
def test_changed_options_are_named(
    project: "Project", changes: dict[str, object], reason: str
) -> None:
    sweep = {"arrival_rate": [0.5], "n_servers": [10]}
    base = {"sweep": sweep, "methods": {"simulation": {"precision": 0.5}}, "fits": []}
    project.write("other", **base)
    _store_as_if_computed(project, "other")
    project.write("other", **{**base, **changes})
    assert project.ask("why", "other")[1].startswith(f"  1 {reason}")


def _store_as_if_computed(project: "Project", name: str) -> None:
    for point in project.plan.study(name).points:
        record = Record(point.parameters, point.code, {"sojourn_mean": 1.0})
        project.store.append(point, record, seconds=0.1)


def test_damage_is_told(project: "Project") -> None:
    (path,) = (project.results / "points").glob("*/*.jsonl")
    path.write_text(path.read_text().replace('"queue_mean":', '"queue-mean":', 1))
    next((project.results / "small" / "units").rglob("*.jsonl")).unlink()
    said = project.ask("why", "small")
    assert said[0] == "small: 1 point to compute, 1 stored, 0 left out"
    assert said[1] == "  1 damaged in the store"
    assert said[-1] == "  damaged lines in the store, which are ignored: 1"


def test_failures_are_told(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ArithmeticError("no solution")

    monkeypatch.setattr(MeanField, "compute", fail)
    sweep = {"arrival_rate": [0.4, 0.5], "n_servers": ["limit"]}
    project.write(sweep=sweep, fits=[])
    project.build("small")
    next((project.results / "small" / "units").rglob("*.jsonl")).unlink()
    assert project.ask("why", "small")[:2] == [
        "small: 1 point to compute, 1 stored, 0 left out",
        "  1 failed before: ArithmeticError: no solution",
    ]
    assert project.ask("status", "small")[1].split() == ["small", "2", "1", "1", "1", "0", "2"]


def test_other_settings_of_a_fit_renew_it_alone(project: "Project") -> None:
    project.write(fits=[{"kind": "tail_growth", "name": "growth"}])
    assert project.ask("why", "small") == [
        "small: no points to compute, 2 stored, 0 left out",
        "  fits.csv: its settings changed",
    ]


def test_what_sums_up_all_studies_is_told(project: "Project") -> None:
    assert project.ask("why")[-2:] == ["claims: missing", "report.html: missing"]
    project.build()
    for command in ("claims", "report"):
        project.ask(command)
    study = "small: no points to compute, 2 stored, 0 left out; nothing to do"
    assert project.ask("why") == [study]
    project.write(sweep={"arrival_rate": [0.5, 0.6, 0.7], "n_servers": ["limit"]})
    assert project.ask("why")[-2:] == [
        "claims: made from the cubes",
        "report.html: made from all studies",
    ]
