"""The parameters of a simulation, checked."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyserver import defaults
from manyserver.checks import checked_array, checked_count, checked_flag, checked_number
from manyserver.model import System
from manyserver.simulation.replica import step_rate

__all__ = ["Settings", "checked_settings", "checked_start"]

BYTES_PER_SERVER = 1
"""Of the kernel that goes server by server, at least."""


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
    replications: int = defaults.REPLICATIONS,
    threads: int | None = None,
    max_events: float = defaults.MAX_EVENTS,
    control_variates: bool = defaults.CONTROL_VARIATES,
    moments: bool = defaults.MOMENTS,
    simulates_jobs: bool = False,
) -> Settings:
    """Check the parameters of :func:`manyserver.simulate`.

    Raises
    ------
    ValueError
        If one is out of its range; names it, its value, and what is allowed.
    """
    if system.n_servers is None:
        raise ValueError("n_servers = None: must be an integer for a simulation, not the limit")
    needed = BYTES_PER_SERVER * system.n_servers
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise ValueError(
            f"n_servers = {system.n_servers}: a simulation needs at least {needed / 2**30:.3g} GiB "
            f"of memory; must need at most {memory / 2**30:.3g} GiB, what this machine has. The "
            "limit n_servers = None needs none of it"
        )
    words = tuple(seed) if isinstance(seed, Sequence) else (seed,)
    if not words:
        raise ValueError(f"seed = {seed!r}: must be an integer >= 0, or a sequence of them")
    if precision is not None and horizon is not None:
        raise ValueError(
            f"precision = {precision!r} and horizon = {horizon!r}: only one of them can be given"
        )
    if precision is None and horizon is None:
        precision = defaults.PRECISION_OF_JOBS if simulates_jobs else defaults.PRECISION
    if threads is not None:
        threads = checked_count("threads", threads, otherwise="None for all cores")
    settings = Settings(
        tuple(checked_count("seed", word, 0, otherwise="a sequence of them") for word in words),
        None if precision is None else checked_number("precision", precision, below=1),
        None if horizon is None else checked_number("horizon", horizon),
        checked_count("replications", replications),
        threads or os.cpu_count() or 1,
        checked_number("max_events", max_events),
        checked_flag("control_variates", control_variates),
        checked_flag("moments", moments),
    )
    if settings.horizon is not None:
        steps = settings.horizon * step_rate(system)
        if steps * settings.replications > settings.max_events:
            raise ValueError(
                f"horizon = {horizon!r}: takes some {steps:.2g} arrivals and potential departures "
                f"in each of {settings.replications} replications; all of them must be at most "
                f"max_events = {settings.max_events:g}"
            )
    return settings


def checked_start(system: System, tails: object) -> np.ndarray:
    """Check the queue tails that a simulation starts from, shape (pool, level).

    Raises
    ------
    ValueError
        If they are no tails, or not those of this system's pools.
    """
    start = checked_array("start", tails, "queue tails (pool, level)")
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
