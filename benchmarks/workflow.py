"""What the workflow costs beside the points: CPU time, memory, and the time of its answers.

A method that burns a given CPU time is added to a copy of the project, and Snakemake builds a study
of it. CPU times hardly depend on what else the machine does; wall times do.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
METHOD = '''"""Burn CPU time, for a benchmark."""

from hashlib import pbkdf2_hmac
from time import thread_time
from typing import Any

from pydantic import BaseModel, ConfigDict

TITLE = "Nothing, slowly."
RANDOM = True
STARTS_FROM = ()


class Options(BaseModel):
    """How long."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    milliseconds: float = 1.0


def applies(system: Any) -> bool:
    """Every system."""
    return True


def refusal(system: Any, policy: Any, options: Options) -> str:
    """Never."""
    return ""


def compute(system: Any, policy: Any, options: Options, seed: int) -> Any:
    """Burn, and return as much as a simulation does."""
    import numpy as np

    from manyserver.variables import labelled

    began = thread_time()
    while thread_time() - began < options.milliseconds / 1000:
        pbkdf2_hmac("sha256", b"", b"", 100)
    tail = np.geomspace(1, 1e-12, 30)[np.newaxis].repeat(2, axis=0)
    values = {"sojourn_mean": 1.0 + seed % 1000 / 1000, "queue_tail": tail}
    widths = {f"{name}_half_width": 0.001 * np.asarray(value) for name, value in values.items()}
    return labelled(values | widths, system)
'''


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds on the clock and of CPU, and the largest process in MiB."""

    wall: float
    cpu: float
    memory: float


class Project:
    """A copy of the project with one synthetic study."""

    def __init__(self, folder: Path, points: int, milliseconds: float):
        self.folder = folder
        for name in ("workflow", "profiles", "src"):
            shutil.copytree(ROOT / name, folder / name)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy(ROOT / name, folder)
        method = folder / "src" / "manyserver" / "study" / "methods" / "synthetic.py"
        method.write_text(METHOD)
        (folder / "config" / "studies").mkdir(parents=True)
        (folder / "config" / "config.yaml").write_text("studies: all\n")
        study = {
            "title": "Synthetic",
            "systems": {
                "two": {"pools": [{"fraction": "1/2", "speed": s} for s in ("2/3", "4/3")]}
            },
            "policies": [{"name": "scheme1", "d": [d, d]} for d in range(1, 6)],
            "sweep": {
                "load": {"start": 0.1, "stop": 0.9, "count": points // 50},
                "n_servers": [10 * 2**i for i in range(10)],
            },
            "methods": {"synthetic": {"milliseconds": milliseconds}},
        }
        (folder / "config" / "studies" / "synthetic.yaml").write_text(json.dumps(study))

    def run(self, *arguments: str) -> Cost:
        """Run a module of Python."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(self.folder / "src")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self.folder,
            env=environment,
            check=True,
            capture_output=True,
        )
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Cost(wall, cpu, after.ru_maxrss / 1024)


def main() -> None:
    """Build the study, ask about it, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=5000, help="a multiple of 50 (default 5000)")
    parser.add_argument("--milliseconds", type=float, default=10.0, help="of one point")
    parser.add_argument("--cores", default="2")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project", chosen.points, chosen.milliseconds)
        project.run("manyserver", "check")  # keeps the bytecode
        built = project.run("snakemake", "--cores", chosen.cores)
        pure = chosen.points * chosen.milliseconds / 1000
        extra = (built.cpu - pure) / chosen.points
        print(f"{chosen.points} points of {chosen.milliseconds:g} ms on {chosen.cores} cores")
        print(
            f"build      {built.wall:7.1f} s, {built.cpu:.1f} s of CPU time, {pure:.1f} s of points"
        )
        print(
            f"overhead   {1000 * extra:7.2f} ms of CPU time a point: "
            f"{100 * extra:.2f} % of points of one second"
        )
        print(f"memory     {built.memory:7.0f} MiB, the largest process")
        answers = {
            "dry run": ("snakemake", "--cores", chosen.cores, "--dry-run"),
            "why": ("manyserver", "why"),
            "status": ("manyserver", "status"),
            "clean": ("manyserver", "clean", "--unreferenced", "--yes"),
        }
        for name, command in answers.items():
            cost = project.run(*command)
            print(f"{name:10} {cost.wall:7.1f} s, {cost.cpu:.1f} s of CPU time")
        began = time.perf_counter()
        import xarray as xr

        imported = time.perf_counter()
        with xr.open_dataset(project.folder / "results" / "synthetic" / "cube.nc") as cube:
            opened = time.perf_counter()
            float(cube.sojourn_mean[0, 0, 0, 0, 0])
        read = time.perf_counter()
        print(f"open cube  {opened - imported:7.2f} s, one value {read - opened:.3f} s")
        print(f"           {imported - began:7.2f} s to import xarray")


if __name__ == "__main__":
    main()
