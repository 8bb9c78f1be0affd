r"""Bounds of mean queues that hold for every number of servers.

They follow from the Stein equation (:mod:`manyserver.diffusion.halfin_whitt.fluid_model.stein`):
Theorem 2 of arXiv:1801.05121, with the constants that its proof gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import scipy

from manyserver.checks import checked_count, checked_flag
from manyserver.diffusion.halfin_whitt.checks import check_beta, check_n

__all__ = ["mean_waiting_bound", "queue_bound", "violation"]


def mean_waiting_bound(beta: float, *, sharper: bool = False) -> float:
    r"""Bound the mean number of waiting customers over sqrt(n), for every n.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.
    sharper : bool
        Take the factor 1/2 of Taylor's remainder into account.

    Returns
    -------
    float
        :math:`C(\beta) = \beta + 18/\beta + 2\sqrt6 \ge E Q_2/\sqrt n`; the sharper one is
        :math:`\beta + 7/\beta + 2\sqrt3`.

    Notes
    -----
    Theorem 2 of arXiv:1801.05121: (3.18) gives :math:`\kappa + (12+6\kappa/(\kappa-\beta))/\beta`,
    which is least at :math:`\kappa = \beta + \sqrt6`.

    Examples
    --------
    >>> round(mean_waiting_bound(1.0), 3), round(mean_waiting_bound(1.0, sharper=True), 3)
    (23.899, 11.464)
    """
    beta = check_beta(beta)
    if checked_flag("sharper", sharper):
        return beta + 7 / beta + 2 * math.sqrt(3)
    return beta + 18 / beta + 2 * math.sqrt(6)


def queue_bound(beta: float, n: int, i: int) -> float:
    r"""Bound the mean number of servers with at least i customers.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.
    n : int
        Servers; the arrival rate :math:`1-\beta/\sqrt n` must be positive.
    i : int
        Number of customers, at least 1.

    Returns
    -------
    float
        For i = 1, :math:`\beta\sqrt n`, which is the mean number of *idle* servers exactly; for
        i = 2, :math:`C(\beta)\sqrt n \ge E Q_2`; for i >= 3 a bound of :math:`E Q_i` that does
        not grow with n, but says nothing (infinity) about a single server.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    Theorem 2 and eq. (A.6) of arXiv:1801.05121, in the latter minimised over the level.

    Examples
    --------
    >>> round(queue_bound(1.0, 100, 3), 1)
    1896.5
    """
    # Imported here as it takes long.

    beta = check_beta(beta)
    n = check_n(n, beta)
    i = checked_count("i", i)
    if i == 1:
        return beta * math.sqrt(n)
    constant = mean_waiting_bound(beta)
    if i == 2:
        return constant * math.sqrt(n)
    spare = beta / math.sqrt(n)
    least = max(spare, 1 / n)
    if n == 1:
        return math.inf

    def bound(part: float) -> float:
        level = least + part * (1 - least)
        factor = (12 + 6 * level / (level - spare)) / beta
        return factor * constant / ((1 - level) * (level - 1 / n))

    # Between two poles, log(bound) is a sum of convex functions, so there is one minimum.
    best = scipy.optimize.minimize_scalar(
        bound, bounds=(0, 1), method="bounded", options={"xatol": 1e-10}
    )
    return float(best.fun)


def violation(beta: float, n: int, queue_means: Sequence[float]) -> float:
    """Return the largest amount by which mean queues violate their bounds.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.
    n : int
        Servers.
    queue_means : sequence of float
        Mean numbers of servers with at least 1, 2, ... customers.

    Returns
    -------
    float
        Of ``n - E Q_1``, ``E Q_2``, ``E Q_3``, ...; the first of them equals its bound, so it is
        rounding at most if all hold.

    Examples
    --------
    >>> violation(1.0, 100, [90.0, 5.99961])
    0.0
    """
    if not len(queue_means):
        raise ValueError("queue_means is empty: must have at least one mean")
    amounts = [n - queue_means[0], *queue_means[1:]]
    return max(mean - queue_bound(beta, n, i) for i, mean in enumerate(amounts, start=1))
