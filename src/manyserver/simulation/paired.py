"""Several systems or policies with common random numbers, and how they differ.

A step of the kernel is an arrival or a departure, and looks at a first server, by random words
that do not depend on the policy. Runs with the same seed therefore see the same of these, step by
step, and their batches are alike. Where jobs are followed, the times of arrivals, the sizes and
the first servers looked at are the same, arrival by arrival. The control variates of both runs
explain the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyserver.schema import HALF_WIDTH
from manyserver.simulation.lengths import Lengths, make_plan
from manyserver.simulation.pieces import Pieces
from manyserver.simulation.run import Run
from manyserver.statistics.estimates import batch_mean
from manyserver.variables import DIFFERENCE

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["run_together"]

SOJOURN = "sojourn_mean"


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
    one: tuple[Run, Pieces], other: tuple[Run, Pieces], *, same: bool
) -> dict[str, float]:
    """Estimate what one run has more than the other."""
    pair = (one, other)
    (run, batches), (reference, its) = pair
    wanted = run.settings.control_variates and not same
    controls = run.estimator.controls(batches, (reference.estimator, its)) if wanted else None
    mine, theirs = (
        some.estimator.terms(measured, controls, some.batch_length) for some, measured in pair
    )
    values: dict[str, float] = {}
    for name in mine:
        value, half_width = batch_mean(mine[name] - theirs[name], controls)
        values[name + DIFFERENCE] = float(value)
        values[name + DIFFERENCE + HALF_WIDTH] = float(half_width) if not same else 0.0
    variance = _variance(mine[SOJOURN] - theirs[SOJOURN])
    for name, alone in (("variance_ratio", True), ("variance_ratio_plain", False)):
        apart = sum(_variance(_sojourns(*each, alone)) for each in pair)
        values[name] = apart / variance if variance > 0 else math.nan
    return values


def _sojourns(run: Run, batches: Pieces, adjusted: bool) -> np.ndarray:
    controls = run.controls(batches) if adjusted else None
    return run.estimator.terms(batches, controls, run.batch_length)[SOJOURN]


def _variance(batches: np.ndarray) -> float:
    return float(batches.var(ddof=1))
