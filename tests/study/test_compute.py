import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from manyserver.study.compute import FailedPoints, compute_unit, read_unit
from manyserver.study.methods import mean_field
from manyserver.study.points import Unit
from manyserver.study.store import Store
from manyserver.study.sweep import read_study

UNIT = "mean_field_scheme1-d-2-2_limit"


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
    assert run.last == "points: 2 computed, 0 reused, 0 left out"
    assert run.said[0].startswith("1 of 2 points, about ")
    assert run.said[0].endswith(
        "for mean_field, system unequal, policy scheme1 d=(2,2), n_servers limit, arrival_rate 0.7"
    )
    assert run(unit) == first
    assert run.said == ["points: 0 computed, 2 reused, 0 left out"]


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
    assert run.last == "points: 1 computed, 2 reused, 0 left out"
    run(read_study(write_study({"sweep.arrival_rate": [0.6]}, name="other")).units[UNIT])
    assert run.last == "points: 0 computed, 1 reused, 0 left out"


def test_a_damaged_point_is_computed_again(write_study: Any, run: Run) -> None:
    unit = read_study(write_study()).units[UNIT]
    first = run(unit)
    path = run.store.path(unit.points[0])
    path.write_text(path.read_text()[:-100])
    assert run(unit) == first
    assert run.said[-2:] == [
        "1 damaged line of the store was ignored",
        "points: 1 computed, 1 reused, 0 left out",
    ]


def test_points_that_another_job_computes_come_last_and_are_reused(
    write_study: Any, tmp_path: Path, run: Run
) -> None:
    unit = read_study(write_study({"unit": []})).units["mean_field"]
    other = Run(tmp_path / "other")
    other(unit)
    found = other.store.find(unit.points)
    waiting = threading.Event()

    def say(line: str) -> None:
        run.said.append(line)
        if line.startswith("waiting"):
            waiting.set()

    with run.store.writing(unit.points[0], wait=True):
        job = threading.Thread(target=compute_unit, args=(unit, run.store, run.output, 1, say))
        job.start()
        assert waiting.wait(timeout=60)
        for point in unit.points[:2]:
            run.store.append(point, found[point.id], seconds=0.0)
    job.join()
    assert [line.split(", about")[0] for line in run.said] == [
        "1 of 4 points",
        "2 of 4 points",
        "waiting for another job that computes the same points",
        "points: 2 computed, 2 reused, 0 left out",
    ]


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
    assert run.last == "points: 1 computed, 0 reused, 1 left out"
    assert len(read_unit(run.output)) == 1


def test_a_point_that_fails_costs_no_other(
    write_study: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = read_study(write_study()).units[UNIT]
    compute = mean_field.compute

    def fail(system: Any, *arguments: Any) -> Any:
        if system.arrival_rate == 0.7:
            raise RuntimeError("no solution")
        return compute(system, *arguments)

    monkeypatch.setattr(mean_field, "compute", fail)
    with pytest.raises(FailedPoints) as caught:
        run(unit)
    assert str(caught.value).splitlines() == [
        "1 of 2 points failed; the others are kept",
        "mean_field, system unequal, policy scheme1 d=(2,2), n_servers limit, arrival_rate 0.7: "
        "RuntimeError: no solution",
    ]
    assert not run.output.exists()
    monkeypatch.undo()
    run(unit)
    assert run.last == "points: 1 computed, 1 reused, 0 left out"


def test_a_damaged_unit_file_is_refused(write_study: Any, run: Run) -> None:
    run(read_study(write_study()).units[UNIT])
    run.output.write_text(run.output.read_text()[:-100])
    with pytest.raises(ValueError) as caught:
        read_unit(run.output)
    assert str(caught.value) == (f"{run.output}: line 2 is damaged; delete the file and run again")


def test_numba_is_not_imported_before_its_cache_is_chosen() -> None:
    code = "import sys, manyserver.__main__, manyserver.plan; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
