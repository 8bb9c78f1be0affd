"""Real runs of Snakemake on a tiny study, counting the points that are computed."""

import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

if TYPE_CHECKING:
    from tests.workflow.conftest import Project

ROOT = Path(__file__).parents[2]
Finished = tuple["Project", str]
NewProject = Callable[[], "Project"]
JOB = re.compile(r"^Job \d+: (.*)$", re.MULTILINE)


def test_one_command_builds_everything_and_says_what_it_does(finished: Finished) -> None:
    project, said = finished
    assert project.counts == (8, 0)
    results = project.folder / "results" / "tiny"
    files = {
        "cube.nc",
        "fits.csv",
        "figures/sojourn_against_load.pdf",
        "figures/sojourn_against_load.png",
        "units/mean_field_limit.jsonl",
        "units/simulation_n10.jsonl",
    }
    found = {str(p.relative_to(results)) for p in results.rglob("*") if p.is_file()}
    assert {file for file in found if not file.startswith(("logs/", "benchmarks/"))} == files
    with xr.open_dataset(results / "cube.nc") as cube:
        asked = cube.status != "not asked for"
        assert asked.sum().item() == 8
        assert set(cube.status.values[asked.values].tolist()) <= {"ok", "precision not met"}
    messages = [re.sub(r"#\w+", "#", message) for message in JOB.findall(said)]
    assert sorted(messages) == [
        "all studies are built",
        "tiny: assemble the cube",
        "tiny: compute 4 points # of mean_field_limit",
        "tiny: compute 4 points # of simulation_n10",
        "tiny: draw sojourn_against_load",
        "tiny: fit rates",
    ]


def test_nothing_to_do_is_said_from_the_other_entry_and_another_place(
    finished: Finished, tmp_path: Path
) -> None:
    project = finished[0].copied(tmp_path / "project")
    said = project.snakemake("--snakefile", "workflow/Snakefile")
    assert "Nothing to be done" in said
    assert JOB.findall(said) == []


def test_a_new_rate_and_a_new_label_compute_only_the_new_points(
    finished: Finished, tmp_path: Path
) -> None:
    project = finished[0].copied(tmp_path / "project")
    project.edit("[0.5, 0.7]", "[0.5, 0.6, 0.7]")
    project.edit("{name: sq, d: 2}", "{name: sq, d: 2, label: SQ}")
    said = project.snakemake("results/tiny/cube.nc")
    assert project.counts == (4, 8)
    assert "'4 points #" in said and "'6 points #" in said
    with xr.open_dataset(project.folder / "results" / "tiny" / "cube.nc") as cube:
        assert cube.arrival_rate.values.tolist() == [0.5, 0.6, 0.7]
        assert cube.policy.values.tolist() == ["scheme1 d=(2,2)", "SQ"]


def test_a_figure_option_redraws_the_figure_alone(finished: Finished, tmp_path: Path) -> None:
    project = finished[0].copied(tmp_path / "project")
    project.edit("{kind: sojourn_against_load}", "{kind: sojourn_against_load, scale: log}")
    assert JOB.findall(project.snakemake("--dry-run")) == [
        "tiny: draw sojourn_against_load",
        "all studies are built",
    ]


def test_edits_of_the_code_concern_what_they_compute(finished: Finished, tmp_path: Path) -> None:
    project = finished[0].copied(tmp_path / "project")
    source = project.folder / "src"
    source.unlink()
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    package = source / "manyserver"
    (package / "model.py").write_text(f"# Edited.\n{(package / 'model.py').read_text()}")
    assert "Nothing to be done" in project.snakemake("--dry-run")
    kernel = package / "simulation" / "sampled.py"
    kernel.write_text(f"{kernel.read_text()}\nEDITED = 1\n")
    said = JOB.findall(project.snakemake("--dry-run"))
    assert [re.sub(r"#\w+", "#", message) for message in said if "points" in message] == [
        "tiny: compute 4 points # of simulation_n10"
    ]


def test_an_interrupted_run_continues(new_project: NewProject) -> None:
    project = new_project()
    project.edit("n_servers: [10, limit]", "n_servers: [10]")
    project.edit("precision: 0.1", "precision: 0.003")
    project.edit("  mean_field: {}\n", "")
    project.edit("fits:\n  - {kind: tail_growth}\n", "")
    project.stop_when_stored(project.start("snakemake", "--cores", "2"), signal.SIGINT)
    kept = project.stored()
    assert 1 <= kept < 4
    project.snakemake("results/tiny/units/simulation_n10.jsonl")
    assert project.counts == (4 - kept, kept)


def test_a_killed_unit_continues(new_project: NewProject) -> None:
    project = new_project()
    project.edit("precision: 0.1", "precision: 0.004")
    command = ("manyserver", "unit", "tiny", "simulation_n10", "results/unit.jsonl")
    project.stop_when_stored(project.start(*command), signal.SIGKILL)
    kept = project.stored()
    assert 1 <= kept < 4
    assert not (project.folder / "results" / "unit.jsonl").exists()
    said = project.run(*command).splitlines()[-1]
    assert said == f"points: {4 - kept} computed, {kept} reused, 0 left out"


def test_a_mistake_is_told_before_any_job_starts(new_project: NewProject) -> None:
    project = new_project()
    project.edit("arrival_rate:", "arival_rate:")
    said = project.snakemake(code=1).splitlines()
    assert said[-2:] == [
        "The configuration cannot be used:",
        "config/studies/tiny.yaml: sweep.arival_rate = [0.5, 0.7]: unknown key; did you mean "
        "'arrival_rate'? Allowed: arrival_rate, load, n_servers",
    ]
    assert not (project.folder / "results").exists()


def test_a_float_that_is_read_as_a_ratio_is_told(new_project: NewProject) -> None:
    project = new_project()
    project.edit("speed: 2/3", "speed: 0.666667")
    assert "speed = 0.666667 is read as 2/3" in project.snakemake("--dry-run")
