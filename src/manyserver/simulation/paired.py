"""Several systems or policies with common random numbers, and how they differ.

A step of the kernel is an arrival or a departure, and looks at a first server, by random words
that do not depend on the policy. Runs with the same seed therefore see the same of these, step by
step, and their batches are alike. The control variates of both runs explain the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyserver.simulation.controls import make_controls
from manyserver.simulation.lengths import Lengths, make_plan
from manyserver.simulation.outputs import queues, sojourns
from manyserver.simulation.replica import Measured
from manyserver.simulation.run import Run
from manyserver.statistics.estimates import Controls, batch_mean
from manyserver.variables import DIFFERENCE, HALF_WIDTH

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["run_together"]


def run_together(
    runs: Sequence[Run], progress: Callable[[str], None], *, previous: bool
) -> list[xr.Dataset]:
    """Simulate with common random numbers.

    Parameters
    ----------
    runs : sequence of Run
        With the same settings, not simulated yet.
    progress : callable
        Told what is to be done.
    previous : bool
        Whether to subtract the previous run, and not the first one.

    Returns
    -------
    list of xarray.Dataset
        One for each run.
    """
    lengths = []
    independent = all(run.independent for run in runs)
    for number, run in enumerate(runs):
        run.independent, run.runs_together = independent, min(2, len(runs))
        lengths.append(run.lengths())
        if not independent:
            progress(f"pilot {number + 1} of {len(runs)} done")
    plan = make_plan(Lengths(*map(max, zip(*lengths, strict=True))), runs[0].pieces)
    for run in runs:
        run.plan, run.sample_steps = plan, max(other.sample_steps for other in runs)
    while (wanted := max(run.needed for run in runs)) > runs[0].count:
        steps = (wanted - runs[0].count) * (plan.warm_up + plan.measured) * len(runs)
        progress(f"{steps:.2g} steps to go")
        for run in runs:
            run.extend(wanted)
    fewest = min(run.batches_each for run in runs)
    for run in runs:
        run.most_batches_each = fewest
    batches = [run.batches() for run in runs]
    results = []
    for number, run in enumerate(runs):
        other = max(number - 1, 0) if previous else 0
        difference = _difference(
            (run, batches[number]), (runs[other], batches[other]), same=number == other
        )
        results.append(run.result(difference))
    return results


def _difference(
    one: tuple[Run, Measured], other: tuple[Run, Measured], *, same: bool
) -> dict[str, float]:
    """Estimate what one run has more than the other."""
    pair = (one, other)
    wanted = one[0].settings.control_variates and not same
    systems = [run.system for run, _ in pair]
    controls = make_controls(systems, [batches for _, batches in pair]) if wanted else None
    values: dict[str, float] = {}
    for name, terms in (("jobs_per_server", _jobs), ("sojourn_mean", _sojourns)):
        mine, its = (terms(run, batches, controls) for run, batches in pair)
        value, half_width = batch_mean(mine - its, controls)
        values[name + DIFFERENCE] = float(value)
        values[name + DIFFERENCE + HALF_WIDTH] = float(half_width) if not same else 0.0
    variance = _variance(mine - its)
    for name, alone in (("variance_ratio", True), ("variance_ratio_plain", False)):
        apart = sum(
            _variance(_sojourns(run, batches, run.controls(batches) if alone else None))
            for run, batches in pair
        )
        values[name] = apart / variance if variance > 0 else math.nan
    return values


def _jobs(run: Run, batches: Measured, controls: Controls | None) -> np.ndarray:
    return np.asarray(queues(run.system, batches, controls) @ run.system.fractions)


def _sojourns(run: Run, batches: Measured, controls: Controls | None) -> np.ndarray:
    return sojourns(run.system, batches, controls, run.batch_length)


def _variance(batches: np.ndarray) -> float:
    return float(batches.var(ddof=1))
