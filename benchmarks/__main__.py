"""Run the benchmarks: ``uv run --group benchmark python -m benchmarks``."""

import os

# Times are those of one thread; numba and BLAS read this when they are loaded.
for variable in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from benchmarks.command import main  # noqa: E402

main(prog_name="python -m benchmarks")
