"""Jobs that go through a batch system: a real Slurm of one node, and PBS as three scripts."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import xarray as xr
from tests.workflow.conftest import totals

from manyserver.study.running.cost import job_memory, job_minutes
from manyserver.study.storage.records import Record
from manyserver.study.storage.store import Store
from manyserver.study.study import read_study

if TYPE_CHECKING:
    from tests.workflow.conftest import Project

NewProject = Callable[[], "Project"]
SLURM = Path(__file__).with_name("slurm")
CUBE = "results/tiny/cube.nc"
PBS = {
    # A job is a process in the background; its exit status is kept in a file.
    "qsub": """
[[ "$*" == *"-l select=1:ncpus="*":mem="* && "$*" == *"-l walltime=0:"* ]] || exit 1
echo "$*" >> "$PBS/submitted"
id=$(wc -l < "$PBS/submitted")
(bash "${@: -1}" >> "$PBS/output" 2>&1; echo $? > "$PBS/$id") > /dev/null 2>&1 &
echo "$id"
""",
    "qstat": """
id="${@: -1}"
[ -f "$PBS/$id" ] && echo "    Exit_status = $(cat "$PBS/$id")" || echo "    job_state = R"
""",
    "qdel": "exit 0",
}


def test_a_job_gets_the_time_that_like_points_took(tmp_path: Path, new_project: NewProject) -> None:
    unit = read_study(new_project().study).units["simulation/n10"]
    store = Store(tmp_path / "points")
    # Four points guessed at 10 s, three times over, and three minutes.
    assert [job_minutes(unit, store, threads=1, attempt=i) for i in (1, 2, 3)] == [5, 10, 20]
    first, *others = unit.points
    store.append(first, Record(first.parameters, first.code, {}), seconds=600.0)
    # One is stored, one is like it, and two of another policy have nothing nearer.
    assert job_minutes(unit, store, threads=1, attempt=1) == 3 + 3 * 30
    assert job_minutes(unit, store, threads=4, attempt=1) == 3 + 3 * 10
    for point in others:
        store.append(point, Record(point.parameters, point.code, {}), seconds=1.0)
    assert job_minutes(unit, store, threads=1, attempt=1) == 3
    assert [job_memory(unit, threads=1, attempt=i) for i in (1, 2, 3)] == [1501, 3002, 6004]


def test_pbs_through_the_generic_executor(
    new_project: NewProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = new_project()
    project.study.write_text(project.study.read_text().split("figures:")[0])
    scripts = project.folder / "bin"
    for name, text in PBS.items():
        scripts.mkdir(exist_ok=True)
        (scripts / name).write_text(f"#!/usr/bin/env bash\n{text}")
        (scripts / name).chmod(0o755)
    monkeypatch.setenv("PBS", str(scripts))
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    said = project.run(
        "snakemake",
        *("--workflow-profile", "profiles/cluster-generic"),
        *("--seconds-between-status-checks", "1", "--latency-wait", "5"),
        *(f"results/tiny/units/{unit}.jsonl" for unit in ("mean_field/limit", "simulation/n10")),
    )
    assert totals(said) == (8, 0, 0), said
    submitted = sorted((scripts / "submitted").read_text().splitlines())
    asked = [
        "-N mean_field -l select=1:ncpus=1:mem=1000mb -l walltime=0:3:00 ",
        "-N simulation -l select=1:ncpus=4:mem=1501mb -l walltime=0:4:00 ",
    ]
    assert [line[: len(told)] for line, told in zip(submitted, asked, strict=True)] == asked


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Slurm of one node. Who asks for these tests must be told if it cannot start."""
    folder = tmp_path / "slurm"
    # Its sockets need a short path, and its users a way to them.
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    folder.mkdir()
    started = subprocess.run(
        [SLURM / "start.sh", folder], check=False, capture_output=True, text=True
    )
    try:
        if started.returncode:
            pytest.fail(started.stderr.strip() or "Slurm cannot start")
        monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        yield
    finally:
        subprocess.run([SLURM / "stop.sh", folder], check=True)


def running_jobs() -> list[str]:
    queue = ["squeue", "--noheader", "--states=running", "--format=%i"]
    return subprocess.run(queue, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.slurm
@pytest.mark.usefixtures("slurm")
def test_slurm_computes_a_study_and_tries_a_killed_job_again(new_project: NewProject) -> None:
    project = new_project()
    project.copy_source()
    project.study.write_text(project.study.read_text().split("figures:")[0])
    # Points of the limit wait until they are allowed to go on.
    project.edit(
        "        from manyserver.mean_field import fixed_point\n",
        "        from pathlib import Path\n        from time import sleep\n\n"
        "        from manyserver.mean_field import fixed_point\n\n"
        '        while Path("hold").exists() and problem.system.arrival_rate == 0.5:\n'
        "            sleep(0.05)\n",
        "src/manyserver/methods/mean_field.py",
    )
    hold = project.folder / "hold"
    hold.touch()
    run = project.start(
        "snakemake",
        *("--workflow-profile", "profiles/slurm"),
        *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
    )
    deadline = time.monotonic() + 240
    stored = project.folder / "results" / "points"
    while not list(stored.glob("mean_field-*/*.jsonl")):
        assert run.poll() is None, run.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.1)
    waiting = running_jobs()
    while len(waiting) > 1:
        # The simulation ends by itself.
        assert time.monotonic() < deadline
        time.sleep(0.5)
        waiting = running_jobs()
    subprocess.run(["scancel", *waiting], check=True)
    hold.unlink()
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 0, said
    assert "Trying to restart job" in said
    computed, reused, failed = totals(said)
    assert (computed + reused, failed) == (8, 0)
    assert reused >= 1
    with xr.open_dataset(project.folder / CUBE) as cube:
        assert set(cube.status.values.ravel().tolist()) <= {
            "ok",
            "not asked for",
            "precision not met",
        }
