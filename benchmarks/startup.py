"""CPU time of commands that hardly compute, as multiples of the imports that they cannot avoid."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.driver import Row, benchmark, children_seconds, ratios

ROOT = Path(__file__).parents[1]
ROUNDS = 5
STUDY = {
    "title": "Small",
    "systems": {"two": {"pools": [{"fraction": "1/2", "speed": s} for s in ("2/3", "4/3")]}},
    "policies": [{"name": "scheme1", "d": [2, 2]}, {"name": "sq", "d": 2}],
    "sweep": {"load": {"start": 0.1, "stop": 0.9, "count": 9}, "n_servers": "limit"},
    "methods": {"mean_field": {}},
    "unit": ["n_servers"],
    "figures": [
        {"kind": "sojourn_against"},
        {"kind": "sojourn_against", "name": "logarithmic", "scale": "log"},
    ],
}
UNIT, CUBE = "results/small/units/mean_field/limit.jsonl", "results/small/cube.nc"
DRAW = ("figures", "small", CUBE, "results/small/figures")
COMPILER = "import numba, xarray"
CUBES = "import xarray"
PLOTS = "import matplotlib.pyplot, seaborn"
COMMANDS: dict[str, tuple[tuple[str, ...], str, float]] = {
    "check all default studies": (("--config", str(ROOT / "config"), "check"), COMPILER, 1.2),
    "a unit that is done": (("unit", "small", "mean_field/limit", UNIT), COMPILER, 1.2),
    "a cube": (("cube", "small", CUBE, UNIT), CUBES, 1.5),
    "a figure": ((*DRAW, "sojourn_against"), PLOTS, 1.5),
    "two figures of a study": ((*DRAW, "sojourn_against", "logarithmic"), PLOTS, 3.0),
}
"""Arguments of the command, the imports to compare with, and how many times these it may take."""
CALLS = {
    "fixed_point": ("ms.fixed_point(system, policy)", 0.005),
    "refine": ("ms.refine(system, policy)", 0.010),
    "stationary": ("ms.halfin_whitt.stationary(1)", 0.5),
}
"""Calls, and how many seconds the first may take."""
SETTING = """
import time
import xarray
import manyserver as ms

ms.halfin_whitt
warm = ms.System(0.5, [ms.Pool(1, 1)])
ms.refine(warm, ms.policy("sq", d=2))  # imports and caches
system = ms.System(0.99, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
policy = ms.policy("scheme1", d=[2, 2])
began = time.process_time()
{call}
print(time.process_time() - began)
"""


@benchmark("what", costs=["seconds", "ratio"])
def commands(quick: bool) -> Iterator[Row]:
    """Commands that hardly compute, over the imports that they cannot avoid.

    CPU seconds of whole processes, in turns, and of the first call of functions in a new process.
    """
    rounds = 2 if quick else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _prepare(folder)
        imports = (COMPILER, CUBES, PLOTS)
        took: dict[str, list[float]] = {what: [] for what in (*imports, *COMMANDS, *CALLS)}
        for _ in range(rounds):
            for code in imports:
                took[code].append(_cpu(folder, "-c", code))
            for what, (arguments, _, _) in COMMANDS.items():
                took[what].append(_cpu(folder, "-m", "manyserver", *arguments))
            for what, (call, _) in CALLS.items():
                took[what].append(float(_run(folder, "-c", SETTING.format(call=call))))
    for what, (_, base, target) in COMMANDS.items():
        ratio = ratios(took[what], took[base])
        yield {"what": what, "seconds": took[what], "over": base, "ratio": ratio, "target": target}
    for what, (_, target) in CALLS.items():
        yield {"what": what, "seconds": took[what], "target": target}


def _prepare(folder: Path) -> None:
    """Write the study, compute its unit, and let Python keep all bytecode."""
    path = folder / "config" / "studies" / "small.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(STUDY))
    shutil.copy(ROOT / "config" / "config.yaml", folder / "config")
    for arguments, _, _ in COMMANDS.values():
        _run(folder, "-m", "manyserver", *arguments)


def _run(folder: Path, *arguments: str) -> str:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(ROOT / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def _cpu(folder: Path, *arguments: str) -> float:
    before = children_seconds()
    _run(folder, *arguments)
    return children_seconds() - before
