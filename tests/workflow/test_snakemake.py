"""A first run of Snakemake, and what it says before it runs."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr
from tests.workflow.conftest import ROOT, totals

from manyserver import methods

if TYPE_CHECKING:
    from tests.workflow.conftest import Project

Finished = tuple["Project", str]
NewProject = Callable[[], "Project"]
SHOWN = ROOT / "config" / "studies" / "finite_size.yaml"
"""The study whose rules are drawn in the README."""
JOB = re.compile(r"^Job \d+: (.*)$", re.MULTILINE)


def test_one_command_builds_everything_and_says_what_it_does(finished: Finished) -> None:
    project, said = finished
    assert totals(said) == (8, 0, 0)
    results = project.folder / "results" / "tiny"
    files = {
        "cube.nc",
        "fits.csv",
        "figures/sojourn_against.pdf",
        "figures/sojourn_against.png",
        "verified.txt",
        "units/mean_field/limit.jsonl",
        "units/simulation/n10.jsonl",
    }
    found = {str(p.relative_to(results)) for p in results.rglob("*") if p.is_file()}
    assert {file for file in found if not file.startswith(("logs/", "benchmarks/"))} == files
    summaries = {path.name for path in results.parent.iterdir() if path.is_file()}
    assert summaries >= {"claims.csv", "claims.md", "report.html"}
    with xr.open_dataset(results / "cube.nc") as cube:
        asked = cube.status != "not asked for"
        assert asked.sum().item() == 8
        assert set(cube.status.values[asked.values].tolist()) <= {"ok", "precision not met"}
    messages = [re.sub(r"#\w+", "#", message) for message in JOB.findall(said)]
    assert sorted(messages) == [
        "all studies are built",
        "decide claims",
        "tiny: assemble the cube",
        "tiny: compute 4 points # of mean_field/limit",
        "tiny: compute 4 points # of simulation/n10",
        "tiny: draw figures",
        "tiny: fit rates",
        "tiny: look for failed points",
        "write the report",
    ]
    assert "  results/tiny: cube.nc, fits.csv, figures/sojourn_against.png, .pdf\n" in said
    assert "Look first at results/tiny/figures/sojourn_against.png." in said
    assert (results / "verified.txt").read_text() == "tiny: 8 points, none failed\n"


def test_nothing_to_do_is_said_from_the_other_entry_and_another_place(
    finished: Finished, tmp_path: Path
) -> None:
    project = finished[0].copied(tmp_path / "project")
    said = project.snakemake("--snakefile", "workflow/Snakefile")
    assert "Nothing to be done" in said
    assert JOB.findall(said) == []


def test_a_mistake_is_told_before_any_job_starts(new_project: NewProject) -> None:
    project = new_project()
    project.edit("arrival_rate:", "arival_rate:")
    said = project.snakemake(code=1).splitlines()
    assert said[-2:] == [
        "The configuration cannot be used:",
        "config/studies/tiny.yaml, line 10: sweep: must have exactly one of the keys arrival_rate "
        "and load; did you mean 'arrival_rate' by 'arival_rate'?",
    ]
    assert not (project.folder / "results").exists()


def test_a_float_that_is_read_as_a_ratio_is_told(new_project: NewProject) -> None:
    project = new_project()
    project.edit("speed: 2/3", "speed: 0.666667")
    assert "speed = 0.666667 is read as 2/3" in project.snakemake("--dry-run")


def arrows(graph: str) -> set[tuple[str, str]]:
    """The arrows between rules in a drawing in Mermaid's language, but those that follow."""
    names = dict(re.findall(r"(\w+)\[(\w+)\]", graph))
    pairs = re.findall(r"(\w+) --> (\w+)", graph)
    found = {(names.get(one, one), names.get(other, other)) for one, other in pairs}
    follow = {(one, last) for one, other in found for first, last in found if first == other}
    return found - follow


def test_every_method_is_a_rule(new_project: NewProject) -> None:
    rules = new_project().run("snakemake", "--list-rules", "--quiet").split()
    assert set(methods.names()) < set(rules)


def test_the_rules_in_the_readme_are_those_of_the_workflow(new_project: NewProject) -> None:
    project = new_project()
    shutil.copy(SHOWN, project.study.with_name(SHOWN.name))
    study = ("--config", f"studies={SHOWN.stem}")
    (drawn,) = re.findall(r"```mermaid\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    printed = project.run(
        "snakemake", "--snakefile", "workflow/Snakefile", "--rulegraph", "mermaid-js", *study
    )
    assert {("simulation", "cube"), ("cube", "fits"), ("verify", "all")} < arrows(printed)
    assert arrows(drawn) == arrows(printed)
