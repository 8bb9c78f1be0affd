"""Real runs of Snakemake after all kinds of changes, counting the points that are computed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from tests.workflow.conftest import replications, totals

if TYPE_CHECKING:
    from tests.workflow.conftest import Project

CUBE = "results/tiny/cube.nc"
Finished = tuple["Project", str]


def cube_of(project: "Project", study: str = "tiny") -> xr.Dataset:
    with xr.open_dataset(project.folder / "results" / study / "cube.nc") as cube:
        return cube.load()


def test_a_changed_study_computes_what_is_new(finished: Finished, tmp_path: Path) -> None:
    project = finished[0].copied(tmp_path / "project")
    first = cube_of(project)

    # Another rate and another label: two policies in the limit and with 10 servers.
    project.edit("[0.5, 0.7]", "[0.5, 0.6, 0.7]")
    project.edit("{name: sq, d: 2}", "{name: sq, d: 2, label: SQ}")
    assert project.ask("why", "tiny")[:2] == [
        "tiny: 4 points to compute, 8 stored, 0 left out",
        "  4 new (arrival_rate 0.6)",
    ]
    said = project.snakemake(CUBE)
    assert totals(said) == (4, 8, 0)
    assert "'4 points #" in said and "'6 points #" in said
    assert cube_of(project).arrival_rate.values.tolist() == [0.5, 0.6, 0.7]
    assert cube_of(project).policy.values.tolist() == ["scheme1 d=(2,2)", "SQ"]

    # Back to the study as it was.
    project.edit("[0.5, 0.6, 0.7]", "[0.5, 0.7]")
    project.edit("{name: sq, d: 2, label: SQ}", "{name: sq, d: 2}")
    assert project.computed(CUBE) == (0, 8, 0)
    xr.testing.assert_identical(cube_of(project), first)

    # A rate less, a number of servers and a policy more; the store has a damaged line, and one of
    # a point that is not of this study.
    project.edit("[0.5, 0.7]", "[0.7]")
    project.edit("[10, limit]", "[10, 20, limit]")
    project.edit("d: 2}", "d: 2}\n  - {name: sq, d: 3}")
    damaged = next(iter((project.folder / "results" / "points").glob("mean_field-*/*.jsonl")))
    kept = damaged.read_text()
    assert kept.count('"arrival_rate":0.7') == 1
    damaged.write_text(kept.replace('"arrival_rate":0.7', '"arrival_rate":0.8'))
    told = project.ask("why", "tiny")
    assert told[0] == "tiny: 6 points to compute, 3 stored, 0 left out"
    # In the limit one point and the damaged one, with 10 servers one, with 20 servers three.
    assert project.computed(CUBE) == (6, 3, 0)
    shrunk = cube_of(project)
    assert shrunk.arrival_rate.values.tolist() == [0.7]
    assert shrunk.n_servers.values.tolist() == [10, 20, np.inf]
    assert (shrunk.status != "not asked for").sum().item() == 9

    # Renamed, and another study with a part of its points.
    other = project.study.with_name("part.yaml")
    project.study = project.study.rename(project.study.with_name("renamed.yaml"))
    other.write_text(project.study.read_text().replace("[10, 20, limit]", "[20, limit]"))
    assert project.computed("results/renamed/cube.nc", "results/part/cube.nc") == (0, 15, 0)
    assert cube_of(project, "part").sojourn_mean.equals(
        cube_of(project, "renamed").sojourn_mean.sel(n_servers=[20, np.inf])
    )


def test_a_smaller_error_simulates_what_is_missing(finished: Finished, tmp_path: Path) -> None:
    """Four points of 32 replications each are there."""
    project = finished[0].copied(tmp_path / "project")
    project.edit("precision: 0.1", "precision: 0.1, replications: 40")
    told = project.ask("why", "tiny")
    assert told[:2] == [
        "tiny: 4 points to compute, 4 stored, 0 left out",
        "  4 options changed: replications default -> 40",
    ]
    said = project.snakemake(CUBE)
    assert totals(said) == (4, 0, 0)
    assert replications(said) == (128, 160)

    project.edit("precision: 0.1, replications: 40", "precision: 0.00005")
    said = project.snakemake(CUBE)
    reused, needed = replications(said)
    assert reused == 160 < needed
    simulated = cube_of(project).sel({"method_name": "simulation", "n_servers": 10})
    assert simulated.n_replications.sum() == needed
    assert (simulated.precision_met == 1).all()


def test_a_figure_option_redraws_the_figure_alone(finished: Finished, tmp_path: Path) -> None:
    project = finished[0].copied(tmp_path / "project")
    project.edit("{kind: sojourn_against}", "{kind: sojourn_against, scale: log}")
    assert project.ask("why", "tiny") == [
        "tiny: no points to compute, 8 stored, 0 left out",
        "  figures/sojourn_against: its settings changed",
    ]
    said = project.snakemake("results/tiny/figures/sojourn_against.png")
    assert totals(said) == (0, 0, 0)
    assert "draw figures" in said and "assemble the cube" not in said

    # Another figure leaves it as it is.
    figure = project.folder / "results" / "tiny" / "figures" / "sojourn_against.png"
    drawn = figure.stat().st_ino
    project.edit("scale: log}", "scale: log}\n  - {kind: sojourn_against, name: linear}")
    assert project.ask("why", "tiny")[1:] == ["  figures/linear: missing"]
    said = project.snakemake("results/tiny/figures/linear.png")
    assert figure.with_name("linear.png").exists()
    assert figure.stat().st_ino == drawn
    assert "  results/tiny: figures/linear.png, .pdf\n" in said
    assert project.ask("why", "tiny") == [
        "tiny: no points to compute, 8 stored, 0 left out; nothing to do"
    ]


def test_changed_code_computes_what_it_concerns(finished: Finished, tmp_path: Path) -> None:
    project = finished[0].copied(tmp_path / "project")
    project.copy_source()
    package = "src/manyserver"
    for name, old, new in (
        ("model", '"""', '# Edited.\n"""'),
        ("simulation/server_kernel", '"""', '"""Edited. '),
    ):
        path = project.folder / package / f"{name}.py"
        path.write_text(path.read_text().replace(old, new, 1))
    # Another version of a library, as far as its name tells.
    numpy = project.folder / "src" / "numpy-99.1.dist-info"
    numpy.mkdir()
    (numpy / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 99.1\n")
    assert "Nothing to be done" in project.snakemake()

    kernel = project.folder / package / "simulation" / "server_kernel.py"
    kernel.write_text(f"{kernel.read_text()}\nEDITED = 1\n")
    told = project.ask("why", "tiny")
    assert told[0] == "tiny: 4 points to compute, 4 stored, 0 left out"
    assert told[1].startswith(
        "  4 of simulation: its code changed, manyserver.simulation.server_kernel ("
    )
    assert project.computed(CUBE) == (4, 0, 0)
    versions = json.loads(cube_of(project).attrs["library_versions"])
    assert versions["numpy"] == [np.__version__, "99.1"]

    solver = project.folder / package / "mean_field" / "fixed_point.py"
    solver.write_text(f"{solver.read_text()}\nEDITED = 1\n")
    assert project.ask("why", "tiny")[1].startswith(
        "  4 of mean_field: its code changed, manyserver.mean_field.fixed_point ("
    )
    assert project.computed(CUBE) == (4, 0, 0)

    # Both edits undone: all points are there from before.
    for path in (kernel, solver):
        path.write_text(path.read_text().replace("\nEDITED = 1\n", ""))
    assert project.computed(CUBE) == (0, 8, 0)
