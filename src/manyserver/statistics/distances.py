"""Distances between probability laws, each with a bound of its error.

The laws come with standard errors whose correlations are not known. Errors are therefore added
up, not in quadrature: what is given as the error of a distance is the largest standard error that
it could have.
"""

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["kolmogorov", "total_variation", "wasserstein"]

Distance = tuple[float, float]


def wasserstein(tail: ArrayLike, other: ArrayLike, errors: ArrayLike = 0.0) -> Distance:
    """Wasserstein-1 distance between two laws on 0, 1, 2, ...

    Parameters
    ----------
    tail, other : array_like, shape (level,)
        Probabilities of at least k, k = 0, 1, ...; an array that ends earlier goes on with zeros.
    errors : array_like, shape (level,)
        Standard errors of `tail`.

    Returns
    -------
    tuple of float
        The distance, and its standard error or more.

    Examples
    --------
    >>> wasserstein([1, 0.5, 0.25], [1, 0.5])
    (0.25, 0.0)
    """
    difference, error = _difference(tail, other, errors)
    return float(np.abs(difference).sum()), float(error.sum())


def kolmogorov(tail: ArrayLike, other: ArrayLike, errors: ArrayLike = 0.0) -> Distance:
    """Kolmogorov distance, the largest difference between the tails of two laws on 0, 1, 2, ...

    Parameters
    ----------
    tail, other, errors
        As for :func:`wasserstein`.

    Returns
    -------
    tuple of float
        The distance, and the largest standard error of a level.

    Examples
    --------
    >>> kolmogorov([1, 0.75, 0.25], [1, 0.5])
    (0.25, 0.0)
    """
    difference, error = _difference(tail, other, errors)
    return float(np.abs(difference).max()), float(error.max())


def total_variation(difference: ArrayLike, errors: ArrayLike = 0.0) -> Distance:
    """Total variation between two laws, given what they differ by.

    Parameters
    ----------
    difference : array_like
        Probabilities under one law minus those under the other, for every value.
    errors : array_like of the same shape
        Standard errors of `difference`.

    Returns
    -------
    tuple of float
        The distance, and its standard error or more.

    Examples
    --------
    >>> total_variation([0.1, 0.1, -0.2])
    (0.2, 0.0)
    """
    shape = np.shape(difference)
    error = np.broadcast_to(np.asarray(errors, dtype=float), shape)
    return float(np.abs(difference).sum() / 2), float(error.sum() / 2)


def _difference(
    tail: ArrayLike, other: ArrayLike, errors: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    one, two = (np.atleast_1d(np.asarray(part, dtype=float)) for part in (tail, other))
    levels = max(one.size, two.size)
    error = np.broadcast_to(np.asarray(errors, dtype=float), one.shape)
    one, two, error = (np.pad(part, (0, levels - part.size)) for part in (one, two, error))
    return one - two, error
