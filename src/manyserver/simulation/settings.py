"""The parameters of a simulation, checked."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from manyserver.model import System
from manyserver.simulation.replica import step_rate

__all__ = ["DEFAULT_PRECISION", "Settings", "checked_settings", "checked_start"]

DEFAULT_PRECISION = 0.0005
"""Precision if neither a precision nor a horizon is asked for."""


@dataclass(frozen=True)
class Settings:
    """How long to simulate, and how; see :func:`manyserver.simulate`."""

    seed: tuple[int, ...]
    precision: float | None
    horizon: float | None
    replications: int
    threads: int
    max_events: float
    control_variates: bool
    moments: bool


def checked_settings(
    system: System,
    *,
    seed: int | Sequence[int] = 1,
    precision: float | None = None,
    horizon: float | None = None,
    replications: int = 8,
    threads: int | None = None,
    max_events: float = 1e10,
    control_variates: bool = True,
    moments: bool = False,
) -> Settings:
    """Check the parameters of :func:`manyserver.simulate`.

    Raises
    ------
    ValueError
        If one is out of its range; names it, its value, and what is allowed.
    """
    if system.n_servers is None:
        raise ValueError("n_servers = None: must be an integer for a simulation, not the limit")
    words = tuple(seed) if isinstance(seed, Sequence) else (seed,)
    if not words or not all(_integer(word, 0) for word in words):
        raise ValueError(f"seed = {seed!r}: must be an integer >= 0, or a sequence of them")
    if precision is not None and horizon is not None:
        raise ValueError(
            f"precision = {precision!r} and horizon = {horizon!r}: only one of them can be given"
        )
    if precision is None and horizon is None:
        precision = DEFAULT_PRECISION
    if precision is not None and not (_number(precision) and precision < 1):
        raise ValueError(f"precision = {precision!r}: must be a number between 0 and 1")
    if horizon is not None and not _number(horizon):
        raise ValueError(f"horizon = {horizon!r}: must be a number greater than zero")
    if not _integer(replications, 1):
        raise ValueError(f"replications = {replications!r}: must be an integer >= 1")
    if threads is not None and not _integer(threads, 1):
        raise ValueError(f"threads = {threads!r}: must be an integer >= 1, or None for all cores")
    if not _number(max_events):
        raise ValueError(f"max_events = {max_events!r}: must be a number greater than zero")
    if horizon is not None:
        steps = float(horizon) * step_rate(system)
        if steps * replications > max_events:
            raise ValueError(
                f"horizon = {horizon!r}: takes some {steps:.2g} arrivals and tries to depart in "
                f"each of {replications} replications; all of them must be at most max_events = "
                f"{max_events:g}"
            )
    threads = threads or os.cpu_count() or 1
    seeds = tuple(int(word) for word in words)
    for name, value in {"control_variates": control_variates, "moments": moments}.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} = {value!r}: must be True or False")
    return Settings(
        seeds,
        precision,
        horizon,
        replications,
        threads,
        float(max_events),
        control_variates,
        moments,
    )


def _integer(value: object, smallest: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= smallest


def _number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and 0 < float(value) < math.inf


def checked_start(system: System, tails: object) -> np.ndarray:
    """Check the queue tails that a simulation starts from, shape (pool, level).

    Raises
    ------
    ValueError
        If they are no tails, or not those of this system's pools.
    """
    start = np.asarray(tails, dtype=float)
    if start.ndim != 2 or len(start) != len(system.pools) or not start.shape[1]:
        raise ValueError(
            f"start: has shape {start.shape}; must have one row for each of the "
            f"{len(system.pools)} pools, and a column for every level"
        )
    if not ((start[:, 0] == 1).all() and (np.diff(start) <= 0).all() and (start >= 0).all()):
        raise ValueError("start: must fall from 1 at level 0, and not below 0")
    for number, (pool, tail) in enumerate(zip(system.pools, start, strict=True)):
        if pool.buffer is not None and tail[pool.buffer + 1 :].any():
            raise ValueError(
                f"start: has more than {pool.buffer} jobs at servers of pool {number}; must be 0 "
                "above its buffer"
            )
    return start
