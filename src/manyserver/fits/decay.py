"""How waiting and blocking vanish with the number of servers: exponentially, or like a power."""

import dataclasses
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import (
    at_limit,
    finite,
    method_of,
    points,
    rate_dimension,
    required_methods,
    select,
    standard_errors,
    system_of,
)
from manyserver.analysis.messages import MESSAGES
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.convergence import Series
from manyserver.fits.row import fit_row
from manyserver.methods import Role
from manyserver.model import System
from manyserver.policies import Policy, policy
from manyserver.policies.jiq import JIQ
from manyserver.statistics.decay import Decay, LawName, decay, leading_coefficient
from manyserver.statistics.rates import Rate

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = [
    "EXPONENT",
    "DecayFit",
    "Options",
    "Quantity",
    "Theory",
    "can_vanish",
    "fit",
    "series",
    "theory",
]

EXPONENT = -1.0
"""Of what an arrival meets at an empty router, with several routers."""
PREFACTOR = -0.5
"""Exponent of n before the exponential decay with one router, as in Erlang's formulas."""
BLOCKING, SOJOURN = "blocking_probability", "sojourn_mean"
Quantity = Literal[
    "empty_router_probability", "waiting_probability", "blocking_probability", "sojourn_mean"
]


class Options(FitOptions):
    """What to fit."""

    quantities: tuple[Quantity, ...] = Field(
        default=("empty_router_probability", "waiting_probability", "blocking_probability"),
        min_length=1,
    )
    """What vanishes; of the mean sojourn time, its difference from the limit."""
    law: Literal["auto", "exponential", "power"] = "auto"
    """The law of the decay; by default the one that makes the data more probable."""
    methods: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Methods of the finite systems; those that simulate if left out."""
    limit: str | None = None
    """Method of the limit, for the mean sojourn time; that of the study if left out."""


class DecayFit(Fit[Options]):
    """Fit how waiting and blocking vanish."""

    name = "decay"
    title = "How what vanishes does so, exponentially in n_servers or like a power of it."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as finite systems."""
        yield study.lacks(*(options.methods or (Role.SIMULATION,)), at="finite")
        if not any(can_vanish(study, name) for name in options.quantities):
            yield f"a policy, or buffers, with which there is {' or '.join(options.quantities)}"
        if options.quantities == (SOJOURN,):
            yield study.lacks(options.limit or Role.LIMIT, at="limit")

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every system, policy, arrival rate and method.

        One holds the decay per server or the exponent of n; where the exponent should be -1, one
        more the coefficient of 1/n.
        """
        methods = required_methods(cube, *(options.methods or (Role.SIMULATION,)))
        limit = method_of(cube, options.limit or Role.LIMIT)
        chosen = select(cube, system=options.systems, policy=options.policies)
        places = ("system", "policy", rate_dimension(cube))
        for curve in points(chosen, *places):
            whole = cube.sel({name: curve[name] for name in places})
            for quantity in options.quantities:
                expected = theory(curve, quantity)
                for method in methods:
                    data = series(whole, quantity, method, limit)
                    if data is None:
                        continue
                    found = fit(data, expected, options.law)
                    told = [("exponent", found.rate, expected.exponent)]
                    if found.law == "exponential":
                        told = [("decay per server", found.rate, expected.decay)]
                    elif np.isfinite(expected.coefficient):
                        rate = leading_coefficient(*data)
                        told.append(("coefficient of 1/n", rate, expected.coefficient))
                    name = f"{quantity} - limit" if quantity == SOJOURN else quantity
                    for parameter, rate, value in told:
                        guessed = parameter in expected.guessed
                        yield fit_row(
                            curve,
                            _with_guess(rate) if guessed else rate,
                            method=method,
                            quantity=name,
                            parameter=parameter,
                            expected=value,
                        )


def _with_guess(rate: Rate) -> Rate:
    notes = (rate.note, "what is expected is a guess")
    return dataclasses.replace(rate, note="; ".join(filter(None, notes)))


def can_vanish(study: "Supply", quantity: str) -> bool:
    """Whether some point can have a value of a quantity that is not always zero, or missing."""
    if quantity == BLOCKING:
        return any(point.subject.system.is_bounded for point in study.chosen)
    if quantity == "empty_router_probability":
        return any(point.subject.policy.n_routers for point in study.chosen)
    return quantity != MESSAGES or not study.simulates_jobs


def series(
    curve: "xr.Dataset", quantity: str, method: str | Role, limit: str | Role
) -> Series | None:
    """Return n, what vanishes and its standard errors, None if exact; None if nothing is seen."""
    if not method_of(curve, method):
        return None
    here = finite(curve, method, quantity)
    if not here.sizes["n_servers"]:
        return None
    values = np.asarray(here[quantity].values, dtype=float)
    if quantity == SOJOURN:
        in_limit = at_limit(curve, limit, quantity) if method_of(curve, limit) else None
        if in_limit is None:
            return None
        values = values - float(in_limit)
    if not (values > 0).any():
        return None
    return np.asarray(here["n_servers"].values), values, standard_errors(here, quantity)


class Theory:
    """What theory says of the decay of one quantity.

    Attributes
    ----------
    decay : float
        Exponential decay per server, with one router; NaN if there is none.
    power : float
        Exponent of n before it.
    exponent, coefficient : float
        With several routers, the exponent of n; and the coefficient, if that is -1.
    guessed : tuple of str
        Which of these are not proven.
    """

    def __init__(self, system: System, chosen: Policy | None, quantity: str):
        self.decay = self.exponent = self.coefficient = np.nan
        self.guessed: tuple[str, ...] = ()
        self.power = PREFACTOR
        if chosen is None:
            return
        told = _asymptotics(system, chosen)
        self.decay = told.get("empty_router_decay", np.nan)
        coefficient = told.get(f"{quantity}_correction", np.nan)
        if coefficient > 0:
            self.exponent, self.coefficient = EXPONENT, coefficient
            if chosen.n_routers > 2:
                self.guessed = ("coefficient of 1/n",)
        buffers = [pool.buffer for pool in system.pools if pool.buffer is not None]
        if quantity == BLOCKING and buffers and min(buffers) > 1:
            # Heuristic. A server fills up if other random arrivals hit it within its service. With
            # one router those come in the while of order 1/n in which all servers are busy; with
            # several, a router is empty for a part n**-0.5 of the time near when it is empty.
            self.power -= min(buffers) - 1
            if told and np.isnan(self.decay):
                self.guessed = ("exponent",)
                self.exponent = EXPONENT - (min(buffers) - 1) / 2


def theory(curve: "xr.Dataset", quantity: str) -> Theory:
    """Return what theory says of PULL at one system, policy and arrival rate of a cube."""
    parameters = json.loads(str(curve["policy_parameters"].values))
    chosen = policy(str(curve["policy_name"].values), **parameters)
    if isinstance(chosen, JIQ) and chosen.d == 1 and chosen.ties == "uniform":
        chosen = policy("pull", routers=1)
    return Theory(system_of(curve), chosen if chosen.n_routers else None, quantity)


def fit(data: Series, expected: Theory, law: str) -> Decay:
    """Fit a decay by the law asked for."""
    known: dict[str, LawName] = {"exponential": "exponential", "power": "power"}
    return decay(*data, law=known.get(law), power=expected.power)


def _asymptotics(system: System, chosen: Policy) -> dict[str, float]:
    from manyserver.mean_field.pull import pull_asymptotics

    try:
        result = pull_asymptotics(system, chosen)
    except ValueError:  # With a load of one or more nothing vanishes.
        return {}
    return {str(name): float(value) for name, value in result.data_vars.items() if not value.dims}
