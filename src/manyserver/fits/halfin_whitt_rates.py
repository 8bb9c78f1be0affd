"""How join the shortest queue approaches its diffusion limit, against the number of servers."""

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import (
    NORMAL_QUANTILE,
    at_limit,
    finite,
    method_of,
    points,
    select,
)
from manyserver.fits.convergence import ConvergenceFit, ConvergenceOptions, Series
from manyserver.fits.row import fit_row
from manyserver.methods import METHOD, Role
from manyserver.statistics.rates import Rate, coefficient, power_law

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "HalfinWhittRatesFit",
    "Options",
    "deviations",
    "expected_exponent",
    "exponent",
]

EXPONENT = -0.5
MEAN, ATOM, TRANSPORT = "scaled_waiting_mean", "q2_kolmogorov", "q2_wasserstein"
MOST_CUT = 0.002
"""A point counts when the error from the cut of its chain is at most this part of it."""
MOST_AWAY = 0.2
"""Part by which the last slope may differ from the asymptote's, for a law that is on it."""
Quantity = Literal[
    "scaled_waiting_mean", "q2_wasserstein", "q1_wasserstein", "q1_kolmogorov", "q2_kolmogorov"
]
NAMES = {
    "scaled_waiting_mean": "limit - E Q2/sqrt(n)",
    "q2_wasserstein": "Wasserstein distance of Q2/sqrt(n)",
    "q1_wasserstein": "Wasserstein distance of (Q1 - n)/sqrt(n)",
    "q1_kolmogorov": "Kolmogorov distance of (Q1 - n)/sqrt(n)",
    "q2_kolmogorov": "Kolmogorov distance of Q2/sqrt(n)",
}


class Options(ConvergenceOptions):
    """What to fit."""

    betas: list[float] | None = None
    """Values of beta; all if left out."""
    quantities: tuple[Quantity, ...] = Field(
        default=(
            "scaled_waiting_mean",
            "q2_wasserstein",
            "q1_wasserstein",
            "q1_kolmogorov",
            "q2_kolmogorov",
        ),
        min_length=1,
    )
    """Deviations from the limit."""
    method: str | None = None
    """Method of the finite systems; the exact one if left out."""


class HalfinWhittRatesFit(ConvergenceFit[Options]):
    """Fit how join the shortest queue approaches its diffusion limit."""

    name = "halfin_whitt_rates"
    title = "How the mean and the laws of Q1 and Q2 approach the diffusion, against n_servers."
    options_class = Options
    model = "halfin_whitt"
    finite_role = Role.EXACT

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every beta and quantity.

        One holds the exponent of n; and of the mean, one the coefficient of n**(-1/2). Where there
        is a simulation, one more compares it with the exact law.
        """
        chosen = select(cube, beta=options.betas)
        method, limit = self.compared(cube, options)
        for curve in points(chosen, "beta"):
            for quantity in options.quantities:
                series = deviations(curve, quantity, method, limit)
                if series is None:
                    continue
                rate = exponent(curve, quantity, series)
                told = [("exponent", rate, expected_exponent(curve, quantity))]
                if quantity == MEAN:
                    rate = coefficient(*series, power=0.5, order=next_order(curve, quantity))
                    told.append(("coefficient of n^(-1/2)", rate, np.nan))
                for parameter, rate, expected in told:
                    yield fit_row(
                        curve,
                        rate,
                        method=method,
                        quantity=NAMES[quantity],
                        parameter=parameter,
                        expected=expected,
                    )
            yield from _identity(curve, method)
            yield from _comparison(curve, method)


def deviations(
    curve: "xr.Dataset", quantity: str, method: str | Role, limit: str | Role
) -> Series | None:
    """Return n, how far a quantity is from the limit, and its standard errors, None if exact.

    Values that the cut of the chain could have changed are NaN; None if there is no value.
    """
    here = finite(curve, method, quantity)
    if not here.sizes["n_servers"]:
        return None
    values = np.asarray(here[quantity].values, dtype=float)
    if quantity == MEAN:
        in_limit = at_limit(curve, limit, quantity)
        if in_limit is None:
            return None
        values = float(in_limit) - values
    name = f"{quantity}_half_width"
    errors = None
    if name in here and np.isfinite(here[name].values).any():
        errors = np.asarray(here[name].values, dtype=float) / NORMAL_QUANTILE
    if "truncation_error" in here:
        cut = np.nan_to_num(here["truncation_error"].values)
        values = np.where(cut > MOST_CUT * np.abs(values), np.nan, values)
    return np.asarray(here["n_servers"].values), values, errors


def expected_exponent(curve: "xr.Dataset", quantity: str) -> float:
    """Return the exponent of n that theory gives.

    The law of Y2 has no atom at 0 but P(Y2 <= y) ~ c y**theta, and Q2 is 0 with a probability of
    order n**(-theta/2), which is the Kolmogorov distance: all else goes like n**(-1/2).
    """
    if quantity != ATOM:
        return EXPONENT
    return -small_exponent(curve) / 2


def small_exponent(curve: "xr.Dataset") -> float:
    """Return theta; NaN if the cube has none."""
    if "y2_small_exponent" not in curve:
        return np.nan
    known = curve["y2_small_exponent"].values
    known = known[np.isfinite(known)]
    return float(known[0]) if known.size else np.nan


def next_order(curve: "xr.Dataset", quantity: str) -> float:
    """Return the power of n by which the next term of a deviation is smaller than the first.

    It is 1/2, but for the law of Q2 near 0, where c y**theta stands in place of a density: there
    the terms of order n**(-1/2) and n**(-theta/2) follow each other.
    """
    theta = small_exponent(curve)
    if quantity == ATOM and np.isfinite(theta):
        return (1 - theta) / 2
    if quantity == TRANSPORT and np.isfinite(theta):
        return theta / 2
    return -EXPONENT


def exponent(curve: "xr.Dataset", quantity: str, series: Series) -> Rate:
    """Fit ``a * n**b * (1 + series in n**-order)``, and say what stands against it."""
    servers, values, errors = series
    rate = power_law(servers, values, errors, order=next_order(curve, quantity))
    if np.isnan(values).any():
        notes = [rate.note, "some n left out, where the cut of the chain is felt"]
        rate = dataclasses.replace(rate, note="; ".join(note for note in notes if note))
    return _beside_asymptote(rate, curve, servers, values) if quantity == ATOM else rate


def _beside_asymptote(
    rate: Rate, curve: "xr.Dataset", servers: np.ndarray, values: np.ndarray
) -> Rate:
    """Say how far the distance is from c Gamma(1 + theta) n**(-theta/2) at the largest n.

    That is P(Q2 = 0), and the distance is not smaller. So a distance that falls faster is not yet
    on this law, and its exponent says nothing of it.
    """
    theta, known = small_exponent(curve), np.flatnonzero(np.isfinite(values))
    if "y2_small_constant" not in curve or known.size < 2:
        return rate
    factor = float(curve["y2_small_constant"].max()) * math.gamma(1 + theta)
    n, value = servers[known[-2:]], values[known[-2:]]
    ratio = value[1] / (factor * n[1] ** (-theta / 2))
    told = f"at n = {n[1]:g} it is {ratio:.3g} times its asymptote"
    slope = math.log(value[1] / value[0]) / math.log(n[1] / n[0])
    if abs(slope + theta / 2) > MOST_AWAY * theta / 2:
        told = f"not on its asymptote: {told}, and falls like n^{slope:.2f}"
        rate = dataclasses.replace(rate, estimate=np.nan)
    return dataclasses.replace(rate, note="; ".join(filter(None, (rate.note, told))))


def _identity(curve: "xr.Dataset", method: str) -> Iterator[dict[str, Any]]:
    """Yield how far sqrt(n) E |X1| is from beta at worst, which it equals exactly."""
    here = finite(curve, method, "scaled_idle_mean")
    here = _uncut(here)
    values = here["scaled_idle_mean"].values if here.sizes["n_servers"] else np.empty(0)
    if values.size:
        beta = float(curve["beta"])
        worst = float(values[np.argmax(np.abs(values - beta))])
        yield _plain_row(curve, method, here, "E (n - Q1)/sqrt(n)", "worst value", worst, beta)


def _comparison(curve: "xr.Dataset", exact: str) -> Iterator[dict[str, Any]]:
    """Yield the mean squared deviation of simulated means from exact ones, in standard errors."""
    simulation = method_of(curve, Role.SIMULATION)
    if not simulation or exact == simulation:
        return
    here = finite(curve, simulation, MEAN)
    trusted = _uncut(finite(curve, exact, MEAN))["n_servers"].values
    here = here.isel(n_servers=np.isin(here["n_servers"].values, trusted))
    there = curve[MEAN].sel({METHOD: exact, "n_servers": here["n_servers"]}).values
    known = np.isfinite(there) & np.isfinite(here[f"{MEAN}_half_width"].values)
    here, there = here.isel(n_servers=known), there[known]
    if there.size:
        errors = here[f"{MEAN}_half_width"].values / NORMAL_QUANTILE
        square = float(np.mean(((here[MEAN].values - there) / errors) ** 2))
        parameter = "chi-square per point"
        yield _plain_row(curve, simulation, here, "E Q2/sqrt(n) - exact", parameter, square, 1.0)


def _uncut(here: "xr.Dataset") -> "xr.Dataset":
    """Keep the points that the cut of the chain has not changed."""
    if "truncation_error" not in here:
        return here
    return here.isel(n_servers=~(here["truncation_error"].values > MOST_CUT))


def _plain_row(
    curve: "xr.Dataset",
    method: str,
    here: "xr.Dataset",
    quantity: str,
    parameter: str,
    value: float,
    expected: float,
) -> dict[str, Any]:
    servers = here["n_servers"].values
    window = (float(servers[0]), float(servers[-1]))
    rate = Rate(value, np.nan, np.nan, window, servers.size, (), "")
    return fit_row(
        curve, rate, method=method, quantity=quantity, parameter=parameter, expected=expected
    )
