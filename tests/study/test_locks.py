import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from manyserver.study.storage.locks import FolderInUse, claimed, locked, sole_run

SOURCE = Path(__file__).parents[2] / "src"
HOLD = """
import sys
from pathlib import Path
from manyserver.study.storage.locks import claimed, sole_run

with sole_run(Path(sys.argv[1])), claimed(Path(sys.argv[1]) / "claim", wait=False) as held:
    print(held, flush=True)
    sys.stdin.read()
"""

WALK = """
import sys

sys.modules |= dict.fromkeys(("fcntl", "grp", "pwd", "resource", "termios"))
from importlib import import_module
from pkgutil import walk_packages

import manyserver

found = [module.name for module in walk_packages(manyserver.__path__, "manyserver.")]
for name in found:
    if not name.endswith("__main__"):
        import_module(name)
print("manyserver.study.storage.locks" in found)
"""


def run(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Run a program that can import the package."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )


def test_nothing_that_is_imported_needs_posix() -> None:
    said, _ = run(WALK).communicate()
    assert said == b"True\n"


def test_locks_end_with_the_process_that_holds_them(tmp_path: Path) -> None:
    other = run(HOLD, str(tmp_path))
    assert other.stdout is not None and other.stdin is not None
    assert other.stdout.readline() == b"True\n"
    with claimed(tmp_path / "claim", wait=False) as held:
        assert held is False
    with pytest.raises(FolderInUse, match=f"process {other.pid} on "), sole_run(tmp_path):
        pass
    other.kill()
    other.wait()
    other.stdin.close()
    other.stdout.close()
    # Its file is still there, but means nothing.
    assert (tmp_path / "claim").exists()
    with sole_run(tmp_path), claimed(tmp_path / "claim", wait=False) as held:
        assert held is True
    assert not (tmp_path / "claim").exists()


def test_lines_of_many_writers_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lines"

    def write(letter: bytes) -> None:
        for _ in range(50):
            with locked(path) as stream:
                stream.write(letter * 50)
                stream.write(letter * 50 + b"\n")

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = path.read_bytes().splitlines()
    assert sorted(lines) == sorted(letter * 100 for letter in (b"a", b"b", b"c") for _ in range(50))
