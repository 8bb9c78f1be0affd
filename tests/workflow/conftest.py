import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STUDY = Path(__file__).with_name("tiny.yaml")
REPLICATIONS = re.compile(r"^points: \d+ computed \((\d+) of (\d+) replications", re.MULTILINE)
POINTS = re.compile(
    r"^points: (\d+) computed(?: \(.*\))?, (\d+) reused, (\d+) failed", re.MULTILINE
)


class Project:
    """A copy of the workflow with one tiny study, in a folder of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.study = folder / "config" / "studies" / "tiny.yaml"
        self.path = [str(folder / "src")]

    @classmethod
    def new(cls, folder: Path) -> "Project":
        project = cls(folder)
        for name in ("workflow", "profiles"):
            shutil.copytree(ROOT / name, folder / name)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy(ROOT / name, folder)
        project.study.parent.mkdir(parents=True)
        (folder / "config" / "config.yaml").write_text("studies: all\n")
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

    def edit(self, old: str, new: str, file: str = "") -> None:
        """Replace a text in the study, or in another file of the project."""
        path = self.folder / file if file else self.study
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def copy_source(self) -> None:
        """Make the code of the package a copy, to be edited."""
        source = self.folder / "src"
        source.unlink()
        # With its bytecode.
        shutil.copytree(ROOT / "src", source)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(self.path)}
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
        return self.run("snakemake", "--cores", "2", *arguments, code=code)

    def computed(self, *arguments: str, code: int = 0) -> tuple[int, ...]:
        """Points computed, reused and failed by a run, as its last lines say."""
        return totals(self.snakemake(*arguments, code=code))

    def ask(self, verb: str, *arguments: str) -> list[str]:
        """Lines of a command that looks at the results."""
        return self.run("manyserver", verb, *arguments).splitlines()

    def stored(self) -> int:
        """Lines in the store."""
        files = self.folder.glob("results/points/*/*.jsonl")
        return sum(len(file.read_bytes().splitlines()) for file in files)


def totals(said: str) -> tuple[int, ...]:
    """Points computed, reused and failed, as the last such line says; zeros if there is none."""
    found = POINTS.findall(said)
    return tuple(int(count) for count in found[-1]) if found else (0, 0, 0)


def replications(said: str) -> tuple[int, int]:
    """Replications that were reused, and all, as the last such line says."""
    reused, needed = REPLICATIONS.findall(said)[-1]
    return int(reused), int(needed)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """A project after its first run, and what was said; copy it before changing anything."""
    project = Project.new(tmp_path_factory.mktemp("finished") / "project")
    return project, project.snakemake()


@pytest.fixture
def new_project(tmp_path: Path) -> Callable[[], Project]:
    """Make a project that has not been run."""
    return lambda: Project.new(tmp_path / "project")
