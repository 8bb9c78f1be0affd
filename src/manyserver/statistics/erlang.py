r"""Erlang's formulas for n servers: how often all of them are busy.

With offered load a, in M/M/n/n (calls that find no server are lost) and in M/M/n (they wait):

.. math:: B_n = \frac{a^n / n!}{\sum_{k \le n} a^k / k!}, \qquad
          C_n = \frac{n B_n}{n - a (1 - B_n)} .
"""

__all__ = ["erlang_b", "erlang_c"]


def erlang_b(servers: int, offered: float) -> float:
    """Compute the probability that a call is lost in M/M/n/n.

    Parameters
    ----------
    servers : int
        At least one.
    offered : float
        Arrival rate over the speed of a server, greater than zero.

    Returns
    -------
    float

    Notes
    -----
    By the recursion of its inverse, ``1 / B[k] = 1 + k / (a B[k - 1])``, of positive terms.

    Examples
    --------
    >>> round(erlang_b(10, 7.0), 10)
    0.078740883
    """
    inverse = 1.0
    for k in range(1, servers + 1):
        inverse = 1 + k / offered * inverse
        if inverse == float("inf"):
            return 0.0
    return 1 / inverse


def erlang_c(servers: int, offered: float) -> float:
    """Compute the probability that a call waits in M/M/n; one if it is unstable.

    Parameters
    ----------
    servers : int
        At least one.
    offered : float
        Arrival rate over the speed of a server, greater than zero.

    Examples
    --------
    >>> round(erlang_c(1, 0.7), 10)
    0.7
    """
    if offered >= servers:
        return 1.0
    lost = erlang_b(servers, offered)
    return servers * lost / (servers - offered * (1 - lost))
