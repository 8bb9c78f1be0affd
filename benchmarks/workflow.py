"""What the workflow costs beside the points.

A method that burns a given CPU time is added to a copy of the project, and Snakemake builds a study
of it. CPU times hardly depend on what else the machine does; wall times do.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.driver import Row, benchmark

LOADS = 100
POLICIES = 5
ROUNDS = 5
MILLISECONDS = 10.0
ROOT = Path(__file__).parents[1]
METHOD = '''"""A method that takes a given time."""

from hashlib import pbkdf2_hmac
from time import thread_time
from typing import Any

from manyserver.methods.base import Draws, Method, Role, Strict
from manyserver.methods.dispatching import DispatchingProblem


class Options(Strict):
    """How long."""

    milliseconds: float = 1.0


class Synthetic(Method[DispatchingProblem, Options]):
    """Burn, and return as much as a simulation does."""

    name = "synthetic"
    title = "Nothing, slowly."
    role = Role.SIMULATION
    options_class = Options
    random = True

    def compute(self, problem: DispatchingProblem, options: Options, draws: Draws) -> Any:
        """Burn."""
        import numpy as np

        from manyserver.variables import labelled

        began = thread_time()
        while thread_time() - began < options.milliseconds / 1000:
            pbkdf2_hmac("sha256", b"", b"", 100)
        tail = np.geomspace(1, 1e-12, 30)[np.newaxis].repeat(2, axis=0)
        values = {"sojourn_mean": 1.0 + draws.seed % 1000 / 1000, "queue_tail": tail}
        widths = {f"{name}_half_width": 0.001 * np.asarray(value) for name, value in values.items()}
        return labelled(values | widths, problem.system)
'''


READ = """
import json, sys, time
times = [time.process_time()]
import xarray as xr
times.append(time.process_time())
cube = xr.open_dataset(sys.argv[1])
times.append(time.process_time())
float(cube.sojourn_mean[0, 0, 0, 0, 0])
times.append(time.process_time())
names = ("import xarray", "open the cube", "read a value")
print(json.dumps({name: b - a for name, a, b in zip(names, times, times[1:])}))
"""


@dataclass(frozen=True)
class Cost:
    """What a command took: seconds on the clock and of CPU, and the largest process in MiB."""

    wall: float
    cpu: float
    memory: float


class Project:
    """A copy of the project with one synthetic study."""

    def __init__(self, folder: Path, sizes: int):
        self.folder = folder
        for name in ("workflow", "profiles", "src"):
            shutil.copytree(ROOT / name, folder / name)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy(ROOT / name, folder)
        method = folder / "src" / "manyserver" / "methods" / "synthetic.py"
        method.write_text(METHOD)
        (folder / "config" / "studies").mkdir(parents=True)
        (folder / "config" / "config.yaml").write_text("studies: all\n")
        study = {
            "title": "Synthetic",
            "systems": {
                "two": {"pools": [{"fraction": "1/2", "speed": s} for s in ("2/3", "4/3")]}
            },
            "policies": [{"name": "scheme1", "d": [d, d]} for d in range(1, POLICIES + 1)],
            "sweep": {
                "load": {"start": 0.1, "stop": 0.9, "count": LOADS},
                "n_servers": [10 * 2**i for i in range(sizes)],
            },
            "methods": {"synthetic": {"milliseconds": MILLISECONDS}},
        }
        (folder / "config" / "studies" / "synthetic.yaml").write_text(json.dumps(study))

    def run(self, *arguments: str) -> Cost:
        """Run a module of Python."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "src")}
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


@benchmark("command", costs=["CPU, s"])
def commands(quick: bool) -> Iterator[Row]:
    """A study of many points: its build, and answers about it.

    Seconds of CPU and on the clock, and MiB of the largest process. Points burn 10 ms each, 5,000
    of them (500 in a quick run) on two cores; what the build takes beside that is the overhead of a
    point.
    """
    sizes = 1 if quick else 10
    points = LOADS * POLICIES * sizes
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project", sizes)
        project.run("manyserver", "check")  # keeps the bytecode
        snakemake = ("snakemake", "--cores", "2")
        for command in (
            snakemake,
            (*snakemake, "--dry-run"),
            ("manyserver", "why"),
            ("manyserver", "status"),
            ("manyserver", "clean", "--unreferenced", "--yes"),
        ):
            cost = project.run(*command)
            row: Row = {"command": " ".join(command), "CPU, s": cost.cpu, "clock, s": cost.wall}
            if command is snakemake:
                overhead = 1000 * cost.cpu / points - MILLISECONDS
                row |= {"MiB": cost.memory, "overhead of a point, ms": overhead}
            yield row
        command = [sys.executable, "-c", READ, project.folder / "results" / "synthetic" / "cube.nc"]
        told = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(ROUNDS)
        ]
        for name in told[0]:
            yield {"command": name, "CPU, s": [spent[name] for spent in told]}
