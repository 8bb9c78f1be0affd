"""What a dispatching policy is: a sampling rule, a preference, and what breaks ties.

An arrival looks at some servers (the *sampling*) and joins the one with the smallest
*preference*, a number that depends on the jobs already there and on the speed of the server.
Everything computed in this package reads the policy through :meth:`Policy.sampling` and
:meth:`Policy.rank_table` and knows nothing else about it.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from manyserver.checks import checked_count, checked_flag, checked_kind
from manyserver.model import System, UnstableSystem
from manyserver.policies.sampling import (
    Branch,
    Draw,
    Sampling,
    all_servers,
    full,
    one_pool,
    per_pool,
    whole_system,
)
from manyserver.policies.stability import capacity_of, forced_into, overloaded_pools

__all__ = [
    "Branch",
    "Draw",
    "Policy",
    "Sampling",
    "all_servers",
    "check_fit",
    "one_pool",
    "per_pool",
    "whole_system",
]

MOST_CHOICES = 100_000
"""With more, an arrival might as well look at all servers."""
MOST_WEIGHT = 1000
"""A cycle has as many turns as the servers have weight."""
Ties = Literal["fastest", "uniform"]


def checked_choices(value: object, smallest: int = 1, name: str = "d") -> int:
    """Return `value` as a number of choices, or raise ValueError."""
    return checked_count(name, value, smallest, most=MOST_CHOICES)


def checked_choices_per_pool(value: object, smallest: int = 0) -> tuple[int, ...]:
    """Return `value` as a number of choices for every pool, or raise ValueError."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)) or not len(value):
        raise ValueError(
            f"d = {value!r}: must be a list with one integer >= {smallest} for every pool"
        )
    choices = tuple(checked_choices(item, smallest) for item in value)
    if not any(choices):
        raise ValueError(f"d = {list(choices)}: at least one pool must be looked at")
    return choices


def checked_choices_or_list(value: object, smallest: int = 0) -> int | tuple[int, ...]:
    """Return `value` as one number of choices or as one for every pool, or raise ValueError."""
    if isinstance(value, str) or np.ndim(value) == 0:  # type: ignore[arg-type]
        return checked_choices(value)
    return checked_choices_per_pool(value, smallest)


def checked_weights(value: object) -> tuple[int, ...]:
    """Return `value` as a weight for every pool, or raise ValueError."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)) or not len(value):
        raise ValueError(f"weights = {value!r}: must be a list with one integer >= 1 for each pool")
    return tuple(checked_count("weights", item, 1, most=MOST_WEIGHT) for item in value)


def checked_ties(value: object) -> None:
    """Raise ValueError unless `value` says who wins among equal preferences."""
    if value not in ("fastest", "uniform"):
        raise ValueError(f"ties = {value!r}: must be 'uniform' or 'fastest'")


def match_pools(name: str, values: Sequence[object], system: System) -> None:
    """Raise ValueError unless a parameter has one value for every pool."""
    if len(values) != len(system.pools):
        raise ValueError(
            f"{name} = {list(values)}: has {len(values)} values; must have one for each of the "
            f"{len(system.pools)} pools"
        )


class Policy(ABC):
    """A dispatching policy; memoryless, unless it is simulated job by job.

    A subclass is a frozen dataclass whose fields are the policy's parameters. It says what the
    policy looks at and what it prefers, and has a `name` and a `title`. Every function takes an
    object of it; by its name it is found if a module in this package, or an entry point, defines it
    (:mod:`manyserver.registry`).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    replacement: bool = False

    def __post_init__(self) -> None:
        checked_flag("replacement", self.replacement)

    @property
    def memoryless(self) -> "Policy":
        """The same policy without memory: itself, unless it has some.

        It looks at the same servers, and sends as many jobs to each pool with many servers.
        """
        return self

    @property
    def n_routers(self) -> int:
        """Routers that keep messages of idle servers; 0 if servers are known to all or to none."""
        return 0

    def turns(self, system: System) -> tuple[int, ...] | None:
        """Return how many turns a server of each pool has in a cycle; None if there is no cycle."""
        return None

    @property
    def by_work(self) -> bool:
        """Whether servers are compared by the work left, and not by their jobs."""
        return False

    @property
    def central(self) -> bool:
        """Whether jobs wait in one queue, and not at the servers."""
        return False

    @property
    def follows_jobs(self) -> bool:
        """Whether more counts than the jobs at every server, so that each job is simulated."""
        return False

    @property
    def ties(self) -> Ties:
        """Who wins among equal preferences: each alike, or the fastest (equals: each alike)."""
        return "uniform"

    @abstractmethod
    def sampling(self, system: System) -> Sampling:
        """Say which servers an arrival looks at."""

    @abstractmethod
    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Rate a server that holds `level` jobs; the smallest value wins.

        The value must not decrease with `level`.
        """

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters by name, as plain JSON values, in alphabetical order."""
        values = {name: getattr(self, name) for name in self.parameter_names()}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in sorted(values.items())
        }

    def rank_table(self, system: System, levels: int) -> np.ndarray:
        """Turn the preference into integers.

        Parameters
        ----------
        system : System
            Gives the speeds of the pools.
        levels : int
            Number of levels, at least one.

        Returns
        -------
        numpy.ndarray of int64, shape (pool, level)
            Position of (pool, level) in the order of preference, from 0. Equal ranks are ties,
            broken uniformly among the servers looked at. Full servers come last, whatever the
            policy prefers: an arrival is blocked if all servers that it looks at are full.
        """
        speeds = [pool.speed for pool in system.pools]
        preferences = [[self.preference(k, speed) for k in range(levels)] for speed in speeds]
        # The same order in integers, which sort and hash much faster than fractions.
        unit = math.lcm(*(value.denominator for value in itertools.chain(*preferences)))
        slowness = [-sorted(speeds).index(speed) * (self.ties == "fastest") for speed in speeds]
        keys = [
            [(value.numerator * (unit // value.denominator), tie) for value in row]
            for row, tie in zip(preferences, slowness, strict=True)
        ]
        order = {key: rank for rank, key in enumerate(sorted(set(itertools.chain(*keys))))}
        ranks = np.array([[order[key] for key in row] for row in keys], dtype=np.int64)
        ranks[full(system, levels)] = len(order)
        return ranks

    def check(self, system: System) -> None:
        """Refuse a system that this policy cannot serve.

        Raises
        ------
        ValueError
            If the parameters do not fit the pools, or more distinct servers are asked for than
            there are.
        UnstableSystem
            If some set of pools receives more work than it can do. An arrival is forced into a
            set of pools when all the servers it looks at belong to it; each set must be able to
            serve the arrivals forced into it (for SQ(d) on the whole system, every set B of
            pools: arrival_rate * fraction(B)**d < capacity(B)).
        """
        sampling = self.memoryless.sampling(system)
        if system.n_servers is not None and not sampling.replacement:
            self._check_draws(sampling, system)
        # Draws are made only while no server is announced; how often depends on the queues.
        pools = None if sampling.depends_on_all else overloaded_pools(system, sampling)
        if pools is not None:
            which = f"pool {pools[0]}" if len(pools) == 1 else f"pools {list(pools)} together"
            raise UnstableSystem(
                f"arrival_rate = {system.arrival_rate:g}: policy {self.name} sends {which} at "
                f"least {forced_into(system, sampling, pools):.6g} jobs per unit of time and "
                "server of the system; must be below their capacity of "
                f"{float(capacity_of(system, pools)):.6g}",
                pools=pools,
            )

    def _check_draws(self, sampling: Sampling, system: System) -> None:
        for draw in itertools.chain(*(branch.draws for branch in sampling.branches)):
            available = sum(system.counts[pool] for pool in draw.pools)
            if draw.count > available:
                where = f"pool {draw.pools[0]}" if len(draw.pools) == 1 else "the system"
                raise ValueError(
                    f"d = {draw.count}: must be at most {available}, the number of servers in "
                    f"{where}, unless replacement is true"
                )


def check_fit(system: object, policy: object) -> None:
    """Refuse what is no system or no policy, and a system that the policy cannot serve.

    Raises
    ------
    ValueError
        If one is something else, or as in :meth:`Policy.check`.
    UnstableSystem
        As in :meth:`Policy.check`.
    """
    known = checked_kind("system", system, System, "a System")
    checked_kind("policy", policy, Policy, "a policy, as manyserver.policy makes it").check(known)
