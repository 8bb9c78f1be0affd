"""Rates of convergence to the stationary laws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyserver.checks import checked_number
from manyserver.diffusion.halfin_whitt.checks import check_n
from manyserver.diffusion.halfin_whitt.convergence.rates import (
    chain_edge,
    chain_rate,
    diffusion_rate,
    essential_spectrum_bottom,
)
from manyserver.diffusion.halfin_whitt.labels import labelled
from manyserver.diffusion.halfin_whitt.limit.exponent import small_exponent
from manyserver.diffusion.halfin_whitt.limit.method_of_lines import Resolution

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["gap"]

SMALLEST, LARGEST = 0.1, 5.0
FINE = Resolution(degree=48, stages=7)
COARSE = Resolution(degree=42, stages=6)


def gap(beta: float, n: int | None = None) -> xr.Dataset:
    r"""Compute the exponential rate at which the diffusion forgets its start.

    Parameters
    ----------
    beta : float
        Spare capacity, 0.1 to 5.
    n : int, optional
        Also compute the rate of the queues with n servers, more than beta**2, and at most two
        customers per server; time grows like n, a minute for 100 000.

    Returns
    -------
    xarray.Dataset
        ``spectral_gap``, ``spectral_gap_error``, ``essential_spectrum_bottom``, ``stopped_rate``;
        with `n` also ``chain_gap`` and ``chain_edge``.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The gap is the smallest rate of a smooth eigenfunction; it lies below the continuous spectrum,
    which starts at beta**2 / 4, and tends to 2 beta**2 / 9 for small beta and to 1 for large.
    Until Y1 first hits 0, Y2 = Y2(0) exp(-t) is known exactly. In total variation, or a norm with
    weights, convergence is therefore no faster than ``stopped_rate``, the exponent of the law of
    Y2 at 0: for beta above about 1.23 that is the smaller of the two.

    Examples
    --------
    >>> import manyserver as ms
    >>> round(float(ms.halfin_whitt.gap(2.0).spectral_gap), 7)
    0.6129239
    """
    beta = checked_number("beta", beta)
    if not SMALLEST <= beta <= LARGEST:
        raise ValueError(f"beta = {beta:g}: must be from {SMALLEST:g} to {LARGEST:g}")
    rate = diffusion_rate(beta, FINE)
    values = {
        "spectral_gap": rate,
        "spectral_gap_error": abs(rate - diffusion_rate(beta, COARSE, near=rate)),
        "essential_spectrum_bottom": essential_spectrum_bottom(beta),
        "stopped_rate": small_exponent(beta),
    }
    attrs: dict[str, object] = {"method": "relaxation of the Halfin-Whitt diffusion", "beta": beta}
    if n is not None:
        attrs["n_servers"] = n = check_n(n, beta)
        values["chain_gap"] = chain_rate(beta, n)
        values["chain_edge"] = chain_edge(beta, n)
    return labelled(values, {}, attrs)
