"""What a regime is."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyserver.mean_field.path import Path
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Integrator", "Regime"]

Integrator = Callable[[int, np.ndarray, np.ndarray, tuple[float, float]], Path]
"""From the number of levels, the queue tails at first, times, and the relative and absolute error
of a step."""


@dataclass(frozen=True)
class Regime(ABC):
    """How a system with many servers behaves under a policy."""

    system: System
    policy: Policy

    @classmethod
    @abstractmethod
    def fits(cls, system: System, policy: Policy) -> bool:
        """Whether a system is in this regime under a policy, if in none before it."""

    @abstractmethod
    def stationary(self) -> dict[str, Any]:
        """Compute the fixed point; outputs by variable name."""

    @abstractmethod
    def integrator(self, tails: np.ndarray, messages: Any) -> Integrator:
        """Return what follows the mean field from given queue tails.

        Parameters
        ----------
        tails : numpy.ndarray, shape (pool, level)
        messages : array_like, shape (pool, router), or None
            Idle servers that the routers know of, if they are told.
        """

    @abstractmethod
    def relaxation_time(self, tails: np.ndarray) -> float:
        """Return the time constant of the slowest mode at the fixed point with given tails."""
