"""Replications: all alike, whatever is asked for, and kept for a later request.

A replication has random numbers of its own, by its number, and its length does not depend on how
many there are. So a request for more of them finds those of an earlier one as they would be.
"""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.kernels import in_lockstep, make_replica
from manyserver.simulation.lanes import LANES
from manyserver.simulation.lengths import PILOT_REPLICATIONS, WITH_SERIES, Plan, kept_pieces
from manyserver.simulation.lockstep_replicas import Lockstep
from manyserver.simulation.outputs import joined, merged
from manyserver.simulation.pilot import Pilot, jobs_per_server, simulate_pilot
from manyserver.simulation.replica import STEPS_PER_PIECE, Measured, Replica
from manyserver.simulation.samples import Samples
from manyserver.simulation.settings import Settings

__all__ = ["Cache", "Replication", "Replications"]

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


class Replication(NamedTuple):
    """What is kept of a replication."""

    measured: Measured
    """Its pieces, merged to :func:`~manyserver.simulation.lengths.kept_pieces`."""
    series: np.ndarray
    """Jobs per server in fine pieces, shape (fine piece,); empty but for the first few."""


class Replications:
    """The replications of a system with a policy.

    Parameters
    ----------
    system : System
        With a number of servers.
    policy : Policy
    start : numpy.ndarray, shape (pool, level)
        Queue tails to start from.
    relaxation_time : float
        Time in which the system forgets its start, as far as that is known.
    settings : Settings
    cache : Cache, optional
        Where they are kept.

    Attributes
    ----------
    done : list of Replication
    kernel : Replica
        One that is not simulated, for what it knows of its kernel.
    simulated_steps : int
        Steps that were simulated here, and not found.
    """

    def __init__(
        self,
        system: System,
        policy: Policy,
        start: np.ndarray,
        relaxation_time: float,
        settings: Settings,
        cache: Cache | None = None,
    ):
        self.system, self.policy, self.start = system, policy, start
        self.relaxation_time, self.settings, self.cache = relaxation_time, settings, cache
        self.kernel = self._replica(0, PILOT)
        self._lockstep = in_lockstep(system, policy, start)
        self.simulated_steps = 0
        self._pilot: Pilot | None = None
        self._plan: Plan | None = None
        self.done: list[Replication] = []
        if cache:
            self._find(cache.load())
        self._found = len(self.done)

    def _replica(self, number: int, use: int) -> Replica:
        seed = (*self.settings.seed, number, use)
        return make_replica(self.system, self.policy, self.start, seed)

    @property
    def pilot(self) -> Pilot:
        """What a pilot tells, simulated when it is asked for first."""
        if self._pilot is None:
            groups = [
                self._group(numbers, PILOT) for numbers in self._cut(range(PILOT_REPLICATIONS))
            ]
            most = PILOT_SHARE * self.settings.max_events
            self._pilot = simulate_pilot(groups, self.relaxation_time, most, self.settings.threads)
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
        group = self._group(numbers, MEASURED)
        return simulate(group, self._plan, numbers, self.settings.moments)

    def _cut(self, numbers: Sequence[int]) -> list[list[int]]:
        """Cut the numbers of replications into those that are simulated together."""
        each = LANES if self._lockstep else 1
        return [list(own) for _, own in itertools.groupby(numbers, lambda n: n // each)]

    def _group(self, numbers: Sequence[int], use: int) -> Replica | Lockstep:
        replicas = [self._replica(number, use) for number in numbers]
        return Lockstep(replicas) if self._lockstep else replicas[0]

    # Keeping them

    @property
    def _identity(self) -> bytes:
        """Digest of all that replications depend on but the code."""
        chosen = self.settings
        told = (
            self.system,
            self.policy,
            self.relaxation_time,
            chosen.seed,
            chosen.horizon,
            chosen.moments,
            chosen.max_events,
            self.start.shape,
            self.start.tobytes(),
        )
        return hashlib.sha256(repr(told).encode()).digest()

    def _arrays(self) -> dict[str, np.ndarray]:
        """Write them as plain arrays, one after another."""
        every = joined([one.measured for one in self.done])._asdict()
        every |= {f"samples_{key}": sums for key, sums in every.pop("samples")._asdict().items()}
        return every | {
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
        sums = {key: arrays[f"samples_{key}"] for key in Samples._fields}
        plain = {key: arrays[key] for key in Measured._fields if key != "samples"}
        first, rows = 0, len(plain["tails"])
        while first < rows:
            number = len(self.done)
            here = slice(first, first + kept_pieces(number, self._plan.pieces))
            samples = Samples(**{key: values[here] for key, values in sums.items()})
            measured = Measured(
                **{key: values[here] for key, values in plain.items()}, samples=samples
            )
            series = arrays["series"][number] if number < WITH_SERIES else np.zeros(0)
            self.done.append(Replication(measured, series))
            first = here.stop


def simulate(
    group: Replica | Lockstep, plan: Plan, numbers: Sequence[int], moments: bool
) -> list[Replication]:
    """Warm up and measure replications, one alone or some together."""
    group.warm_up(plan.warm_up)
    # Those that may be simulated together are treated alike.
    head = plan.head if numbers[0] // LANES * LANES < WITH_SERIES else 0
    parts: list[list[Measured]] = [[] for _ in numbers]
    series = [np.zeros(0)] * len(numbers)
    if head:
        all_fine = group.advance_all(head * plan.fine, plan.steps, plan.period, moments)
        for place, (number, fine) in enumerate(zip(numbers, all_fine, strict=True)):
            if number < WITH_SERIES:
                series[place] = jobs_per_server(group.system, fine.tails)
            parts[place].append(merged(fine, plan.fine))
    if head < plan.pieces:
        # A piece may be longer than what the kernel takes at once.
        cuts = 1 if plan.fine * plan.steps <= STEPS_PER_PIECE else plan.fine
        steps = plan.fine * plan.steps // cuts
        rest = group.advance_all((plan.pieces - head) * cuts, steps, plan.period, moments)
        for own, measured in zip(parts, rest, strict=True):
            own.append(merged(measured, cuts))
    sizes = [plan.pieces // kept_pieces(number, plan.pieces) for number in numbers]
    return [
        Replication(joined([merged(joined(own), size)]), seen)
        for own, size, seen in zip(parts, sizes, series, strict=True)
    ]
