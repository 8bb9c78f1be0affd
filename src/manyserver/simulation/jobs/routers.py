"""PULL: which router knows of which idle server.

A server that becomes idle tells a router that is drawn uniformly. A router picks one of the
servers that told it; a server that is joined otherwise takes its message back.
"""

from typing import NamedTuple

import numpy as np

from manyserver.policies import Policy
from manyserver.simulation.jobs.records import inlined
from manyserver.simulation.random import next_word, wide_product

__all__ = ["Routers", "ask", "make_routers", "take_back", "tell"]


class Routers(NamedTuple):
    """The messages of idle servers; without routers all arrays but `router` are empty."""

    held: np.ndarray
    """Messages that each router holds, shape (router,)."""
    listed: np.ndarray
    """Servers that told a router, in the first places of its row, shape (router, server)."""
    router: np.ndarray
    """Router that a server told, shape (server,)."""
    spot: np.ndarray
    """Place of a server in the row of that router, shape (server,)."""


def make_routers(policy: Policy, levels: np.ndarray, generator: np.random.Generator) -> Routers:
    """Give the messages of the idle servers to random routers.

    Parameters
    ----------
    policy : Policy
    levels : numpy.ndarray, shape (server,)
        Jobs at every server.
    generator : numpy.random.Generator
    """
    if not policy.n_routers:
        nothing = np.zeros(0, dtype=np.int64)
        return Routers(nothing, np.zeros((0, 0), dtype=np.int64), nothing, nothing)
    n = len(levels)
    routers = Routers(
        np.zeros(policy.n_routers, dtype=np.int64),
        np.zeros((policy.n_routers, n), dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
    )
    idle = np.flatnonzero(levels == 0)
    told = generator.integers(policy.n_routers, size=len(idle))
    for server, router in zip(idle, told, strict=True):
        place = routers.held[router]
        routers.listed[router, place] = server
        routers.router[server], routers.spot[server] = router, place
        routers.held[router] += 1
    return routers


@inlined
def _draw(rng, bound):  # type: ignore[no-untyped-def]
    word, rng[8], rng[9], rng[10], rng[11] = next_word(rng[8], rng[9], rng[10], rng[11])
    number, _ = wide_product(word, np.uint64(bound))
    return np.int64(number)


@inlined
def tell(routers, server, rng):  # type: ignore[no-untyped-def]
    """Tell a random router that a server is idle."""
    router = _draw(rng, routers.held.size)
    place = routers.held[router]
    routers.listed[router, place] = server
    routers.router[server] = router
    routers.spot[server] = place
    routers.held[router] = place + 1


@inlined
def take_back(routers, server):  # type: ignore[no-untyped-def]
    """Take back the message of a server."""
    router, place = routers.router[server], routers.spot[server]
    last = routers.held[router] - 1
    other = routers.listed[router, last]
    routers.listed[router, place] = other
    routers.spot[other] = place
    routers.held[router] = last


@inlined
def ask(routers, rng):  # type: ignore[no-untyped-def]
    """Return a server that told a random router, each alike, or -1 if none did."""
    router = _draw(rng, routers.held.size)
    held = routers.held[router]
    if held == 0:
        return np.int64(-1)
    return routers.listed[router, _draw(rng, held)]
