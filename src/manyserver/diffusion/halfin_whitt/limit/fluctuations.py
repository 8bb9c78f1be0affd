r"""Fluctuations of averages over time: how long the diffusion must be watched.

The variance of an average over a long time T is :math:`\sigma^2/T`. For a function h with mean
zero, :math:`\sigma^2 = 2\int h\,d\mu` with the measure

.. math:: \mu = \int_0^\infty (h\pi)P_t\,dt,\qquad G^*\mu = -h\pi,

of total mass zero. It is marched down in y like the stationary law, with :math:`h\,q` on the
right-hand side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manyserver.diffusion.halfin_whitt.labels import labelled
from manyserver.diffusion.halfin_whitt.limit.laws import LOWEST, Law, law
from manyserver.diffusion.halfin_whitt.limit.method_of_lines import Resolution, march
from manyserver.diffusion.halfin_whitt.limit.stationary import check_stationary, resolution_of

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fluctuations"]


def fluctuations(beta: float) -> xr.Dataset:
    r"""Compute the asymptotic variances of the averages of Y1 and Y2 over time.

    Parameters
    ----------
    beta : float
        Spare capacity, 0.01 to 6.

    Returns
    -------
    xarray.Dataset
        ``y1_asymptotic_variance``, which is exactly 2, and ``y2_asymptotic_variance``: the
        variance of an average over a time T is this over T, for large T. Each with its
        ``_error``, the difference from a coarser resolution.

    Raises
    ------
    ValueError
        If `beta` is out of range.

    Notes
    -----
    For the diffusion (2.1) of arXiv:1801.05121. The sum of both equations is
    :math:`d(Y_1 + Y_2) = \sqrt2\,dW - (\beta + Y_1)\,dt`, so that the integral of
    :math:`Y_1 + \beta` is :math:`\sqrt2\,W` but for what stays bounded.

    Examples
    --------
    >>> import manyserver as ms
    >>> result = ms.halfin_whitt.fluctuations(1.0)
    >>> round(float(result.y1_asymptotic_variance), 6)
    2.0
    >>> round(float(result.y2_asymptotic_variance), 5)
    10.47738
    """
    beta = check_stationary(beta)
    fine = resolution_of(beta)
    coarse = Resolution(fine.degree - 6, fine.stages - 1)
    values, others = (
        _variances(law(beta, resolution), resolution) for resolution in (fine, coarse)
    )
    for name, other in others.items():
        values[f"{name}_error"] = abs(values[name] - other)
    attrs = {"method": "asymptotic variances of the Halfin-Whitt diffusion", "beta": beta}
    return labelled(values, {}, attrs)


def _variances(of: Law, resolution: Resolution) -> dict[str, float]:
    profile = of.profile
    x = -profile.length[:, None] * profile.x_basis.nodes
    y = np.broadcast_to(profile.y[:, None], x.shape)
    return {
        "y1_asymptotic_variance": _variance(of, resolution, x - of.power_mean(1, 0)),
        "y2_asymptotic_variance": _variance(of, resolution, y - of.power_mean(0, 1)),
    }


def _variance(of: Law, resolution: Resolution, function: np.ndarray) -> float:
    """Return the asymptotic variance of a function of mean zero, by its values (stage, node)."""
    base = of.profile
    solution = march(base.beta, resolution, LOWEST * of.theta, source=function * base.flow)
    values = np.einsum("si,i->s", function * solution.flow, base.x_basis.weights)
    values *= base.length * base.scale
    # Below the last level it is exp(-theta s) times a line in s.
    step = base.edges[-1] - base.edges[-2]
    before = values[-1 - resolution.stages]
    slope = (values[-1] - before * np.exp(-of.theta * step)) / step
    rest = (values[-1] + slope / of.theta) / of.theta
    return float(2 * (base.weights @ values + rest) / of.mass)
