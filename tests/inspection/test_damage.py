"""Damaged files are told in one line, and made again."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.inspection.conftest import Project

from manyserver.inspection.products import damaged_files, failed_products, remove_spoilt
from manyserver.study.running.progress import read_state
from manyserver.study.storage.damage import is_damaged
from manyserver.study.storage.locks import sole_run
from manyserver.study.storage.unit_file import read_unit

UNIT = "units/mean_field/sq-d-2_limit.jsonl"
FIGURES = [{"kind": "queue_tails", "name": "tails"}]
FILES = [UNIT, "cube.nc", "fits.csv", "figures/tails.png", "figures/tails.pdf"]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "cut by one byte": lambda content: content[:-1],
    "binary": lambda content: bytes(range(256)) * 20,
    "zeros": lambda content: bytes(len(content)),
    "one bit": flipped,
}
NOT_SEEN = {("one bit", "cube.nc"), ("one bit", "fits.csv"), ("one bit", "figures/tails.pdf")}
"""Formats without checksums, and a last byte that is an end of line."""
NOT_SEEN |= {("cut by one byte", "figures/tails.pdf")}


@pytest.fixture(scope="module")
def drawn_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The small project with a figure."""
    project = Project(tmp_path_factory.mktemp("drawn"))
    project.write(figures=FIGURES)
    project.build()
    folder = project.results / "small"
    draw(project)
    assert sorted(map(str, FILES)) == sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*.*")
        if path.suffix in (".jsonl", ".nc", ".csv", ".png", ".pdf")
    )
    return project


@pytest.fixture
def drawn(drawn_once: Project, tmp_path: Path) -> Project:
    """A copy of it."""
    shutil.copytree(drawn_once.folder, tmp_path, dirs_exist_ok=True)
    project = Project(tmp_path)
    project.write(figures=FIGURES)
    return project


def draw(project: Project, code: int = 0) -> str:
    folder = project.results / "small"
    where = (str(folder / "cube.nc"), str(folder / "figures"))
    return project.call("figures", "small", *where, "tails", code=code)


@pytest.mark.parametrize("file", FILES)
def test_what_is_damaged_is_told_and_removed(drawn: Project, file: str) -> None:
    path = drawn.results / "small" / file
    whole = path.read_bytes()
    assert not is_damaged(path)
    for name, damage in DAMAGE.items():
        path.write_bytes(damage(whole))
        if (name, file) in NOT_SEEN:
            continue
        assert damaged_files(drawn.plan, "small", drawn.results) == [path]
        said = drawn.ask("why", "small")
        assert f"  {path}: is damaged; the next run makes it again" in said
        assert "nothing to do" not in said[0]
        if file != UNIT:
            assert drawn.call("provenance", str(path), code=1) == f"{path}: is damaged\n"
        drawn.ask("status", "small")
        line = f"{path}: is damaged; it is made again"
        assert remove_spoilt(drawn.plan, drawn.results, only_tell=True) == [line]
        assert path.exists()
        assert remove_spoilt(drawn.plan, drawn.results) == [line]
        assert not path.exists()
    path.write_bytes(whole)
    assert remove_spoilt(drawn.plan, drawn.results) == []


def test_a_unit_that_lost_whole_lines_is_damaged(drawn: Project) -> None:
    path = drawn.results / "small" / UNIT
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert len(read_unit(path)) == 1
    assert damaged_files(drawn.plan, "small", drawn.results) == [path]


def test_commands_say_what_is_damaged_in_one_line(drawn: Project) -> None:
    folder = drawn.results / "small"
    unit, cube = folder / UNIT, folder / "cube.nc"
    intact = cube.read_bytes()
    unit.write_bytes(flipped(unit.read_bytes()))
    said = drawn.call("cube", "small", str(cube), str(unit), code=1)
    assert said.startswith(f"{unit}: line ")
    assert said.endswith(" is damaged; the next run makes it again\n")
    for damage in ("truncated", "binary", "empty"):
        cube.write_bytes(DAMAGE[damage](intact))
        said = drawn.call("diff", str(cube), str(cube), code=1)
        assert said.startswith(f"Error: {cube} and {cube} cannot be compared: ")
        assert said.count("\n") == 1
        # It is removed, so that the next run builds it again.
        assert draw(drawn, code=1).startswith(f"{cube}: is damaged, and was removed; run again (")
        assert not cube.exists()


def test_files_of_another_run_are_left_alone(drawn: Project) -> None:
    cube = drawn.results / "small" / "cube.nc"
    cube.write_bytes(b"")
    with sole_run(drawn.results):
        # In one process a lock would be its own.
        code = (
            "from pathlib import Path\nfrom manyserver.plan import Plan\n"
            "from manyserver.inspection.products import remove_spoilt\n"
            f"print(remove_spoilt(Plan(Path({str(drawn.folder / 'config')!r}), {{}}), "
            f"Path({str(drawn.results)!r})))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n"
    assert cube.exists()


@pytest.fixture
def failing(drawn: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The same, where drawing and fitting raise an error."""

    def fail(*arguments: object) -> None:
        raise ArithmeticError("no\nvalue \x07")

    monkeypatch.setattr("manyserver.figures.queue_tails.QueueTailsFigure.draw", fail)
    monkeypatch.setattr("manyserver.fits.tail_growth.TailGrowthFit.rows", fail)
    return drawn


def test_a_figure_and_a_fit_that_fail_are_failed_products(failing: Project) -> None:
    folder = failing.results / "small"
    cube, units = folder / "cube.nc", [str(folder / UNIT)]
    assert "ArithmeticError: no" in draw(failing)
    failing.call("fits", "small", str(cube), str(folder / "fits.csv"))
    reason = "ArithmeticError: no value \x07"
    table, figure = f"{folder}/fits.csv: tail_growth", f"{folder}/figures/tails.png"
    found = failed_products(failing.plan, "small", failing.results)
    assert found == {table: reason, figure: reason}
    assert not damaged_files(failing.plan, "small", failing.results)

    output = str(folder / "verified.txt")
    said = failing.call("verify", "small", output, *units, code=1)
    assert said.splitlines()[:5] == [
        "small: 2 points, none failed",
        "Failed products:",
        reason,
        f"  {table}",
        f"  {figure}",
    ]
    failing.call("verify", "--allow-failures", "small", output, *units)
    assert reason in Path(output).read_text()

    # Unless that is allowed, the next run makes them again.
    told = f"  fits.csv, figures/tails: failed before: {reason}"
    assert told in failing.ask("why", "small")
    failing.write(figures=[{"kind": "queue_tails", "name": "tails"}], allow_failures=True)
    assert remove_spoilt(failing.plan, failing.results) == []
    assert failing.ask("why", "small")[0].endswith("nothing to do")
    assert Path(figure).exists()
    failing.write(figures=[{"kind": "queue_tails", "name": "tails"}])
    assert remove_spoilt(failing.plan, failing.results) == []
    assert sorted(path.name for path in folder.glob("f*/*")) == []
    assert not (folder / "fits.csv").exists()


def test_a_wrong_bit_inside_a_cube_is_noticed_when_it_is_read(drawn: Project) -> None:
    cube = drawn.results / "small" / "cube.nc"
    content = bytearray(cube.read_bytes())
    # Compressed values begin so.
    place = content.index(b"\x78\x5e") + 8
    content[place : place + 8] = b"\xff" * 8
    cube.write_bytes(content)
    assert not is_damaged(cube)
    drawn.ask("status", "small")
    drawn.ask("why", "small")
    assert "is damaged, and was removed; run again" in draw(drawn, code=1)
    assert not cube.exists()


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff\xfe", b'{"total": 1, "other": 2}'])
def test_damaged_files_beside_the_results_do_no_harm(drawn: Project, content: bytes) -> None:
    state = drawn.results / "small" / "logs" / "unit.json"
    state.parent.mkdir()
    state.write_bytes(content)
    assert read_state(state) is None
    for path in drawn.results.glob("points/*/code.json"):
        path.write_bytes(content)
    (drawn.results / ".lock").write_bytes(content)
    with sole_run(drawn.results):
        assert drawn.ask("why", "small")[0].endswith("nothing to do")


def test_a_damaged_table_of_claims_is_made_again(drawn: "Project") -> None:
    drawn.ask("claims")
    path = drawn.results / "claims.csv"
    assert "built_from" in drawn.call("provenance", str(path))
    path.write_bytes(path.read_bytes()[:-50])
    assert remove_spoilt(drawn.plan, drawn.results) == [f"{path}: is damaged; it is made again"]
    assert not path.exists()
