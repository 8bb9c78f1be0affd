"""Replications: all alike, whatever is asked for, and kept for a later request.

A replication has random numbers of its own, by its number, and its length does not depend on how
many there are. So a request for more of them finds those of an earlier one as they would be.
"""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from manyserver.simulation.estimator import Estimator, Replication
from manyserver.simulation.lengths import PILOT_REPLICATIONS, WITH_SERIES, Plan, kept_pieces
from manyserver.simulation.pieces import Pieces, joined, packed, part, unpacked
from manyserver.simulation.pilot import Pilot, simulate_pilot

__all__ = ["Cache", "Replications"]

PILOT, MEASURED = 0, 1
"""Last word of the seed of a replica."""
PILOT_SHARE = 0.25
"""Part of all steps that a pilot may take."""


class Cache(Protocol):
    """Where replications are kept for a later request.

    Attributes
    ----------
    reused, needed : int
        Set by a run: replications that were found here, and all that its result rests on.
    """

    reused: int
    needed: int

    def load(self) -> Mapping[str, np.ndarray]:
        """Return what was saved; nothing if there is nothing, or it is damaged."""

    def save(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays, in place of those before."""


class Replications:
    """The replications of a system with a policy.

    Parameters
    ----------
    estimator : Estimator
        Says what is simulated.
    cache : Cache, optional
        Where they are kept.

    Attributes
    ----------
    done : list of Replication
    simulated_steps : int
        Steps that were simulated here, and not found.
    """

    def __init__(self, estimator: Estimator[Any], cache: Cache | None = None):
        self.estimator, self.settings, self.cache = estimator, estimator.settings, cache
        self.simulated_steps = 0
        self._pilot: Pilot | None = None
        self._plan: Plan | None = None
        self.done: list[Replication] = []
        if cache:
            self._find(cache.load())
        self._found = len(self.done)

    @property
    def pilot(self) -> Pilot:
        """What a pilot tells, simulated when it is asked for first."""
        if self._pilot is None:
            groups = [
                self.estimator.group(self._seeds(numbers, PILOT))
                for numbers in self._cut(range(PILOT_REPLICATIONS))
            ]
            most = PILOT_SHARE * self.settings.max_events
            self._pilot = simulate_pilot(
                groups,
                self.estimator.rate,
                self.estimator.relaxation_time,
                most,
                self.settings.threads,
            )
            self.simulated_steps += self._pilot.steps
        return self._pilot

    @property
    def pilot_steps(self) -> int:
        """Steps of the pilot, if there was one."""
        return 0 if self._pilot is None else self._pilot.steps

    def extend(self, count: int, plan: Plan) -> None:
        """Have so many replications, all by the same plan."""
        if plan != self._plan:
            self._plan, self.done, self._found = plan, [], 0
        if self.cache:
            self.cache.reused, self.cache.needed = min(self._found, count), count
        numbers = range(len(self.done), count)
        if numbers:
            with ThreadPoolExecutor(self.settings.threads) as pool:
                self.done += itertools.chain(*pool.map(self._simulated, self._cut(numbers)))
            self.simulated_steps += len(numbers) * (plan.warm_up + plan.measured)
            if self.cache:
                self.cache.save(self._arrays())

    def _simulated(self, numbers: Sequence[int]) -> list[Replication]:
        assert self._plan is not None
        return self.estimator.simulate(self._seeds(numbers, MEASURED), self._plan, numbers)

    def _cut(self, numbers: Sequence[int]) -> list[list[int]]:
        """Cut the numbers of replications into those that are simulated together."""
        each = self.estimator.together
        return [list(own) for _, own in itertools.groupby(numbers, lambda n: n // each)]

    def _seeds(self, numbers: Sequence[int], use: int) -> list[tuple[int, ...]]:
        return [(*self.settings.seed, number, use) for number in numbers]

    # Keeping them

    @property
    def _identity(self) -> bytes:
        """Digest of all that replications depend on but the code."""
        chosen = self.settings
        told = (*self.estimator.identity, chosen.horizon, chosen.max_events)
        return hashlib.sha256(repr(told).encode()).digest()

    def _arrays(self) -> dict[str, np.ndarray]:
        """Write them as plain arrays, one after another."""
        return packed(joined([one.measured for one in self.done])) | {
            "identity": np.frombuffer(self._identity, dtype=np.uint8),
            "pilot": np.array(self._pilot or (), dtype=float),
            "plan": np.array(self._plan, dtype=np.int64),
            "series": np.array([one.series for one in self.done[:WITH_SERIES]]),
        }

    def _find(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Read what :meth:`_arrays` wrote, if it is of the same identity."""
        if not arrays or arrays["identity"].tobytes() != self._identity:
            return
        if arrays["pilot"].size:
            time, steps = arrays["pilot"].tolist()
            self._pilot = Pilot(time, int(steps))
        self._plan = Plan(*arrays["plan"].tolist())
        every: Pieces = unpacked(self.estimator.kind, arrays)
        first, rows = 0, len(every.tails)
        while first < rows:
            number = len(self.done)
            here = slice(first, first + kept_pieces(number, self._plan.pieces))
            series = arrays["series"][number] if number < WITH_SERIES else np.zeros(0)
            self.done.append(Replication(part(every, here), series))
            first = here.stop
