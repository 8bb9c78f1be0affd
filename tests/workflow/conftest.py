import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUDY = Path(__file__).with_name("tiny.yaml")
POINTS = re.compile(r"^points: (\d+) computed, (\d+) reused", re.MULTILINE)


class Project:
    """A copy of the workflow with one tiny study, in a folder of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.study = folder / "config" / "studies" / "tiny.yaml"

    @classmethod
    def new(cls, folder: Path) -> "Project":
        project = cls(folder)
        for name in ("workflow", "profiles"):
            shutil.copytree(ROOT / name, folder / name)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy(ROOT / name, folder)
        project.study.parent.mkdir(parents=True)
        shutil.copy(ROOT / "config" / "config.yaml", folder / "config")
        shutil.copy(STUDY, project.study)
        # Links, so that numba finds the machine code that earlier runs compiled.
        (folder / "src").symlink_to(ROOT / "src")
        (ROOT / ".cache").mkdir(exist_ok=True)
        (folder / ".cache").symlink_to(ROOT / ".cache")
        return project

    def copied(self, folder: Path) -> "Project":
        """The same project, with its results, elsewhere."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)

    def edit(self, old: str, new: str) -> None:
        text = self.study.read_text()
        assert old in text
        self.study.write_text(text.replace(old, new))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(self.folder / "src")}
        # Snakemake starts twice as fast with its bytecode at hand.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a module of Python and return what it prints."""
        process = self.start(*arguments)
        said, _ = process.communicate(timeout=240)
        assert process.returncode == code, said
        return said

    def snakemake(self, *arguments: str, code: int = 0) -> str:
        """Run Snakemake on two cores and return what it prints."""
        for log in self.folder.glob("results/*/logs/*.log"):
            log.unlink()
        return self.run("snakemake", "--cores", "2", *arguments, code=code)

    @property
    def counts(self) -> tuple[int, int]:
        """Points computed and reused by the last run."""
        logs = "\n".join(log.read_text() for log in self.folder.glob("results/*/logs/*.log"))
        found = POINTS.findall(logs)
        return sum(int(done) for done, _ in found), sum(int(kept) for _, kept in found)

    def stored(self) -> int:
        """Lines in the store."""
        files = self.folder.glob("results/points/*/*.jsonl")
        return sum(len(file.read_bytes().splitlines()) for file in files)

    def stop_when_stored(self, process: subprocess.Popen[str], signal_: signal.Signals) -> None:
        """Send a signal to a process and its children once the store has a point."""
        deadline = time.monotonic() + 120
        while self.stored() == 0:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal_)
        process.communicate(timeout=60)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """A project after its first run, and what was said; copy it before changing anything."""
    project = Project.new(tmp_path_factory.mktemp("finished") / "project")
    return project, project.snakemake()


@pytest.fixture
def new_project(tmp_path: Path) -> Callable[[], Project]:
    """Make a project that has not been run."""
    return lambda: Project.new(tmp_path / "project")
