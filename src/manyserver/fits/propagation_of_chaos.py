"""How far two servers are from being independent, against the number of servers.

In the limit any finite number of servers is independent (Proposition 4.4 of Mukhopadhyay,
Karthik and Mazumdar, arXiv:1502.05786). With N servers, N_j of them in pool j, and x the
fractions of servers with k jobs, two distinct servers of pool j hold k and l jobs with probability

    (N_j E[x_k x_l] - 1{k = l} E[x_k]) / (N_j - 1),

and two servers of pools i and j with probability ``E[x_k y_l]``. The total variation between this
joint law and the product of the two marginal laws goes to zero like 1/N.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.curves import (
    NORMAL_QUANTILE,
    finite,
    method_of,
    points,
    rate_dimension,
    required_method,
    select,
)
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.convergence import Series
from manyserver.fits.row import fit_row
from manyserver.methods import METHOD, Role
from manyserver.outputs import occupancy
from manyserver.statistics.distances import Distance, total_variation
from manyserver.statistics.rates import coefficient, power_law

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = [
    "COVARIANCE",
    "EXPONENT",
    "Options",
    "PropagationOfChaosFit",
    "dependence",
    "expected_dependence",
]

EXPONENT = -1.0
COVARIANCE = "occupancy_covariance"
"""N times the covariance of x_k and y_l."""


class Options(FitOptions):
    """What to fit."""

    method: str | None = None
    """Method of the finite systems, with ``moments: true``; the one that simulates if left out."""
    refined: str | None = None
    """Method that predicts the coefficient of 1/N; the one that expands the limit if left out."""
    limit: str | None = None
    """Method of the limit, for the prediction; that of the study if left out."""


class PropagationOfChaosFit(Fit[Options]):
    """Fit how far two servers are from being independent."""

    name = "propagation_of_chaos"
    title = (
        "Total variation between the joint law of two servers and the product of their laws, "
        "against n_servers; needs points with `moments: true`."
    )
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as covariances."""
        yield study.lacks(options.method or Role.SIMULATION, at="finite", moments=True)

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every system, policy, arrival rate and pair of pools.

        One holds the exponent of the distance, one the coefficient of 1/N.
        """
        chosen = select(cube, system=options.systems, policy=options.policies)
        method = required_method(cube, options.method or Role.SIMULATION)
        refined, limit = options.refined or Role.EXPANSION, options.limit or Role.LIMIT
        for curve in points(chosen, "system", "policy", rate_dimension(cube)):
            for pair in pairs(curve):
                series = dependence(curve, pair, method)
                if series is None:
                    continue
                expected = expected_dependence(curve, pair, refined, limit)
                for parameter, fit, value in (
                    ("exponent", power_law, EXPONENT),
                    ("coefficient of 1/N", coefficient, expected),
                ):
                    yield fit_row(
                        curve,
                        fit(*series),
                        method=method,
                        pool=" ".join(map(str, pair)),
                        quantity="total variation between joint and product law of two servers",
                        parameter=parameter,
                        expected=value,
                    )


def pairs(curve: "xr.Dataset") -> list[tuple[int, int]]:
    """Pairs of pools, each once; a pool is paired with itself too."""
    pools = np.flatnonzero(np.isfinite(curve["pool_speed"].values)).tolist()
    return [(one, other) for one in pools for other in pools if one <= other]


def dependence(curve: "xr.Dataset", pair: tuple[int, int], method: str | Role) -> Series | None:
    """Return N, the total variation and its standard errors; None if there is none."""
    if COVARIANCE not in curve or not method_of(curve, method):
        return None
    here = finite(curve, method, COVARIANCE)
    fraction = float(curve["pool_fraction"].values[pair[0]])
    found, simulated = [], False
    for point in points(here, "n_servers"):
        covariance, error = _covariance(point, pair)
        simulated |= error is not None
        law = _occupancy(point["queue_tail"].values, pair)
        found.append(_distance(law, covariance, error, pair, float(point["n_servers"]), fraction))
    if not found:
        return None
    values, errors = np.array(found).T
    return np.asarray(here["n_servers"].values), values, errors if simulated else None


def expected_dependence(
    curve: "xr.Dataset", pair: tuple[int, int], refined: str | Role, limit: str | Role
) -> float:
    """Return N times the total variation in the limit of many servers; NaN if it is not there."""
    predicts, in_limit = method_of(curve, refined), method_of(curve, limit)
    if not (predicts and in_limit) or COVARIANCE not in curve:
        return np.nan
    here = finite(curve, predicts, COVARIANCE)
    if not here.sizes["n_servers"] or np.inf not in curve["n_servers"].values:
        return np.nan
    covariance, _ = _covariance(here.isel(n_servers=0), pair)
    tails = curve["queue_tail"].sel({METHOD: in_limit, "n_servers": np.inf}).values
    fraction = float(curve["pool_fraction"].values[pair[0]])
    distance, _ = _distance(_occupancy(tails, pair), covariance, None, pair, np.inf, fraction)
    return distance


def _distance(
    laws: tuple[np.ndarray, np.ndarray],
    covariance: np.ndarray,
    error: np.ndarray | None,
    pair: tuple[int, int],
    n_servers: float,
    fraction: float,
) -> Distance:
    """Total variation between joint and product law; N times it if `n_servers` is infinite.

    `covariance` is N times the covariance of the fractions of servers with k and with l jobs.
    """
    one, other = (law[: covariance.shape[0]] for law in laws)
    missing = max(float(1 - one.sum()), float(1 - other.sum()), 0.0)
    difference, scale = covariance, np.ones(())
    if pair[0] == pair[1]:
        # A server is not paired with itself: of N_j servers that leaves N_j - 1.
        own = np.diag(one) - np.outer(one, one)
        difference = fraction * covariance - own
        spare = fraction if np.isinf(n_servers) else fraction - 1 / n_servers
        difference, scale = difference / spare, np.asarray(fraction / spare)
    errors = np.zeros_like(covariance) if error is None else scale * error
    distance, spread = total_variation(difference, errors)
    if np.isinf(n_servers):
        return distance, spread
    # Levels whose covariance is not known can add at most twice the probability to be there.
    return distance / n_servers, spread / n_servers + 2 * missing


def _covariance(point: "xr.Dataset", pair: tuple[int, int]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return covariance and standard errors (level, other level), to the last known level."""
    one, other = pair
    here = point.isel(pool=one, other_pool=other)
    covariance = here[COVARIANCE].transpose("level", "other_level").values
    levels = min(np.flatnonzero(np.isfinite(covariance).any(axis=axis))[-1] for axis in (0, 1)) + 1
    name = f"{COVARIANCE}_half_width"
    error = None
    if name in here and np.isfinite(here[name].values).any():
        error = here[name].transpose("level", "other_level").values[:levels, :levels]
        error = np.nan_to_num(error) / NORMAL_QUANTILE
    return np.nan_to_num(covariance[:levels, :levels]), error


def _occupancy(tails: np.ndarray, pair: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the laws of the number of jobs at a server of each pool."""
    held = occupancy(np.nan_to_num(tails))
    return held[pair[0]], held[pair[1]]
