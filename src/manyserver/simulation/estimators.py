"""Which estimator serves which request."""

from typing import Any

import numpy as np

from manyserver.disciplines import Discipline
from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.estimator import Estimator
from manyserver.simulation.jobs.estimator import JobsEstimator
from manyserver.simulation.occupancy_estimator import OccupancyEstimator
from manyserver.simulation.settings import Settings
from manyserver.sizes import SizeLaw

__all__ = ["make_estimator"]


def make_estimator(
    system: System,
    policy: Policy,
    start_tails: np.ndarray,
    relaxation_time: float,
    correction: float,
    settings: Settings,
    sizes: SizeLaw | None = None,
    discipline: Discipline | None = None,
) -> Estimator[Any]:
    """Follow every job if a law of the sizes and a discipline are given, else their numbers.

    Parameters are those of :class:`~manyserver.simulation.estimator.Estimator`.
    """
    if sizes is None or discipline is None:
        return OccupancyEstimator(
            system, policy, start_tails, relaxation_time, correction, settings
        )
    return JobsEstimator(system, policy, start_tails, relaxation_time, settings, sizes, discipline)
