"""Runs that are killed, that fail in part, and that meet another run."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import xarray as xr
from tests.workflow.conftest import totals

from manyserver.study.storage.records import unseal

if TYPE_CHECKING:
    from tests.workflow.conftest import Project

NewProject = Callable[[], "Project"]
UNIT = "results/tiny/units/mean_field/limit.jsonl"
OBEDIENT = """        from pathlib import Path
        from time import sleep

        from manyserver.mean_field import fixed_point

        if Path("broken").exists() and problem.system.arrival_rate == 0.7:
            raise ArithmeticError("no solution")
        while Path("hold").exists() and problem.system.arrival_rate == 0.5:
            sleep(0.02)
"""


@pytest.fixture
def obedient(new_project: NewProject) -> Iterator["Project"]:
    """A project with four points: half fail if there is a file `broken`, half wait for `hold`."""
    project = new_project()
    project.copy_source()
    project.edit("n_servers: [10, limit]", "n_servers: limit")
    project.edit("  simulation: {precision: 0.1}\n", "")
    old = "        from manyserver.mean_field import fixed_point\n"
    project.edit(old, OBEDIENT, "src/manyserver/methods/mean_field.py")
    yield project
    # Should a test fail, what still waits must not wait for ever.
    (project.folder / "hold").unlink(missing_ok=True)


def workers(run: subprocess.Popen[str]) -> list[int]:
    """The processes that compute points for a run, which began a session of its own."""
    table = subprocess.run(
        ["ps", "-eo", "pid,sid,args"], check=True, capture_output=True, text=True
    ).stdout
    rows = [line.split(None, 2) for line in table.splitlines()[1:]]
    return [
        int(pid)
        for pid, session, command in rows
        if int(session) == run.pid and " -m manyserver unit " in command and " -c " not in command
    ]


def start_until_it_waits(project: "Project") -> subprocess.Popen[str]:
    """Start a run, and return when it computes a point that waits for `hold`."""
    state = project.folder / "results" / "tiny" / "logs" / "mean_field/limit.json"
    # It would be that of the run before.
    state.unlink(missing_ok=True)
    run = project.start("snakemake", "--cores", "1", UNIT)
    deadline = time.monotonic() + 120
    while not (state.exists() and "arrival_rate 0.5" in state.read_text()):
        assert run.poll() is None, run.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert project.stored() == 1
    return run


def test_what_is_killed_loses_no_point(obedient: "Project") -> None:
    hold = obedient.folder / "hold"
    hold.touch()

    # A worker in the middle of its unit.
    run = start_until_it_waits(obedient)
    (worker,) = workers(run)
    os.kill(worker, signal.SIGKILL)
    run.communicate(timeout=60)
    assert run.returncode != 0
    assert not (obedient.folder / UNIT).exists()

    # All of a run, as Ctrl-C does it.
    run = start_until_it_waits(obedient)
    os.killpg(run.pid, signal.SIGINT)
    run.communicate(timeout=60)
    assert run.returncode != 0
    assert not (obedient.folder / UNIT).exists()

    # Another run meanwhile says what is wrong and leaves all as it is.
    run = start_until_it_waits(obedient)
    assert "another run builds these results (process " in obedient.snakemake(UNIT, code=1)

    # The main process alone: what computes for it goes on.
    assert len(workers(run)) == 1
    run.kill()
    run.wait()
    assert run.stdout is not None
    run.stdout.close()
    assert len(workers(run)) == 1
    hold.unlink()
    computed, reused, failed = obedient.computed(UNIT)
    assert (computed + reused, failed) == (4, 0) and reused >= 1
    deadline = time.monotonic() + 60
    while workers(run):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    lines = [
        line
        for file in (obedient.folder / "results" / "points").glob("*/*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert [unseal(line) is None for line in lines] == [False] * 4


def test_failed_points_are_told_kept_apart_and_tried_again(obedient: "Project") -> None:
    project = obedient
    broken = project.folder / "broken"
    broken.touch()
    results = project.folder / "results" / "tiny"

    # Accepted: all is built, and nothing is left to do.
    said = project.snakemake("--config", "allow_failures=true")
    assert totals(said) == (2, 0, 2)
    table = said[said.rindex("Failed points:") :].splitlines()[1:4]
    assert table[0] == "ArithmeticError: no solution"
    assert sorted(table[1:]) == [
        "  tiny: mean_field, system unequal, policy scheme1 d=(2,2), n_servers limit, "
        "arrival_rate 0.7",
        "  tiny: mean_field, system unequal, policy sq d=2, n_servers limit, arrival_rate 0.7",
    ]
    assert (results / "fits.csv").exists()
    assert (results / "figures" / "sojourn_against.png").exists()
    assert "2 of 4 points failed" in (results / "verified.txt").read_text()
    with xr.open_dataset(results / "cube.nc") as cube:
        failed = cube.sel({"method_name": "mean_field", "arrival_rate": 0.7})
        assert set(failed.status.values.ravel().tolist()) == {"failed"}
        assert set(failed.reason.values.ravel().tolist()) == {"ArithmeticError: no solution"}
        assert cube.sojourn_mean.notnull().sum().item() == 2

    # Not accepted: the run fails, and the next one tries these points alone.
    assert "2 of 4 points failed" in project.snakemake(code=1)
    project.study.write_text(project.study.read_text().split("figures:")[0])
    assert project.ask("why", "tiny")[:2] == [
        "tiny: 2 points to compute, 2 stored, 0 left out",
        "  2 failed before: ArithmeticError: no solution",
    ]
    said = project.snakemake(code=1)
    assert totals(said) == (0, 2, 2)
    # In the log of the job and at the end; older versions of Snakemake show that log twice.
    assert said.count("ArithmeticError: no solution") in (2, 3)
    broken.unlink()
    assert project.computed() == (2, 2, 0)


def test_what_is_damaged_or_failed_is_made_again(
    finished: tuple["Project", str], tmp_path: Path
) -> None:
    project = finished[0].copied(tmp_path / "project")
    results = project.folder / "results" / "tiny"
    unit, cube = results / "units" / "mean_field/limit.jsonl", results / "cube.nc"
    figure = results / "figures" / "sojourn_against.png"
    files = {path: path.read_bytes() for path in (unit, cube, figure)}

    # A bit of a unit is wrong, the cube is cut short, the figure is empty.
    unit.write_bytes(files[unit].replace(b"scheme1", b"scheme2", 1))
    cube.write_bytes(files[cube][:-100])
    figure.write_bytes(b"")
    said = project.snakemake("-np")
    assert all(f"{path.relative_to(project.folder)}: is damaged" in said for path in files)
    assert cube.exists()
    said = project.snakemake()
    assert totals(said) == (0, 4, 0)
    assert {path: path.read_bytes() for path in files} == files

    # A figure and a fit that fail while they are made.
    project.copy_source()
    failure = 'raise ArithmeticError("no value")'
    edits = {
        "src/manyserver/figures/sojourn_against.py": "cube = chosen(cube, options, keep",
        "src/manyserver/fits/tail_growth.py": "chosen = select(cube, ",
    }
    for file, line in edits.items():
        project.edit(line, f"{failure}; {line}", file)
    said = project.snakemake(code=1)
    assert "Traceback" not in said
    table = said[said.rindex("Failed products:") :].splitlines()[:4]
    assert table[1] == "ArithmeticError: no value"
    assert table[2:] == [
        "  results/tiny/fits.csv: tail_growth",
        "  results/tiny/figures/sojourn_against.png",
    ]
    assert "Traceback" in (results / "logs" / "figures.log").read_text()
    for file, line in edits.items():
        project.edit(f"{failure}; {line}", line, file)
    project.snakemake()
    assert figure.read_bytes() == files[figure]
