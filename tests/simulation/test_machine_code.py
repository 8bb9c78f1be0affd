import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
from manyserver.machine_code import njit


@njit(cache=True)
def double(x):
    return 2 * x


print(double(21), sum(double.stats.cache_hits.values()))
"""
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "cut by one byte": lambda content: content[:-1],
    "garbage": lambda content: bytes(range(256)) * 8,
    "one bit": lambda content: (
        content[: len(content) // 2]
        + bytes([content[len(content) // 2] ^ 4])
        + content[len(content) // 2 + 1 :]
    ),
    "without checksum": lambda content: content[:-32],
}


# Runs the module for every line that it reads: importing numba takes most of the time.
AGAIN = """
import runpy
import sys

for line in sys.stdin:
    runpy.run_path("module.py", run_name="__main__")
"""


def start(folder: Path, *arguments: str, source: Path = ROOT / "src") -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "PYTHONUNBUFFERED": "1",
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    command, pipe = [sys.executable, *arguments], subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=folder, env=environment
    )


def run(folder: Path, *arguments: str, source: Path = ROOT / "src") -> str:
    with start(folder, *arguments, source=source) as process:
        said, _ = process.communicate()
    assert process.returncode == 0
    return said


@pytest.fixture
def doubled(tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Run the module, and return what it prints."""
    (tmp_path / "module.py").write_text(MODULE)
    with start(tmp_path, "-c", AGAIN) as process:
        assert process.stdin is not None and process.stdout is not None
        asked, told = process.stdin, process.stdout

        def again() -> str:
            asked.write("again\n")
            asked.flush()
            return told.readline()

        yield again


def test_damaged_files_are_compiled_again(tmp_path: Path, doubled: Callable[[], str]) -> None:
    assert doubled() == "42 0\n"
    assert doubled() == "42 1\n"
    files = sorted(path for path in tmp_path.glob("cache/**/*") if path.is_file())
    assert [path.suffix for path in files] == [".nbc", ".nbi"]
    for path in files:
        for damage in DAMAGE.values():
            path.write_bytes(damage(path.read_bytes()))
            assert doubled() == "42 0\n"
    # What numba leaves beside a damaged index is used no more, and nothing is left behind.
    assert doubled() == "42 1\n"
    # Another process finds the same.
    assert run(tmp_path, "module.py") == "42 1\n"
    assert sorted(path for path in tmp_path.glob("cache/**/*") if path.is_file()) == files


def test_a_unit_does_not_mind_a_damaged_cache(tmp_path: Path) -> None:
    study = tmp_path / "config" / "studies" / "small.yaml"
    study.parent.mkdir(parents=True)
    study.write_text(
        "title: Small\nmodel: halfin_whitt\nsweep: {beta: 1, n_servers: 10}\n"
        "methods: {chain_simulation: {horizon: 2000}}\n"
    )
    output = tmp_path / "unit.jsonl"
    command = ("-m", "manyserver", "unit", "small", "chain_simulation/beta1", str(output))
    assert "1 computed, 0 reused, 0 failed" in run(tmp_path, *command)
    before = output.read_bytes()
    for name in ("truncated", "garbage"):
        files = [path for path in tmp_path.glob(".cache/numba/**/*.nb*") if path.is_file()]
        assert files
        for path in files:
            path.write_bytes(DAMAGE[name](path.read_bytes()))
        for store in tmp_path.glob("results/points/*/*.jsonl"):
            store.unlink()
        assert "1 computed, 0 reused, 0 failed" in run(tmp_path, *command)
        assert output.read_bytes() == before


def test_no_other_module_compiles() -> None:
    others = [
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if "numba.njit" in (text := path.read_text()) or "from numba import njit" in text
    ]
    assert others == ["machine_code.py"]


def test_a_change_in_what_is_compiled_into_others_is_seen(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MODULE)
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    kernels, other = (
        source / "manyserver" / name for name in ("simulation/observations.py", "model.py")
    )
    for changed, hits in ((None, 0), (None, 1), (kernels, 0), (None, 1), (other, 1)):
        if changed:
            changed.write_text(changed.read_text() + "\nMORE = 1\n")
        assert run(tmp_path, "module.py", source=source) == f"42 {hits}\n"
