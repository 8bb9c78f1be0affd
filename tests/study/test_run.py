import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from manyserver.study.running import run as run_module
from manyserver.study.running.cost import Expected, time_left
from manyserver.study.running.progress import Progress, State, read_state
from manyserver.study.running.run import Run, state_file
from manyserver.study.storage.locks import FolderInUse

UNITS = {
    ("small", "one"): Expected(3, "mean_field", None),
    ("small", "two"): Expected(2, "exact", 0.5),
}


def tell(results: Path, unit: str, failed: bool = False) -> None:
    """Write what a unit of one point writes."""
    progress = Progress(lambda line: None, state_file(results, "small", unit))
    progress.begin(total=1, reused=0, left_out=1)
    if failed:
        progress.failed("a point", "ValueError: no")
    else:
        progress.computed("a point", 1.0)
    progress.end()


def test_a_run_sums_up_its_units(tmp_path: Path) -> None:
    run = Run(tmp_path)
    tell(tmp_path, "one")
    run.start(UNITS)
    assert read_state(state_file(tmp_path, "small", "one")) is None
    tell(tmp_path, "one", failed=True)
    tell(tmp_path, "two")
    first, *table = run.finish().splitlines()
    assert first.startswith("points: 1 computed, 0 reused, 1 failed, 2 left out, in ")
    assert first.endswith("; 3 not reached")
    assert table == ["Failed points:", "ValueError: no", "  small: a point"]


def test_the_end_of_a_run_names_what_it_built(tmp_path: Path) -> None:
    products = [
        f"{study}/{name}"
        for study in ("second", "first")
        for name in ("cube.nc", "fits.csv", *(f"figures/{figure}.png" for figure in "abcd"))
    ]
    for file in products:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "first" / "cube.nc").touch()
    redrawn, kept = (tmp_path / "first" / "figures" / f"{figure}.png" for figure in "cd")
    redrawn.touch()
    kept.touch()
    run = Run(tmp_path)
    run.start({}, products)
    for file in ("second/cube.nc", "second/fits.csv", *(f"second/figures/{f}.png" for f in "abcd")):
        (tmp_path / file).touch()
    redrawn.write_bytes(b"other")
    os.utime(kept, ns=(1, 1))
    assert run.finish().splitlines()[1:] == [
        "Built:",
        f"  {tmp_path}/second: cube.nc, fits.csv, figures/a.png, .pdf, figures/b.png, .pdf, "
        "figures/c.png, .pdf, and 1 more in figures/",
        f"  {tmp_path}/first: figures/c.png, .pdf",
        f"Look first at {tmp_path}/second/figures/a.png. {tmp_path}/README.md describes all files.",
    ]


def test_the_time_left_comes_from_what_is_known() -> None:
    """From the unit itself, then from its method, then from the store, else it is not known."""
    units = {("a", name): Expected(10, "simulation", None) for name in ("one", "two")}
    one = State(total=10, computed=4, seconds=2.0, running={"a point": 0.0, "another": 0.0})
    assert time_left(units, {}) == (0.0, False)
    # Two points at a time: 6 and 10 points of half a second.
    assert time_left(units, {("a", "one"): one}) == (4.0, True)
    units["b", "three"] = Expected(2, "exact", 3.0)
    assert time_left(units, {("a", "one"): one}) == (7.0, True)
    units["b", "four"] = Expected(1, "fluid", None)
    assert time_left(units, {("a", "one"): one}) == (7.0, False)
    done = {name: State(total=n.points, computed=n.points) for name, n in units.items()}
    assert time_left(units, done) == (0.0, True)


def test_a_run_lists_products_that_failed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.start({})
    said = run.finish({"small/fits.csv: decay": "ValueError: no", "a.png": "ValueError: no"})
    assert said.splitlines()[1:] == [
        "Failed products:",
        "ValueError: no",
        "  small/fits.csv: decay",
        "  a.png",
    ]


def test_one_run_at_a_time(tmp_path: Path) -> None:
    first, second = Run(tmp_path), Run(tmp_path)
    first.start({})
    with pytest.raises(FolderInUse, match=f"another run .* .process {os.getpid()} on"):
        second.start({})
    first.finish()
    second.start({})
    second.finish()


def test_a_run_tells_its_progress_in_plain_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_module, "PLAIN_SECONDS", 0.01)
    run = Run(tmp_path)
    run.start(UNITS)
    tell(tmp_path, "one")
    said = ""
    while "1 of 5 points" not in said:
        said += capsys.readouterr().err
    run.finish()
    assert "\x1b" not in said and "\r" not in said


LIVE = """
import logging, sys, time
from pathlib import Path
from manyserver.study.running import run as module
from tests.study.test_run import UNITS, tell

module.LIVE_SECONDS = 0.05
logger = logging.getLogger("other")
logger.addHandler(logging.StreamHandler())
run = module.Run(Path(sys.argv[1]))
run.start(UNITS)
folder = Path(sys.argv[1])
tell(folder, "one")


def wait_for(name):
    while not (folder / name).exists():
        time.sleep(0.01)


wait_for("go")
logger.warning("something is logged")
wait_for("on")
run.finish()
logger.warning("the end")
"""


def test_a_terminal_has_one_line_below_what_is_logged(tmp_path: Path) -> None:
    parent, child = pty.openpty()
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", "TERM": "xterm"}
    command = [sys.executable, "-c", LIVE, str(tmp_path)]
    process = subprocess.Popen(command, stderr=child, env=environment)
    os.close(child)
    said = read_until(parent, b"1 of 5 points")
    (tmp_path / "go").touch()
    before, after = (said + read_until(parent, b"something is logged")).split(b"something")
    after += read_until(parent, b"1 of 5 points")
    (tmp_path / "on").touch()
    after += read_until(parent, b"the end")
    assert process.wait() == 0
    os.close(parent)
    # The line is wiped out before anything is logged, and at the end.
    assert b"\x1b[2K" in before
    assert b"\x1b[2K" in after[after.rindex(b"1 of 5 points") :]


def read_until(terminal: int, text: bytes) -> bytes:
    said = b""
    while text not in said:
        said += os.read(terminal, 4096)
    return said


def test_sums_keep_apart_what_studies_call_alike() -> None:
    total = State.sum([State(total=2, failed={"a": "x"}), State(total=1, reused=1)])
    assert (total.total, total.done) == (3, 2)
