"""From a system and a policy to a labelled result with half-widths.

What is simulated and estimated is said by an estimator (:mod:`manyserver.simulation.estimator`).

Where the refined mean field is close to the system, it is a start that is soon forgotten, and
there are many short replications. They are independent, and so each is a batch; the two halves of
all must agree.

Elsewhere replications are long. They are measured in pieces, which are merged into batches of at
least `BATCH_LENGTH` autocorrelation times. For a precision, a pilot tells the autocorrelation time,
and so how long a replication is: eight have the fewest batches that an interval may rest on.

In all cases there are as many as the precision takes. Neither their length nor their random
numbers depend on it, so those that a smaller request has measured are the first of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.schema import HALF_WIDTH
from manyserver.simulation.estimator import Estimator
from manyserver.simulation.lengths import (
    FEWEST_ARRIVALS,
    FEWEST_BATCHES,
    FEWEST_CONTROLLED,
    FEWEST_INDEPENDENT,
    HALVES,
    LEAST_WORK,
    MOST_BATCHES,
    PIECES,
    PILOT_REPLICATIONS,
    ROUNDING,
    SAFETY,
    WARM_UP,
    WITH_SERIES,
    Lengths,
    Plan,
    independent_lengths,
    kept_pieces,
    longer_for_arrivals,
    make_plan,
    shortest_batch,
    starts_close,
)
from manyserver.simulation.pieces import Pieces, joined, merged
from manyserver.simulation.pilot import jobs_per_server
from manyserver.simulation.replications import Cache, Replications
from manyserver.simulation.saturation import certainly_stable
from manyserver.statistics.estimates import Controls, Estimate, autocorrelation_time, batch_mean
from manyserver.variables import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Run"]

MOST_GROWTH = 2
"""In one go there are at most so many times as many replications as before: few tell a precision
roughly, and with more of them control variates explain more."""
LARGEST_DRIFT = 2.5
"""Half-widths by which the halves of short replications may differ; by chance they differ by more
once in a million runs."""


class Run:
    """The replications of a system, and what they say.

    Parameters
    ----------
    estimator : Estimator
    cache : Cache, optional
        Where replications are kept for a later run.
    """

    def __init__(self, estimator: Estimator[Any], cache: Cache | None = None):
        self.estimator, self.settings = estimator, estimator.settings
        self.relaxation_time, self.rate = estimator.relaxation_time, estimator.rate
        self.sample_steps = estimator.sample_steps
        # Without control variates the fluctuations must be settled, too.
        self.independent = (
            self.settings.horizon is None
            and self.settings.control_variates
            and starts_close(estimator.correction)
        )
        self.replications = Replications(estimator, cache)
        self.plan = Plan(0, 1, 1, 1, 1, 1)
        self.count = 0
        self.autocorrelation_time = math.inf
        self.settled = True
        self.runs_together = 1
        self._batches: Any = None
        self._adjusted: Any = None
        self._controls: Controls | None = None
        self.most_batches_each = MOST_BATCHES

    # How long to simulate

    def simulate(self, progress: Callable[[str], None]) -> None:
        """Measure replications, until the precision is met or the events are used up."""
        began = time.perf_counter()
        self.plan = make_plan(self.lengths(), self.pieces)
        while (wanted := self.needed) > self.count:
            simulated = self.replications.simulated_steps
            new = wanted - len(self.replications.done)
            if new > 0:
                steps = new * self._steps_each
                seconds = (time.perf_counter() - began) / simulated * steps if simulated else None
                about = f", about {seconds:.2g} s" if seconds else ""
                progress(f"{steps:.2g} steps to go{about}")
            self.extend(wanted)

    @property
    def pieces(self) -> int:
        """Pieces in which a replication is measured."""
        return HALVES if self.independent else PIECES

    def lengths(self) -> Lengths:
        """Choose how long a replication is; a pilot may be needed to tell."""
        return self._short_lengths() if self.independent else self._long_lengths()

    def _short_lengths(self) -> Lengths:
        settling = self.relaxation_time * self.rate
        lengths = independent_lengths(self.estimator.correction, settling, self.sample_steps)
        most = self._most_steps / self._fewest
        shorter = min(1.0, most / (lengths.warm_up + lengths.measured))
        self.settled = shorter == 1
        return lengths._replace(
            warm_up=shorter * lengths.warm_up, measured=max(1.0, shorter * lengths.measured)
        )

    def _long_lengths(self) -> Lengths:
        horizon = self.settings.horizon
        if horizon is None or not self.estimator.limit_settles:
            self.autocorrelation_time = self.replications.pilot.autocorrelation_time
        slowest = self.relaxation_time
        if math.isfinite(self.autocorrelation_time):
            slowest = max(slowest, self.autocorrelation_time)
        slowest *= self.rate
        warm_up = max(WARM_UP * slowest, self.estimator.least_warm_up)
        if horizon is not None:
            measured = horizon * self.rate
            left = self._most_steps / self.settings.replications - measured
            self.settled = warm_up <= left
            return Lengths(min(warm_up, max(0.0, left)), measured, slowest, self.sample_steps)
        fewest = FEWEST_CONTROLLED * self.runs_together / PILOT_REPLICATIONS
        # With the time of a warm-up at least, more of them cost hardly more than longer ones.
        length = max(fewest * shortest_batch(slowest, self.sample_steps), LEAST_WORK, warm_up)
        most = self._most_steps / self.settings.replications
        shorter = max(0.0, min(1.0, most / (warm_up + length)))
        measured = max(1.0, shorter * length)
        return Lengths(shorter * warm_up, measured, slowest, self.sample_steps)

    @property
    def _most_steps(self) -> float:
        """Steps that all replications may take."""
        return self.settings.max_events - self.replications.pilot_steps

    @property
    def _steps_each(self) -> float:
        done = self.replications.done[: self.count]
        after = sum(self.estimator.steps_after(one.measured) for one in done)
        return self.plan.warm_up + self.plan.measured + after / max(1, len(done))

    @property
    def needed(self) -> int:
        """Replications that are needed, as far as that is known now."""
        fewest = max(self.count, self.settings.replications)
        if self.settings.horizon is not None:
            return fewest
        wanted = max(fewest, self._enough(fewest))
        if wanted == self.count:
            wanted = self._precise_enough()
        return max(fewest, min(wanted, int(self._most_steps / self._steps_each)))

    def _enough(self, count: int) -> int:
        """Replications, at least `count`, that have the fewest batches, as far as can be told."""
        if self.independent:
            return max(count, self._fewest)
        if self._fitting < 1:
            return max(count, WITH_SERIES)
        while not self._rests_on_enough(count):
            count += 1
        return count

    def _precise_enough(self) -> int:
        """Replications for the precision, by the half-width of those that there are."""
        precision = self.settings.precision or math.inf
        batches = self.batches()
        longer = longer_for_arrivals(self.estimator.arrivals(batches), precision)
        if longer == 1:
            value, half_width = self.sojourn()
            ratio = float(half_width / value) / precision
            if ratio > 1:
                longer = SAFETY * ratio**2
            elif math.isnan(ratio) or self.estimator.resolves(batches, self.controls(batches)):
                return self.count
            else:
                longer = MOST_GROWTH
        return max(self.count + 1, math.ceil(min(longer, MOST_GROWTH) * self.count))

    def extend(self, count: int) -> None:
        """Have so many replications."""
        self.replications.extend(count, self.plan)
        self.count, self._batches = count, None
        if self.independent:
            return
        series = np.array([one.series for one in self.replications.done[:count][:WITH_SERIES]])
        spacing = self.plan.steps / self.rate
        seen = autocorrelation_time(series, spacing)
        # Pieces can be too long to see it.
        if seen > spacing or self.autocorrelation_time == math.inf:
            self.autocorrelation_time = seen

    # Estimating

    @property
    def precise(self) -> bool:
        """Whether the half-width can be relied on and is small enough."""
        value, half_width = self.sojourn()
        limit = self.settings.precision or math.inf
        return bool(half_width <= limit * value) and self.reliable

    @property
    def reliable(self) -> bool:
        """Whether there are enough arrivals and batches, all long enough, and it is stable."""
        batches = self.batches()
        seen = self.estimator.arrivals(batches) >= FEWEST_ARRIVALS
        enough = seen and self._rests_on_enough(self.count) and self.estimator.reliable(batches)
        settled = self.settled and not self._drifts
        return enough and settled and certainly_stable(self.estimator.margin)

    @property
    def _drifts(self) -> bool:
        """Whether the halves of short replications differ by more than chance.

        As they were measured: control variates would extrapolate what has drifted.
        """
        if not self.independent or self.plan.pieces < HALVES:
            return False
        done = self.replications.done[: self.count]
        system = self.estimator.system
        jobs = np.array([jobs_per_server(system, one.measured.tails) for one in done])
        change, half_width = batch_mean(jobs[:, 1] - jobs[:, 0])
        return bool(abs(change) > LARGEST_DRIFT * half_width)

    def _rests_on_enough(self, count: int) -> bool:
        if self.independent:
            return count >= self._fewest
        each = self._batches_each(count)
        return each <= self._fitting and each * count >= self._fewest

    @property
    def _fewest(self) -> int:
        # Two runs that are compared share a regression, with the control variates of both.
        if self.independent:
            return FEWEST_INDEPENDENT * self.runs_together
        controlled = FEWEST_CONTROLLED * self.runs_together
        return controlled if self.settings.control_variates else FEWEST_BATCHES

    @property
    def _fitting(self) -> float:
        """Batches of a replication that are long enough."""
        slowest = max(self.autocorrelation_time, self.relaxation_time) * self.rate
        shortest = shortest_batch(slowest, self.sample_steps)
        return self.plan.measured / (shortest * (1 - ROUNDING))

    def _batches_each(self, count: int) -> int:
        """Batches of each of so many replications: long enough, within the bounds."""
        if self.independent:
            return 1
        pieces = kept_pieces(count - 1, self.plan.pieces)
        divisors = [d for d in range(1, pieces + 1) if pieces % d == 0]
        most = min(self._fitting, math.ceil(MOST_BATCHES / count), self.most_batches_each)
        long_enough = max((d for d in divisors if d <= most), default=1)
        fewest = math.ceil(self._fewest / count)
        if long_enough >= fewest:
            return long_enough
        return next((d for d in divisors if d >= fewest), pieces)

    @property
    def batches_each(self) -> int:
        """Batches of a replication."""
        return self._batches_each(self.count)

    @property
    def batch_length(self) -> float:
        """Time of a batch."""
        return self.plan.measured / self.rate / self.batches_each

    def batches(self) -> Any:
        """Merge the pieces into batches, those of all replications one after another."""
        each = self.batches_each
        if self._batches is None or len(self._batches.tails) != each * self.count:
            used = [one.measured for one in self.replications.done[: self.count]]
            self._batches = joined([merged(one, len(one.tails) // each) for one in used])
        return self._batches

    def controls(self, batches: Pieces) -> Controls | None:
        """Choose the control variates, if there are to be any; once for the same batches."""
        if self._adjusted is not batches:
            wanted = self.settings.control_variates
            self._controls = self.estimator.controls(batches) if wanted else None
            self._adjusted = batches
        return self._controls

    def sojourn(self) -> Estimate:
        """Estimate the mean sojourn time."""
        batches = self.batches()
        return self.estimator.sojourn_mean(batches, self.controls(batches), self.batch_length)

    def result(self, more: Mapping[str, object] | None = None) -> xr.Dataset:
        """Estimate every output from the batches, and add `more` variables."""
        estimator, batches = self.estimator, self.batches()
        controls = self.controls(batches)
        outputs = estimator.estimates(batches, controls, self.batch_length)
        if estimator.margin is not None:
            outputs["stability_margin"] = estimator.margin
        values: dict[str, object] = {}
        for name, estimate in outputs.items():
            values[name], values[name + HALF_WIDTH] = estimate
        values |= estimator.values(batches, self.batch_length)
        values["simulated_time"] = self.count * self.plan.measured / self.rate
        values["n_events"] = estimator.events(batches)
        values["n_replications"] = self.count
        values["n_batches"] = len(batches.tails)
        values["n_controls"] = controls.rank if controls else 0
        # Independent replications need none, and do not tell it.
        values["autocorrelation_time"] = math.nan if self.independent else self.autocorrelation_time
        values["interval_reliable"] = self.reliable
        if self.settings.precision is not None:
            values["precision_met"] = self.precise
        values |= more or {}
        return labelled(
            values,
            estimator.system,
            coords=estimator.coordinates,
            attrs=estimator.attributes(self.plan),
        )
