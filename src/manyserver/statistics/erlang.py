r"""Erlang's formulas for n servers: how often all of them are busy, and how many are enough.

With offered load a, in M/M/n/n (calls that find no server are lost) and in M/M/n (they wait):

.. math:: B_n = \frac{a^n / n!}{\sum_{k \le n} a^k / k!}, \qquad
          C_n = \frac{n B_n}{n - a (1 - B_n)} .
"""

import math

from manyserver.checks import checked_count, checked_number

__all__ = ["erlang_b", "erlang_c", "staffing"]

MOST_SERVERS = 10_000_000


def erlang_b(n_servers: int, offered_load: float) -> float:
    """Compute the probability that a job is lost in M/M/n/n, which has no room to wait.

    Parameters
    ----------
    n_servers : int
        At least one.
    offered_load : float
        Arrival rate over the speed of a server, greater than zero.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    By the recursion of its inverse, ``1 / B[k] = 1 + k / (a B[k - 1])``, of positive terms. It is
    the same for every law of the sizes.

    Examples
    --------
    >>> round(erlang_b(10, 7.0), 10)
    0.078740883
    """
    n_servers = checked_count("n_servers", n_servers, most=MOST_SERVERS)
    offered_load = checked_number("offered_load", offered_load)
    inverse = 1.0
    for k in range(1, n_servers + 1):
        inverse = 1 + k / offered_load * inverse
        if inverse == float("inf"):
            return 0.0
    return 1 / inverse


def erlang_c(n_servers: int, offered_load: float) -> float:
    """Compute the probability that a job waits in M/M/n; one if it is unstable.

    Parameters
    ----------
    n_servers : int
        At least one.
    offered_load : float
        Arrival rate over the speed of a server, greater than zero.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> round(erlang_c(14, 10.0), 6)
    0.174132
    """
    lost = erlang_b(n_servers, offered_load)
    if offered_load >= n_servers:
        return 1.0
    return n_servers * lost / (n_servers - offered_load * (1 - lost))


def staffing(offered_load: float, waiting_probability: float, wait: float = 0.0) -> int:
    r"""Compute how many servers are enough that few jobs wait longer than given, in M/M/n.

    Parameters
    ----------
    offered_load : float
        Arrival rate over the speed of a server, greater than zero; up to a million.
    waiting_probability : float
        Largest probability that a job waits longer than `wait`, between 0 and 1. The service
        level of call centres is one less this.
    wait : float
        At least zero, in units of the mean time that a server works on a job.

    Returns
    -------
    int
        The smallest number of servers.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    :math:`P(V > t) = C_n e^{-(n - a) t}`. It takes about :math:`a + \beta \sqrt a` servers, where
    :math:`\beta` depends on the probability alone if `wait` is zero (square-root staffing,
    Halfin and Whitt 1981).

    Examples
    --------
    Ten jobs in service on average, and 80 % of all begin within a ninth of a mean service time
    (20 of 180 seconds):

    >>> staffing(10.0, 0.2, wait=20 / 180)
    14
    """
    offered_load = checked_number("offered_load", offered_load)
    if offered_load > MOST_SERVERS / 10:
        raise ValueError(f"offered_load = {offered_load:g}: must be at most {MOST_SERVERS // 10}")
    target = checked_number("waiting_probability", waiting_probability, below=1.0)
    wait = checked_number("wait", wait, closed=True)
    n = math.floor(offered_load) + 1
    lost = erlang_b(n, offered_load)
    while True:
        waits = n * lost / (n - offered_load * (1 - lost))
        if waits * math.exp(-(n - offered_load) * wait) <= target:
            return n
        n += 1
        lost = offered_load * lost / (n + offered_load * lost)
