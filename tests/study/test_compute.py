import errno
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from numba import njit

from manyserver.methods.mean_field import MeanField
from manyserver.study.points import Unit
from manyserver.study.running.compute import compiling_told, compute_unit
from manyserver.study.running.progress import Progress, State, read_state
from manyserver.study.storage.records import decode
from manyserver.study.storage.store import Store, WriteError
from manyserver.study.storage.unit_file import Header, expected_header, read_header, read_unit
from manyserver.study.study import read_study

UNIT = "mean_field/scheme1-d-2-2_limit"


class Run:
    """Computes units of a study into a folder and keeps what is said."""

    def __init__(self, folder: Path):
        self.store = Store(folder / "points")
        self.output = folder / "unit.jsonl"
        self.said: list[str] = []

    def __call__(self, unit: Unit, threads: int = 1) -> bytes:
        self.said.clear()
        compute_unit(unit, self.store, self.output, threads, self.said.append)
        return self.output.read_bytes()

    @property
    def last(self) -> str:
        return self.said[-1]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_unit_is_computed_once(write_study: Any, run: Run) -> None:
    unit = read_study(write_study()).units[UNIT]
    first = run(unit)
    assert run.last == "points: 2 computed, 0 reused, 0 failed, 0 left out"
    assert run.said[0].startswith("1 of 2 points, ")
    assert run.said[0].endswith(
        "for mean_field, system unequal, policy scheme1 d=(2,2), n_servers limit, arrival_rate 0.7"
    )
    assert run(unit) == first
    assert run.said == ["points: 0 computed, 2 reused, 0 failed, 0 left out"]


def test_the_file_does_not_depend_on_threads_or_on_the_store(
    write_study: Any, tmp_path: Path, run: Run
) -> None:
    unit = read_study(write_study()).units[UNIT]
    first = run(unit)
    assert Run(tmp_path / "other")(unit, threads=3) == first
    run(Unit("part", unit.points[1:]))
    assert run(unit) == first
    records = read_unit(run.output)
    assert [record.parameters for record in records] == [p.parameters for p in unit.points]


def test_only_new_points_are_computed(write_study: Any, run: Run) -> None:
    run(read_study(write_study()).units[UNIT])
    run(read_study(write_study({"sweep.arrival_rate": [0.5, 0.6, 0.7]})).units[UNIT])
    assert run.last == "points: 1 computed, 2 reused, 0 failed, 0 left out"
    run(read_study(write_study({"sweep.arrival_rate": [0.6]}, name="other")).units[UNIT])
    assert run.last == "points: 0 computed, 1 reused, 0 failed, 0 left out"


def test_a_damaged_point_is_computed_again(write_study: Any, run: Run) -> None:
    unit = read_study(write_study()).units[UNIT]
    first = run(unit)
    path = run.store.path(unit.points[0])
    path.write_text(path.read_text()[:-100])
    assert run(unit) == first
    assert run.said[-2:] == [
        "1 damaged line of the store was ignored",
        "points: 1 computed, 1 reused, 0 failed, 0 left out",
    ]


def test_points_that_another_job_computes_come_last_and_are_reused(
    write_study: Any, tmp_path: Path, run: Run
) -> None:
    unit = read_study(write_study({"unit": []})).units["mean_field/all"]
    other = Run(tmp_path / "other")
    other(unit)
    found = other.store.find(unit.points)
    waiting = threading.Event()

    def say(line: str) -> None:
        run.said.append(line)
        if line.startswith("waiting"):
            waiting.set()

    with run.store.claim(unit.points[0]), run.store.claim(unit.points[3]):
        job = threading.Thread(target=compute_unit, args=(unit, run.store, run.output, 1, say))
        job.start()
        assert waiting.wait(timeout=60)
        for point in (unit.points[0], unit.points[3]):
            Store(run.store.folder).append(point, found[point.id], seconds=0.0)
    job.join()
    assert [line.split(" points, ")[0] for line in run.said] == [
        "1 of 4",
        "2 of 4",
        "waiting for another job that computes the same points",
        "points: 2 computed, 2 reused, 0 failed, 0 left out",
    ]


def test_two_jobs_share_the_points_of_one_cell(write_study: Any, tmp_path: Path, run: Run) -> None:
    changes = {"policies": [{"name": "sq", "d": 2}], "sweep.arrival_rate": [0.2, 0.4, 0.6, 0.8]}
    (unit,) = read_study(write_study(changes)).units.values()
    others = [Run(tmp_path), Run(tmp_path)]
    states: list[State] = []

    def job(run: Run, file: str) -> None:
        output = tmp_path / file
        states.append(compute_unit(unit, run.store, output, 1, lambda line: None))

    jobs = [
        threading.Thread(target=job, args=(other, f"{i}.jsonl")) for i, other in enumerate(others)
    ]
    for thread in jobs:
        thread.start()
    for thread in jobs:
        thread.join()
    assert sum(state.computed for state in states) == 4
    assert sum(state.reused for state in states) == 4
    assert (tmp_path / "0.jsonl").read_bytes() == (tmp_path / "1.jsonl").read_bytes()
    assert list(run.store.path(unit.points[0]).parent.glob("claims/*")) == []


@pytest.mark.parametrize("damaged", [False, True])
def test_replications_of_an_earlier_request_are_reused(
    damaged: bool, write_study: Any, tmp_path: Path, run: Run
) -> None:
    def unit(options: dict[str, Any]) -> Unit:
        changes = {"policies": [{"name": "sq", "d": 2}], "sweep.n_servers": [10]}
        study = read_study(write_study({**changes, "methods": {"simulation": options}}))
        return next(iter(study.units.values()))

    first, more = unit({"precision": 0.1}), unit({"precision": 0.1, "replications": 40})
    fresh = Run(tmp_path / "fresh")(more)
    run(first)
    assert run.last == "points: 2 computed, 0 reused, 0 failed, 0 left out"
    kept = run.store.side_file(first.points[0])
    assert kept == run.store.side_file(more.points[0]) and kept.exists()
    if damaged:
        content = bytearray(kept.read_bytes())
        content[len(content) // 2] ^= 1
        kept.write_bytes(content)
    assert run(more) == fresh
    again = "32 of 80" if damaged else "64 of 80"
    assert run.last == (
        f"points: 2 computed ({again} replications reused), 0 reused, 0 failed, 0 left out"
    )
    assert run.said[0].endswith(", 32 of 40 replications reused")
    # What the smaller request rested on is still there.
    again_first = unit({"precision": 0.2})
    run(again_first)
    assert "(64 of 64 replications reused)" in run.last


def test_points_of_one_family_are_claimed_together(write_study: Any, tmp_path: Path) -> None:
    def point(options: dict[str, Any]) -> Any:
        changes = {"sweep.n_servers": [10], "methods": {"simulation": options}}
        return read_study(write_study(changes)).points[0]

    one, other, apart = (
        point(options) for options in ({"precision": 0.1}, {"precision": 0.2}, {"horizon": 9.0})
    )
    assert one.id != other.id
    assert one.family == other.family != apart.family
    store = Store(tmp_path)
    with store.claim(one), store.claim(other) as held, store.claim(apart) as free:
        assert (held, free) == (False, True)


def test_unstable_points_are_left_out(write_study: Any, run: Run) -> None:
    skewed = [{"fraction": "1/2", "speed": "1/5"}, {"fraction": "1/2", "speed": "9/5"}]
    changes = {
        "systems.unequal.pools": skewed,
        "policies": [{"name": "sq", "d": 2}],
        "sweep.arrival_rate": [0.3, 0.5],
        "unstable": "skip",
    }
    (unit,) = read_study(write_study(changes)).units.values()
    run(unit)
    assert run.last == "points: 1 computed, 0 reused, 0 failed, 1 left out"
    assert len(read_unit(run.output)) == 1


def test_a_point_that_fails_costs_no_other(
    write_study: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = read_study(write_study()).units[UNIT]
    compute = MeanField.compute

    def fail(self: MeanField, problem: Any, *arguments: Any) -> Any:
        if problem.system.arrival_rate == 0.7:
            raise RuntimeError("no solution")
        return compute(self, problem, *arguments)

    monkeypatch.setattr(MeanField, "compute", fail)
    run(unit)
    name = "mean_field, system unequal, policy scheme1 d=(2,2), n_servers limit, arrival_rate 0.7"
    assert run.said[0] == f"failed: {name}: RuntimeError: no solution"
    assert run.last == "points: 1 computed, 0 reused, 1 failed, 0 left out"
    assert [record.notes.get("status") for record in read_unit(run.output)] == [None, "failed"]
    assert read_header(run.output) == Header(unit.summary, unit.code, failed=1)
    assert len(run.store.find(unit.points)) == 1
    monkeypatch.undo()
    run(unit)
    assert run.last == "points: 1 computed, 1 reused, 0 failed, 0 left out"
    assert read_header(run.output) == expected_header(unit)


def test_others_can_read_how_far_a_unit_is(write_study: Any, tmp_path: Path) -> None:
    unit = read_study(write_study()).units[UNIT]
    path = tmp_path / "unit.json"
    seen: list[State | None] = []

    def say(line: str) -> None:
        seen.append(read_state(path))

    assert read_state(path) is None
    state = compute_unit(unit, Store(tmp_path / "points"), tmp_path / "u.jsonl", 1, say, path)
    assert seen[0] is not None and seen[0].total == 2
    assert read_state(path) == state == State(total=2, computed=2)


def test_a_point_that_takes_long_is_seen_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyserver.study.running.progress.SECONDS", 0.1)
    path = tmp_path / "unit.json"
    progress = Progress(lambda line: None, path)
    progress.begin(total=2, reused=0, left_out=0)
    # At once, so that it is not written at once.
    progress.start("a long one")
    while (state := read_state(path)) is None or "a long one" not in state.running:
        time.sleep(0.01)
    progress.end()


def test_compiling_is_told_once_with_all_that_a_kernel_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    progress = Progress(lambda line: None)
    told: list[bool] = []
    monkeypatch.setattr(progress, "compiling", told.append)

    @njit
    def inner(x: float) -> float:
        return x + 1

    @njit
    def outer(x: float) -> float:
        return inner(x) * inner(2.0 * x)  # type: ignore[no-any-return]

    with compiling_told("mean_field", progress):
        inner(1)
    assert told == []
    with compiling_told("simulation", progress):
        assert outer(1.0) == 6.0
        assert outer(2.0) == 15.0
    assert told == [True, False]
    inner(True)
    assert told == [True, False]


def test_the_time_left_does_not_count_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("manyserver.study.running.progress.time.monotonic", lambda: now)
    said: list[str] = []
    progress = Progress(said.append)
    progress.begin(total=10, reused=0, left_out=0)
    now = 1.0
    progress.compiling(True)
    assert progress.state.compiling == 1
    now = 21.0
    assert progress.compiled == 20.0
    progress.compiling(False)
    now = 23.0
    progress.computed("a point", seconds=3.0, compiled=20.0)
    assert (progress.state.compiling, progress.state.seconds) == (0, 3.0)
    now = 24.0
    progress.computed("another", seconds=1.0)
    now = 26.0
    progress.computed("another", seconds=1.0)
    assert said == [
        "1 of 10 points, 0.33 per second; 3.00 s for a point, after 20 s of compiling",
        "2 of 10 points, 0.5 per second; 1.00 s for another",
        "3 of 10 points, 0.5 per second, about 14 s left; 1.00 s for another",
    ]


@pytest.mark.parametrize("full", ["append", "unit file"])
def test_a_full_disk_is_told_and_stops_the_unit(
    full: str, write_study: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = read_study(write_study()).units[UNIT]
    target = "os.write" if full == "append" else "manyserver.study.storage.unit_file.seal"
    monkeypatch.setattr(target, _no_space)
    with pytest.raises(WriteError, match=r"cannot write .*: No space left on device"):
        run(unit)
    assert not run.output.exists()
    monkeypatch.undo()
    run(unit)
    stored = 0 if full == "append" else 2
    assert run.last == f"points: {2 - stored} computed, {stored} reused, 0 failed, 0 left out"


def _no_space(*arguments: Any, **keywords: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_that_cannot_grow_keeps_whole_lines(write_study: Any, tmp_path: Path) -> None:
    # A real limit of the kernel, which lets part of a line be written.
    path = write_study({"sweep.arrival_rate": [0.05 * k for k in range(1, 16)]})
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); "
        "from manyserver.__main__ import main; main()"
    )
    arguments = ["--config", str(path.parents[1]), "unit", "small", UNIT, "unit.jsonl"]
    said = subprocess.run(
        # Without -B the limit would also cut bytecode short, unnoticed by Python.
        [sys.executable, "-B", "-c", code, *arguments, "--store", "points"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert said.returncode == 1
    assert "cannot write points/" in said.stderr and "intact" in said.stderr
    (file,) = (tmp_path / "points").glob("*/*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    assert 1 <= len(lines) < 15
    assert [decode(line) is None for line in lines] == [False] * len(lines)
    assert not (tmp_path / "unit.jsonl").exists()


def test_a_damaged_unit_file_is_refused(write_study: Any, run: Run) -> None:
    run(read_study(write_study()).units[UNIT])
    run.output.write_text(run.output.read_text()[:-100])
    with pytest.raises(ValueError) as caught:
        read_unit(run.output)
    assert str(caught.value) == (f"{run.output}: line 3 is damaged; the next run makes it again")


def test_numba_is_not_imported_before_its_cache_is_chosen() -> None:
    code = "import sys, manyserver.__main__, manyserver.plan; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
