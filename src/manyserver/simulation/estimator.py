"""What a replication measures, and what is estimated from it.

A run (:mod:`manyserver.simulation.run`) decides how long replications are and how many of them
there are. It knows what is simulated only as a subclass of :class:`Estimator`: the numbers of jobs
at the servers, or every job.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.lengths import Plan
from manyserver.simulation.pieces import Pieces
from manyserver.simulation.pilot import Group
from manyserver.simulation.saturation import refuse_unstable
from manyserver.simulation.settings import Settings, checked_start
from manyserver.statistics.estimates import Controls, Estimate

__all__ = ["Estimator", "Replication"]

P = TypeVar("P", bound=Pieces)


class Replication(NamedTuple):
    """What is kept of a replication."""

    measured: Any
    """Its pieces, merged to :func:`~manyserver.simulation.lengths.kept_pieces`."""
    series: np.ndarray
    """Jobs per server in fine pieces, shape (fine piece,); empty but for the first few."""


class Estimator(ABC, Generic[P]):
    """A system with a policy, and what is wanted of it.

    Parameters
    ----------
    system : System
        With a number of servers.
    policy : Policy
    start_tails : numpy.ndarray, shape (pool, level)
        Fraction of the servers of each pool that hold at least ``level`` jobs at first.
    relaxation_time : float
        Time in which the system forgets its start; sets the lengths of warm-up and batches.
    correction : float
        Relative 1/N correction that leads from the limit to the start, infinite if there is none.
    settings : Settings

    Attributes
    ----------
    kind : type
        Of the pieces, a named tuple.
    rate : float
        Steps per unit of time; with it a plan in steps becomes one in time.
    sample_steps : int
        Steps from one sample of the state to the next.
    limit_settles : bool
        Whether the limit of many servers settles as slowly as the system does; if not, a pilot
        finds out how long that takes.
    least_warm_up : float
        Steps that a long replication warms up at least.
    together : int
        Replications that are simulated together, with numbers from a multiple of it on.
    margin : Estimate or None
        What :func:`~manyserver.simulation.saturation.refuse_unstable` returns.

    Raises
    ------
    ValueError
        If the policy or the start does not fit the system.
    UnstableSystem
        If some pools get more work than they can do.
    """

    kind: ClassVar[type]
    rate: float
    sample_steps: int
    limit_settles: bool
    least_warm_up: float = 0.0
    together: int = 1

    def __init__(
        self,
        system: System,
        policy: Policy,
        start_tails: np.ndarray,
        relaxation_time: float,
        correction: float,
        settings: Settings,
    ):
        policy.check(system)
        self.margin = refuse_unstable(system, policy, settings.seed)
        self.start = checked_start(system, start_tails)
        self.system, self.policy, self.settings = system, policy, settings
        self.relaxation_time, self.correction = relaxation_time, correction

    @property
    def identity(self) -> tuple[object, ...]:
        """All that a replication depends on, but for its number, its plan and the code."""
        start = self.start
        told = (self.system, self.policy, self.relaxation_time, start.shape, start.tobytes())
        return (*told, self.settings.seed, self.settings.moments)

    @abstractmethod
    def group(self, seeds: Sequence[Sequence[int]]) -> Group:
        """Make replicas that are simulated together, each with random numbers of its own."""

    @abstractmethod
    def simulate(
        self, seeds: Sequence[Sequence[int]], plan: Plan, numbers: Sequence[int]
    ) -> list[Replication]:
        """Simulate the replications of some numbers together, by a plan."""

    def steps_after(self, measured: P) -> float:
        """Return the steps that a replication went on for after its plan."""
        return 0.0

    @abstractmethod
    def arrivals(self, batches: P) -> int:
        """Return the number of arrivals, accepted or not."""

    @abstractmethod
    def events(self, batches: P) -> int:
        """Return the number of arrivals and departures."""

    @abstractmethod
    def controls(self, batches: P, *others: tuple[Self, P]) -> Controls | None:
        """Choose the control variates; with others, those of all runs together.

        Parameters
        ----------
        batches
        *others : tuple of Estimator and its batches
            Further runs with the same random numbers.
        """

    @abstractmethod
    def terms(self, batches: P, controls: Controls | None, length: float) -> dict[str, np.ndarray]:
        """Return terms that average to a mean, shape (batch,) each, adjusted by the controls.

        Parameters
        ----------
        batches
        controls : Controls or None
        length : float
            Time of a batch.

        Returns
        -------
        dict of str to numpy.ndarray
            By variable; at least ``jobs_per_server`` and ``sojourn_mean``.
        """

    @abstractmethod
    def sojourn_mean(self, batches: P, controls: Controls | None, length: float) -> Estimate:
        """Estimate the mean sojourn time; parameters as for :meth:`terms`."""

    @abstractmethod
    def estimates(
        self, batches: P, controls: Controls | None, length: float
    ) -> dict[str, Estimate]:
        """Estimate every output; parameters as for :meth:`terms`."""

    def values(self, batches: P, length: float) -> dict[str, object]:
        """Return what is known of the batches without error."""
        return {}

    def reliable(self, batches: P) -> bool:
        """Whether nothing but a lack of batches keeps an interval from being reliable."""
        return True

    def resolves(self, batches: P, controls: Controls | None) -> bool:
        """Whether the batches are enough for the rarest of what is estimated."""
        return True

    @property
    def coordinates(self) -> Mapping[str, np.ndarray]:
        """Coordinates of the result, of dimensions of its own."""
        return {}

    def attributes(self, plan: Plan) -> dict[str, object]:
        """Return the attributes of the result."""
        return {"method": "simulation"}
