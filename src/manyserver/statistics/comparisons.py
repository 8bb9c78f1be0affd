"""Many comparisons at once: p-values of differences, adjusted for their number."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

__all__ = ["holm", "p_value", "simultaneous_quantile"]


def p_value(ratio: ArrayLike, freedom: ArrayLike) -> np.ndarray:
    """Probability of a larger ratio of a difference to its standard error, by chance.

    Parameters
    ----------
    ratio : array_like
        Difference over standard error; its sign makes no difference.
    freedom : array_like
        Degrees of freedom behind the standard error, of the same shape; Student's t law is taken.

    Examples
    --------
    >>> p_value([0.0, 1.96], [31, 1e6]).round(3)
    array([1.  , 0.05])
    """
    return np.asarray(2 * stdtr(np.asarray(freedom, dtype=float), -np.abs(ratio)))


def holm(p_values: ArrayLike) -> np.ndarray:
    """Adjust p-values so that all those below a level are wrong together with that probability.

    Holm's method: the smallest p-value is multiplied by their number m, the next by m - 1, and so
    on, in increasing order. It does not need independence.

    Parameters
    ----------
    p_values : array_like, shape (comparison,)
        NaN is left out, and stays.

    Examples
    --------
    >>> holm([0.01, 0.5, 0.04])
    array([0.03, 0.5 , 0.08])
    """
    given = np.asarray(p_values, dtype=float)
    known = np.flatnonzero(~np.isnan(given))
    order = known[np.argsort(given[known])]
    factors = np.arange(len(order), 0, -1)
    adjusted = np.full(given.shape, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * given[order]), 1.0)
    return adjusted


def simultaneous_quantile(freedom: float, count: int, level: float = 0.05) -> float:
    """Return how many standard errors to each side let `count` intervals hold together.

    With probability ``1 - level``, by Bonferroni's inequality, whether independent or not.

    Examples
    --------
    >>> round(simultaneous_quantile(1e9, 1), 2), round(simultaneous_quantile(31, 48), 2)
    (1.96, 3.62)
    """
    return float(stdtrit(freedom, 1 - level / (2 * max(count, 1))))
