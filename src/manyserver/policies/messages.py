"""Messages between servers and dispatcher.

A server that is announced reports when it becomes so, by a departure: with idle servers to announce
that is one message in a busy period. Where all servers are announced, whatever they hold, every
departure is reported. An arrival that looks at several servers asks each of them and gets an
answer; a server that is looked at alone is joined without asking. The dispatcher knows its own
arrivals.
"""

import numpy as np

from manyserver.model import System
from manyserver.policies.sampling import Sampling

__all__ = ["messages"]


def messages(
    system: System,
    sampling: Sampling,
    arrivals: np.ndarray,
    joins: np.ndarray,
    leaves: np.ndarray,
) -> np.ndarray:
    """Count the messages that go with arrivals and departures, or with rates of them.

    Parameters
    ----------
    system : System
    sampling : Sampling
    arrivals : numpy.ndarray, shape (...)
        All arrivals, blocked ones included.
    joins, leaves : numpy.ndarray, shape (..., pool, level)
        Accepted arrivals and departures, by the jobs that they find at the server.

    Returns
    -------
    numpy.ndarray, shape (...)

    Examples
    --------
    Two servers of three are idle; an arrival joins one of them, and later leaves it idle again:

    >>> import manyserver as ms
    >>> system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=3)
    >>> sampling = ms.policy("jiq").sampling(system)
    >>> float(messages(system, sampling, np.array(1.0), np.array([[1.0, 0]]), np.array([[0, 1.0]])))
    1.0
    """
    known = sampling.announced_levels(system, joins.shape[-1])
    if sampling.announced is None:
        return np.asarray(leaves.sum(axis=(-2, -1)))
    first = known.sum(axis=1, keepdims=True)
    last_unknown = (np.arange(joins.shape[-1]) == first) & (first > 0)
    reports = leaves[..., last_unknown].sum(axis=-1)
    asking = arrivals - joins[..., known].sum(axis=-1)
    return np.asarray(reports + sampling.queries * asking)
