r"""The first term of a law whose next terms are not known, with an error that covers them.

A quantity at x follows a law such as :math:`a x^b (1 + c_1 x^{-s} + c_2 x^{-2s} + \dots)`, of which
only the first term is wanted. Least squares with one or two terms gives an error that knows nothing
of the rest. Here the series is a random function: in :math:`v = (x_{\min} / x)^s`, which is one at
the first point and zero in the limit, its coefficients are independent and normal, with standard
deviations :math:`\tau \rho^{k/2}`, and the data tell the size :math:`\tau`. What is known of the
first term then contains all that the following ones may be (the constrained fits of Lepage et al.,
Nuclear Physics B Proc. Suppl. 106, 2002; for a sequence without noise it is Richardson's
extrapolation with an error). No window has to be chosen: points far from the limit say how large
the series is, and little else.

:math:`\tau` and, where errors are not known, the size of the noise have flat laws on a logarithmic
scale, but large series are less likely, and the result is averaged over both.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Extrapolation", "averaged", "extrapolate"]

SHRINKING = 0.9
"""Variance of a coefficient of the series, relative to the one before (rho)."""
SMALL = 0.5
"""Size of the series with which laws are compared."""
SIZES = np.append(SMALL, np.geomspace(1, 10, 20))
"""Sizes of the series at the first point. One below 1 is not told from noise, and would make errors
too small if it were believed: it has no weight in the average."""
TRUST = 0.1
"""Power with which the probability of the data counts for a size: series of real laws, with a
crossover for instance, are no random functions, and say less about themselves than these would."""
NOISES = np.geomspace(1e-11, 1e-2, 19)
"""Relative errors of data that come without."""
SMALLEST_EIGENVALUE = 1e-13


class Extrapolation(NamedTuple):
    """What is known of the first term."""

    parameters: np.ndarray
    """Of the first term, shape (parameter,)."""
    errors: np.ndarray
    """Their standard errors."""
    second: float
    """Coefficient of v in the series."""
    left: float
    """Standard deviation of the series at the last point: what the law there is off by."""
    values: np.ndarray
    """What the law, with its series, says at the points, shape (point,)."""
    chi_square: float
    """Squared distance from the data in standard errors, those of the series included."""
    freedom: int
    """What it should be, on average."""
    log_evidence: float
    """Logarithm of the probability of the data if the series is small; among laws with the same
    number of parameters, the more probable one has more of it."""


def averaged(found: Sequence[Extrapolation]) -> Extrapolation:
    """Return what several laws say together, each as much as it makes the data probable.

    Parameters
    ----------
    found : sequence of Extrapolation
        Of the same parameters.
    """
    if len(found) == 1:
        return found[0]
    evidence = np.array([one.log_evidence for one in found])
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    parameters = np.array([one.parameters for one in found])
    mean = weights @ parameters
    spread = weights @ (np.array([one.errors for one in found]) ** 2 + (parameters - mean) ** 2)
    return Extrapolation(
        parameters=mean,
        errors=np.sqrt(spread),
        second=math.nan,
        left=float(weights @ [one.left for one in found]),
        values=weights @ np.array([one.values for one in found]),
        chi_square=float(weights @ [one.chi_square for one in found]),
        freedom=found[0].freedom,
        log_evidence=float(evidence.max() + np.log(weights.mean())),
    )


def extrapolate(
    terms: np.ndarray,
    values: np.ndarray,
    errors: np.ndarray | None,
    closeness: np.ndarray,
) -> Extrapolation:
    """Fit ``terms @ parameters + series``.

    Parameters
    ----------
    terms : numpy.ndarray, shape (point, parameter)
    values : numpy.ndarray, shape (point,)
        Of order one, or logarithms.
    errors : numpy.ndarray, shape (point,), or None
        Their standard errors; None if they are not known, and all of one size.
    closeness : numpy.ndarray, shape (point,)
        The variable v of the series, one at most.

    Returns
    -------
    Extrapolation
    """
    products = np.outer(closeness, closeness)
    series = products / (1 - SHRINKING * products)
    noises, noise = (NOISES, np.ones_like(values)) if errors is None else (np.ones(1), errors)
    size, scale = (grid.ravel() for grid in np.meshgrid(SIZES, noises, indexing="ij"))
    covariance = (size**2)[:, None, None] * series
    index = np.arange(values.size)
    covariance[:, index, index] += (scale[:, None] * noise) ** 2
    deviation = np.sqrt(covariance[:, index, index])
    eigenvalues, vectors = np.linalg.eigh(covariance / deviation[:, :, None] / deviation[:, None])
    roots = np.sqrt(np.maximum(eigenvalues, SMALLEST_EIGENVALUE))
    white = np.swapaxes(vectors, 1, 2) / roots[:, :, None] / deviation[:, None, :]
    design, response = white @ terms, white @ values
    left, triangle = np.linalg.qr(design)
    fitted = np.einsum("gpk,gp->gk", left, response)
    parameters = np.linalg.solve(triangle, fitted[..., None])[..., 0]
    rest = response - np.einsum("gpk,gk->gp", design, parameters)
    inverse = np.linalg.inv(triangle)
    variances = (inverse**2).sum(axis=2)
    diagonal = np.abs(np.diagonal(triangle, axis1=1, axis2=2))
    evidence = -np.log(roots).sum(axis=1) - np.log(deviation).sum(axis=1)
    evidence -= np.log(diagonal).sum(axis=1) + (rest**2).sum(axis=1) / 2
    best = evidence.max()
    likelihood = np.exp(evidence - best)
    weights = likelihood ** (1.0 if errors is None else TRUST) / (1 + size)
    weights[size == SMALL] = 0.0
    weights /= weights.sum()
    mean = weights @ parameters
    spread = weights @ (variances + (parameters - mean) ** 2)
    # What the data say of the series: its covariance times the whitened rest.
    told = np.einsum("gpq,gp->gq", white, rest) * (size**2)[:, None]
    law = weights @ (parameters @ terms.T + told @ series)
    return Extrapolation(
        parameters=mean,
        errors=np.sqrt(spread),
        second=float(weights @ (told @ closeness)),
        left=float(weights @ size * closeness.min()),
        values=law,
        chi_square=float(weights @ (rest**2).sum(axis=1)),
        freedom=values.size - terms.shape[1],
        log_evidence=float(np.logaddexp.reduce(evidence[size == SMALL])),
    )
