"""The jobs at all servers, as kernels and those who call them see them.

Between its own arrivals a server evolves deterministically. It is brought up to date only when
somebody looks at it, so no list of events is needed.

A code is ``pool * levels + level``, as in :mod:`manyserver.simulation.server_kernel`; the number of
levels is a power of two, and a server's row has room for as many jobs. What a row holds is the
affair of the discipline: its module in :mod:`manyserver.simulation.jobs.disciplines` has a named
tuple of its own for the state, and says with :func:`implements` how the functions :func:`leave`,
:func:`update` and :func:`join` work on it.
"""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Protocol, Self

import numpy as np
from numba.extending import overload

from manyserver.model import System
from manyserver.sizes import SizeLaw

__all__ = [
    "Servers",
    "implements",
    "jobs_present",
    "join",
    "leave",
    "placed_codes",
    "update",
    "wider_codes",
]

MOST_ENTRIES = 1 << 28
"""Of the rows of all servers, two gigabytes."""


class Servers(Protocol):
    """The state of all servers, and then of servers that do not exist, which nobody prefers.

    A named tuple, in which there may be more than this.
    """

    @property
    def code(self) -> np.ndarray:
        """Shape (server,), uint32."""

    @property
    def due(self) -> np.ndarray:
        """Time of the next departure if nobody arrives; infinite if idle. Shape (server,)."""

    @property
    def rows(self) -> np.ndarray:
        """The jobs, shape (server * row,)."""

    @property
    def n_servers(self) -> np.int64:
        """Number of servers that do exist."""

    @classmethod
    def placed(
        cls,
        system: System,
        sizes: SizeLaw,
        jobs: Sequence[np.ndarray],
        levels: int,
        polls: int,
        generator: np.random.Generator,
    ) -> Self:
        """Put jobs on the servers at time zero, as they are found at a random time.

        Parameters
        ----------
        system, sizes
            As for a replica.
        jobs : sequence of numpy.ndarray
            Number of jobs at the servers of each pool.
        levels : int
            More than any of these.
        polls : int
            Servers that do not exist, at the end.
        generator : numpy.random.Generator
        """

    def wider(self, n_pools: int, levels: int) -> Self:
        """Double the number of levels."""

    def shift(self, levels: int, by: float) -> None:
        """Shift the origin of time, in place."""

    def busy_until(self, levels: int, speed: np.ndarray) -> np.ndarray:
        """Return when each server will be idle if nobody joins, shape (server,).

        At an idle server that may be any time up to now.
        """

    def promised(self, levels: int, now: float) -> float:
        """Return the time in the system after `now` of the jobs that are present.

        It is what of that time the records have counted or never will, less what they have not
        yet counted of the time between zero and now.
        """


def placed_codes(jobs: Sequence[np.ndarray], levels: int, polls: int) -> np.ndarray:
    """Return the codes of servers with so many jobs, those that do not exist at the end."""
    pools = np.repeat(np.arange(len(jobs)), [len(here) for here in jobs])
    code = np.full(len(pools) + polls, levels * len(jobs) - 1, dtype=np.uint32)
    code[: len(pools)] = pools * levels + np.concatenate(jobs)
    return code


def wider_codes(servers: Servers, n_pools: int, levels: int, row: int) -> np.ndarray:
    """Return the codes for twice as many levels, with rows of a length.

    Raises
    ------
    RuntimeError
        If there is no memory for so many jobs.
    """
    if row * len(servers.code) > MOST_ENTRIES:
        raise RuntimeError(
            f"a server holds {levels - 1} jobs: the queues do not fit into memory; is the system "
            "stable with these sizes?"
        )
    pool, level = np.divmod(servers.code.astype(np.int64), levels)
    code = (2 * pool * levels + level).astype(np.uint32)
    code[servers.n_servers :] = 2 * n_pools * levels - 1
    return code


def jobs_present(servers: Servers, levels: int) -> np.ndarray:
    """Return the jobs at every server, shape (server,)."""
    return servers.code[: servers.n_servers].astype(np.int64) % levels


# What a discipline implements. The tables are the `Rules` of the kernel.


def leave(
    server: Any, now: Any, servers: Any, tables: Any, records: Any, area: Any, end: Any
) -> Any:
    """Let the next job leave, which is due."""
    raise NotImplementedError


def update(
    server: Any, now: Any, servers: Any, tables: Any, records: Any, area: Any, end: Any
) -> Any:
    """Let all jobs leave that are due."""
    raise NotImplementedError


def join(
    server: Any, now: Any, size: Any, servers: Any, tables: Any, records: Any, batch: Any
) -> Any:
    """Let a job join."""
    raise NotImplementedError


def implements(function: Callable[..., Any], kind: type[Servers]) -> Callable[[Any], Any]:
    """Return a decorator: kernels compile this in place of a function for servers of a kind."""
    place = list(signature(function).parameters).index("servers")

    def register(own: Callable[..., Any]) -> Callable[..., Any]:
        options = {"nogil": True, "_nrt": False, "forceinline": True}

        @overload(function, jit_options=options, strict=False)
        def chosen(*types: Any) -> Any:
            return own if getattr(types[place], "instance_class", None) is kind else None

        return own

    return register
