"""Hybrid SQ(d): a pool by a fixed split, then the shortest of d queues in it."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

from manyserver.model import System
from manyserver.policies.base import (
    Policy,
    Sampling,
    checked_choices_or_list,
    match_pools,
    one_pool,
)
from manyserver.policies.split import checked_probabilities, naive_split, optimal_split

__all__ = ["HybridSQ"]


@dataclass(frozen=True)
class HybridSQ(Policy):
    """Pick a pool at random, then join the shortest of `d` queues in it (arXiv:1311.5806).

    Parameters
    ----------
    d : int or sequence of int, shape (pool,)
        Number of servers looked at in the pool that was picked, at least one.
    split : {"optimal", "naive"} or sequence of float, shape (pool,)
        Probability of each pool: those that minimise the mean sojourn time in the limit of many
        servers, those in proportion to the pools' capacity, or given ones that sum to one.
    replacement : bool
        Whether the same server may be drawn twice.
    """

    name: ClassVar[str] = "hybrid_sq"
    title: ClassVar[str] = "Hybrid SQ"

    d: int | tuple[int, ...]
    split: Literal["optimal", "naive"] | tuple[float, ...] = "optimal"
    replacement: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "d", checked_choices_or_list(self.d, smallest=1))
        if isinstance(self.split, str):
            if self.split not in ("optimal", "naive"):
                raise ValueError(
                    f"split = {self.split!r}: must be 'optimal', 'naive', or one probability "
                    "for every pool"
                )
        else:
            object.__setattr__(self, "split", checked_probabilities(self.split))

    def sampling(self, system: System) -> Sampling:
        """Look at d servers of a pool picked at random."""
        d = self.d if isinstance(self.d, tuple) else (self.d,) * len(system.pools)
        match_pools("d", d, system)
        if self.split == "optimal":
            probabilities = optimal_split(system, d)
        elif self.split == "naive":
            probabilities = naive_split(system)
        else:
            probabilities = self.split
            match_pools("split", probabilities, system)
        return one_pool(probabilities, d, self.replacement)

    def check(self, system: System) -> None:
        """Refuse a system that this policy cannot serve; see :meth:`Policy.check`."""
        if self.split == "optimal" and system.load < 1:
            # The best split is as stable as the naive one, and takes long to find.
            replace(self, split="naive").check(system)
        else:
            super().check(system)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer few jobs."""
        return Fraction(level)
