"""The compiled part: join the shortest queue, on the numbers of servers with so many customers.

Events come at the constant rate of all arrivals and all servers. A server that tries to finish a
customer has a rank from 0 to n - 1, longest queue first. It has i customers if `queues[i] <= rank
< queues[i - 1]`, where ``queues[i]`` is the number of servers with more than i customers, and is
idle if its rank is not below ``queues[0]``.

Only functions import this module, so that the package can be imported without numba.
"""

from manyserver.machine_code import njit

__all__ = ["follow"]


@njit(inline="always")
def _arrive(queues, n):  # type: ignore[no-untyped-def]
    """Let a customer join a shortest queue; return the level, or -1 where the array ends."""
    for level in range(queues.size):
        if queues[level] < n:
            queues[level] += 1
            return level
    return -1


@njit(inline="always")
def _depart(queues, rank):  # type: ignore[no-untyped-def]
    """Let the server of a rank finish a customer; return the level, or -1 if it is idle."""
    level = 0
    while level < queues.size and queues[level] > rank:
        level += 1
    if level:
        queues[level - 1] -= 1
    return level - 1


@njit(cache=True, nogil=True)
def follow(queues, n, ranks, ends, record):  # type: ignore[no-untyped-def]
    """Play events, and write down the first two queues at given events.

    Parameters
    ----------
    queues : array of int64, shape (level,)
        Changed in place.
    n : int
        Servers.
    ranks : array of int64, shape (event,)
        Rank of the server that tries to finish a customer, or -1 for an arrival.
    ends : array of int64, shape (time,)
        Number of events before each time, in ascending order.
    record : array of int64, shape (time, 2)
        Written to.
    """
    event = 0
    for time in range(ends.size):
        while event < ends[time]:
            if ranks[event] < 0:
                _arrive(queues, n)
            else:
                _depart(queues, ranks[event])
            event += 1
        record[time, 0] = queues[0]
        record[time, 1] = queues[1]
