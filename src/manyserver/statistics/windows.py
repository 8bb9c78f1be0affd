"""The window of a fit: the points from some `x` on, up to the largest, that are on its law.

All fits find it alike: the smallest `x` are dropped one by one until a fit to the others is
accepted, by chi-square, say.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

__all__ = ["FEWEST_POINTS", "unfit", "widest_window"]

FEWEST_POINTS = 3
T = TypeVar("T")


def widest_window(
    size: int, fit: Callable[[int], T], accepted: Callable[[T], bool]
) -> tuple[int, T]:
    """Find the widest window in which a fit is accepted.

    Parameters
    ----------
    size : int
        Number of points, at least `FEWEST_POINTS`.
    fit : callable
        Fits the points from one on, given by its number.
    accepted : callable
        Whether a fit will do.

    Returns
    -------
    first : int
        Number of the first point; with the fewest points if no fit is accepted.
    found : object
        The fit.

    Examples
    --------
    >>> values = [9, 1, 1, 2]
    >>> widest_window(4, lambda first: max(values[first:]), lambda largest: largest < 3)
    (1, 2)
    """
    for first in range(size - FEWEST_POINTS + 1):
        found = fit(first)
        if accepted(found):
            break
    return first, found


def unfit(values: np.ndarray, one_sign: bool) -> str:
    """Say why values cannot be fitted; empty if they can.

    Parameters
    ----------
    values : numpy.ndarray, shape (point,)
        Finite, not zero.
    one_sign : bool
        Whether the law cannot change its sign.
    """
    if values.size < FEWEST_POINTS:
        return f"{values.size} usable points, {FEWEST_POINTS} needed"
    if one_sign and np.unique(np.sign(values)).size > 1:
        return "the signal changes sign"
    return ""
