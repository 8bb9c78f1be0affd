"""A slow twin of the mean field where servers announce themselves: small steps, arrivals poured.

In every step servers fall back by what they serve, and then the arrivals of the step are poured
into the classes in the order of preference, until all are placed. Its error is of the order of
the step.
"""

import numpy as np

import manyserver as ms
from manyserver.policies import Policy


class Pouring:
    """The twin; masses are fractions of all servers, shape (pool, level)."""

    def __init__(self, system: ms.System, policy: Policy, levels: int):
        sampling = policy.sampling(system)
        self.system = system
        ranks = policy.rank_table(system, levels)
        announced = sampling.announced_levels(system, levels)
        self.announced = [announced & (ranks == r) for r in np.unique(ranks[announced])]
        self.drawn = [ranks == r for r in np.unique(ranks)] if sampling.branches else []
        self.d = sampling.branches[0].draws[0].count if sampling.branches else 0
        rooms = [levels if pool.buffer is None else pool.buffer for pool in system.pools]
        self.room = np.arange(levels) < np.array(rooms)[:, None]

    def run(self, tails: np.ndarray, horizon: float, steps: int) -> np.ndarray:
        """Queue tails at the horizon."""
        fractions = self.system.fractions[:, None]
        mass = -np.diff(tails, axis=1, append=0.0) * fractions
        step = horizon / steps
        served = step * self.system.speeds[:, None]
        for _ in range(steps):
            fall = served * mass[:, 1:]
            mass[:, 1:] -= fall
            mass[:, :-1] += fall
            self._pour(mass, self.system.arrival_rate * step)
        return np.asarray(np.cumsum(mass[:, ::-1], axis=1)[:, ::-1] / fractions)

    def _pour(self, mass: np.ndarray, amount: float) -> None:
        for classes in self.announced:
            while amount > 0 and (there := mass[classes].sum()) > 1e-15:
                poured = min(amount, there)
                self._join(mass, np.where(classes, mass * (poured / there), 0.0))
                amount -= poured
        if amount > 0 and self.drawn:
            joins = np.zeros_like(mass)
            after = mass.sum()
            for classes in self.drawn:
                here = mass[classes].sum()
                before, after = after, max(after - here, 0.0)
                if here > 0:
                    chosen = amount * (before**self.d - after**self.d) / here
                    joins += np.where(classes & self.room, mass * chosen, 0.0)
            self._join(mass, joins)

    @staticmethod
    def _join(mass: np.ndarray, joins: np.ndarray) -> None:
        mass -= joins
        mass[:, 1:] += joins[:, :-1]
