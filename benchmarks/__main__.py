"""Run the benchmarks: ``uv run --group benchmark python -m benchmarks``."""

import os
import sys
from pathlib import Path

# Times are those of one thread; numba and BLAS read this when they are loaded.
for variable in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Jobs of Snakemake, and GillesPy2, look for programs of this environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

from benchmarks.command import main  # noqa: E402

main(prog_name="python -m benchmarks")
