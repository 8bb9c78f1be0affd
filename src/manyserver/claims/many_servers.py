"""The limit of many servers under Schemes 1 and 2, and how it is approached, arXiv:1502.05786."""

import json
from collections.abc import Iterator
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.curves import points
from manyserver.claims.base import MUKHOPADHYAY, Claim
from manyserver.claims.evidence import Evidence
from manyserver.claims.patterns import Fitted, Valued
from manyserver.claims.results import ROUNDING, Number
from manyserver.methods import METHOD, Role

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.claims.results import Results

SCHEME_1, SCHEME_2 = "scheme1 d=(2,2)", "scheme2 d=(2,2)"
FIGURE_3, TAILS = "fig3_finite_size", "tail_decay"
SMALLEST = 1e-200
"""Tails below this are not divided by."""


class FixedPoint(Valued):
    """Flows balance level by level."""

    studies = ("choices",)
    paper = MUKHOPADHYAY
    variable = "residual"
    low, high = 0.0, 1e-9


class FixedPointScheme1(FixedPoint):
    """(4.11)."""

    name = "fixed_point_scheme1"
    number = "Theorem 4.2, (4.11)"
    statement = (
        "Under Scheme 1 the mean-field equations have a fixed point at every load below one."
    )
    labels = {"policy": "Scheme 1"}


class FixedPointScheme2(FixedPoint):
    """(4.12)."""

    name = "fixed_point_scheme2"
    number = "Theorem 4.2, (4.12)"
    statement = (
        "Under Scheme 2 the mean-field equations have a fixed point at every load below one."
    )
    labels = {"policy": "Scheme 2"}


class FlowBalance(Claim):
    """(4.15)."""

    name = "flow_balance"
    paper = MUKHOPADHYAY
    number = "(4.15)"
    statement = "At the fixed point the busy servers work off what arrives."
    studies = (TAILS,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the work done by busy servers with the arrival rate."""
        for curve, found in _tails(results, "scheme1", "scheme2"):
            work = float((found[:, 1] / _delta(curve)).sum())
            yield _at(curve, work, level=1).near(1.0, 1e-8)


class IdentityScheme1(Claim):
    """(4.13)."""

    name = "identity_scheme1"
    paper = MUKHOPADHYAY
    number = "Proposition 4.3, (4.13)"
    statement = (
        "Under Scheme 1 the tails at level l + 1, each over its Delta, add up to the product of "
        "those at level l to the powers d."
    )
    studies = (TAILS,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the two sides at every level."""
        for curve, tails in _tails(results, "scheme1"):
            d = np.array(_choices(curve))
            for level in range(tails.shape[1] - 1):
                right = float(np.prod(tails[:, level] ** d))
                if right > SMALLEST:
                    left = float((tails[:, level + 1] / _delta(curve)).sum())
                    yield _at(curve, left / right, level=level).near(1.0, 1e-6)


class IdentityScheme2(Claim):
    """(4.14)."""

    name = "identity_scheme2"
    paper = MUKHOPADHYAY
    number = "Proposition 4.3, (4.14)"
    statement = (
        "Under Scheme 2 the same holds, with the levels of the faster pool taken in proportion to "
        "its speed."
    )
    studies = (TAILS,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the two sides at every level of the slow pool."""
        for curve, tails in _tails(results, "scheme2"):
            d, delta = _choices(curve), _delta(curve)
            slow, fast = (Fraction(float(x)).limit_denominator(1000) for x in curve["pool_speed"])
            for level in range(tails.shape[1]):
                above = floor(fast * level / slow) + 1
                if max(above + 1, level + 2) >= tails.shape[1]:
                    break
                right = float(tails[0, level + 1] ** d[0] * tails[1, above] ** d[1])
                if right > SMALLEST:
                    left = float(tails[0, level + 2] / delta[0] + tails[1, above + 1] / delta[1])
                    yield _at(curve, left / right, level=level).near(1.0, 1e-6)


class Growth(Claim):
    """How fast the logarithm of the tails grows per level."""

    paper = MUKHOPADHYAY
    studies = (TAILS,)


class DoublyExponential(Growth):
    """Definition 4.1 and Proposition 4.3."""

    name = "doubly_exponential_tails"
    number = "Definition 4.1, Proposition 4.3"
    statement = (
        "The tails fall doubly exponentially: the logarithm of the tail grows by a factor above 1 "
        "from each level to the next."
    )

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read the growth of both schemes."""
        names = [f"scheme{i} d=({d},{d})" for i in (1, 2) for d in (1, 2)]
        for growth in results.fitted(TAILS, policy=names):
            yield growth.above(1.0)


class AtLeastPapersRate(Growth):
    """The bound in the proof of Proposition 4.3."""

    name = "tails_at_least_as_steep_as_bound"
    number = "Proposition 4.3, its proof"
    statement = (
        "Under Scheme 1 the logarithm of the tail grows by at least the sum of the choices from "
        "each level to the next."
    )

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the growth with the sum of the choices."""
        for policy, choices in (("scheme1 d=(1,1)", 2), (SCHEME_1, 4)):
            for growth in results.fitted(TAILS, policy=policy):
                yield growth.above(choices)


class PapersRateIsTheRate(Growth):
    """Whether that bound is the rate."""

    name = "bound_of_tails_is_the_rate"
    stated = False
    number = "Proposition 4.3, its proof"
    statement = "Under Scheme 1 that bound is the rate: the growth is the sum of the choices."

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the growth with the sum of the choices."""
        for policy, choices in (("scheme1 d=(1,1)", 2), (SCHEME_1, 4)):
            for growth in results.fitted(TAILS, policy=policy):
                yield growth.near(choices, 0.01)


class GrowthOfSQ(Fitted):
    """The known rate of SQ(d)."""

    name = "tails_of_sq"
    paper = MUKHOPADHYAY
    number = "Section 1, cited"
    statement = "Under SQ(d) the logarithm of the tail grows by the factor d per level."
    studies = (TAILS,)
    rows = {"policy": ["sq d=2", "sq d=3"]}
    tolerance = 0.001


class JoiningRates(Claim):
    """(5.1) and (5.2): arrivals to a server, given how many jobs it has."""

    paper = MUKHOPADHYAY
    studies = (TAILS,)
    scheme: str

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the rates with the formula, from the tails of the same cell."""
        cube = results.cube(TAILS)
        for curve, tails in _tails(results, self.scheme):
            rates = curve["joining_rate"].values
            for pool in range(tails.shape[0]):
                for level in range(min(rates.shape[1], cube.sizes["level"] - 1)):
                    expected = _joining_rate(curve, tails, pool, level)
                    if expected is not None:
                        found = rates[pool, level] / expected
                        place = _at(curve, found, "joining_rate", pool=pool, level=level)
                        yield place.near(1.0, 1e-6)


class JoiningRateScheme1(JoiningRates):
    """(5.1)."""

    name = "joining_rate_scheme1"
    number = "Proposition 5.1, (5.1)"
    statement = "Arrivals to a server with k jobs have the rate (5.1) under Scheme 1."
    scheme = "scheme1"


class JoiningRateScheme2(JoiningRates):
    """(5.2)."""

    name = "joining_rate_scheme2"
    number = "Proposition 5.1, (5.2)"
    statement = "Arrivals to a server with k jobs have the rate (5.2) under Scheme 2."
    scheme = "scheme2"


class JoiningRateSimulated(Claim):
    """The same of 1000 servers."""

    name = "joining_rate_simulated"
    stated = False
    paper = MUKHOPADHYAY
    number = "Proposition 5.1"
    statement = (
        "With 1000 servers, arrivals to an idle server have the rate of the limit to within 3 %, "
        "under both schemes."
    )
    studies = (TAILS,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare simulation and limit."""
        yield from _finite_against_limit(
            results, TAILS, "joining_rate", 1000.0, 0.03, policy=[SCHEME_1, SCHEME_2], level=0
        )


class OneServer(Claim):
    """Proposition 4.4 (i)."""

    name = "law_of_one_server"
    paper = MUKHOPADHYAY
    number = "Proposition 4.4 (i), Theorem 4.4"
    statement = (
        "The law of the number of jobs at one server approaches the fixed point: with 1000 servers "
        "all tails are within .01 of it."
    )
    studies = (TAILS,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the tails of simulation and limit."""
        at = ({"n_servers": 1000.0}, {"n_servers": np.inf})
        roles = (Role.SIMULATION, Role.LIMIT)
        for a, b in results.compared(TAILS, "queue_tail", *at, *roles, policy=[SCHEME_1, SCHEME_2]):
            yield (a - b).near(0.0, 0.01)


class BiasExponent(Fitted):
    """Theorem 4.4: how fast the mean approaches its limit."""

    studies = (FIGURE_3,)
    paper = MUKHOPADHYAY
    number = "Theorem 4.4 and Figure 3, with the rate"
    tolerance = 0.25


class BiasExponentScheme1(BiasExponent):
    """Scheme 1."""

    name = "bias_like_one_over_n_scheme1"
    stated = False
    statement = (
        "Under Scheme 1 the mean sojourn time approaches its limit like 1/N (exponent -1, to .25)."
    )
    rows = {"policy": SCHEME_1, "parameter": "exponent", "quantity": "sojourn_mean - limit"}


class BiasExponentScheme2(BiasExponent):
    """Scheme 2."""

    name = "bias_like_one_over_n_scheme2"
    stated = False
    statement = (
        "Under Scheme 2 the mean sojourn time approaches its limit like 1/N (exponent -1, to .25)."
    )
    rows = {"policy": SCHEME_2, "parameter": "exponent", "quantity": "sojourn_mean - limit"}


class AboveTheLimit(Claim):
    """Figure 3."""

    name = "finite_systems_are_slower"
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 3"
    statement = "The mean sojourn time of finite systems, to 200 servers, is above its limit."
    studies = (FIGURE_3,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare simulation and limit."""
        for n in (10.0, 20.0, 50.0, 100.0, 200.0):
            at = ({"n_servers": n}, {"n_servers": np.inf})
            roles = (Role.SIMULATION, Role.LIMIT)
            for a, b in results.compared(FIGURE_3, "sojourn_mean", *at, *roles):
                yield (a / b - 1).above(0.0)


class CloseAt100(Claim):
    """Figure 3."""

    name = "limit_accurate_from_100_servers"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 3"
    statement = "With 100 servers the limit of the mean sojourn time is accurate to 3 %."
    studies = (FIGURE_3,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare simulation and limit."""
        yield from _finite_against_limit(results, FIGURE_3, "sojourn_mean", 100.0, 0.03)


class CloseAt1000(Claim):
    """Figure 3."""

    name = "limit_accurate_from_1000_servers"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 3"
    statement = "With 1000 servers the limit of the mean sojourn time is accurate to 1 %."
    studies = (FIGURE_3,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare simulation and limit."""
        yield from _finite_against_limit(results, FIGURE_3, "sojourn_mean", 1000.0, 0.01)


class CloseAt10(Claim):
    """Figure 3, with few servers."""

    name = "limit_accurate_from_10_servers"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 3"
    statement = "With 10 servers already the limit of the mean sojourn time is accurate to 10 %."
    studies = (FIGURE_3,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare simulation and limit."""
        yield from _finite_against_limit(results, FIGURE_3, "sojourn_mean", 10.0, 0.1)


class LittlesLaw(Claim):
    """How the mean sojourn time follows."""

    name = "littles_law"
    paper = MUKHOPADHYAY
    number = "Section 6, before Figure 3"
    statement = "The mean sojourn time is the mean number of jobs over the arrival rate."
    studies = (FIGURE_3,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Divide one by the other."""
        for role in (Role.LIMIT, Role.SIMULATION):
            jobs = {_place(n): n for n in results.read(FIGURE_3, "jobs_per_server", role)}
            for sojourn in results.read(FIGURE_3, "sojourn_mean", role):
                rate = float(str(sojourn.cell["arrival_rate"]))
                # They come from the same jobs: their errors do not add up.
                expected = jobs[_place(sojourn)].value / rate
                yield Number(sojourn.value, ROUNDING * expected, sojourn.study, sojourn.cell).near(
                    expected, 0.002 * expected
                )


class Independence(Fitted):
    """Proposition 4.4 (ii)."""

    name = "two_servers_independent"
    stated = False
    paper = MUKHOPADHYAY
    number = "Proposition 4.4 (ii), with the rate"
    statement = (
        "Two servers become independent: the distance of their joint law from the product of "
        "their laws falls like 1/N (exponent -1, to .3)."
    )
    studies = ("propagation_of_chaos",)
    rows = {"parameter": "exponent", "policy": [SCHEME_1, SCHEME_2]}
    tolerance = 0.3


class Fluctuations(Fitted):
    """The spread of the number of jobs."""

    name = "fluctuations_like_root_n"
    stated = False
    paper = MUKHOPADHYAY
    number = "Theorem 4.4, with the rate"
    statement = (
        "The law of the state concentrates: the standard deviation of the jobs per server falls "
        "like N^(-1/2)."
    )
    studies = ("finite_size",)
    rows = {"parameter": "exponent", "quantity": "standard deviation of jobs_per_server"}
    tolerance = 0.05


class RefinedCoefficient(Fitted):
    """The coefficient of 1/N."""

    name = "coefficient_of_one_over_n"
    stated = False
    paper = MUKHOPADHYAY
    number = "Theorem 4.4, with the coefficient"
    statement = (
        "The bias of the mean sojourn time times N approaches what the refined mean field predicts "
        "(to 20 %)."
    )
    studies = ("finite_size",)
    rows = {"parameter": "coefficient of 1/N", "quantity": "sojourn_mean - limit"}
    tolerance = 0.2
    relative = True


def _place(number: Number) -> tuple[object, ...]:
    return tuple(value for name, value in number.cell.items() if name != "variable")


def _finite_against_limit(
    results: "Results", study: str, variable: str, n: float, tolerance: float, **labels: Any
) -> Iterator[Evidence]:
    at = ({"n_servers": n}, {"n_servers": np.inf})
    roles = (Role.SIMULATION, Role.LIMIT)
    for a, b in results.compared(study, variable, *at, *roles, **labels):
        yield (a / b).near(1.0, tolerance)


def _tails(results: "Results", *names: str) -> "Iterator[tuple[xr.Dataset, np.ndarray]]":
    """Yield the slices in the limit of policies of some names, with tails (pool, level)."""
    cube = results.cube(TAILS)
    results.read(TAILS, "queue_tail")
    cube = cube.isel({METHOD: int(np.argmax(cube["method_role"].values == Role.LIMIT.value))})
    cube = cube.sel(n_servers=np.inf)
    for curve in points(cube, "system", "policy", "arrival_rate"):
        if str(curve["policy_name"].values) in names:
            tails = np.nan_to_num(curve["queue_tail"].transpose("pool", "level").values)
            yield curve, tails


def _at(
    curve: "xr.Dataset", value: float, variable: str = "queue_tail", **labels: object
) -> Number:
    """Return what follows from the numbers of a slice, with the place of the slice."""
    axes = (METHOD, "system", "policy", "n_servers", "arrival_rate")
    cell = {axis: curve[axis].values.item() for axis in axes} | labels
    return Number(value, 1e-9 * abs(value), TAILS, {**cell, "variable": variable})


def _choices(curve: "xr.Dataset") -> list[int]:
    return list(json.loads(str(curve["policy_parameters"].values))["d"])


def _delta(curve: "xr.Dataset") -> np.ndarray:
    found = curve["arrival_rate"] / (curve["pool_fraction"] * curve["pool_speed"])
    return np.asarray(found.values)


def _joining_rate(curve: "xr.Dataset", tails: np.ndarray, pool: int, level: int) -> float | None:
    """Return (5.1) or (5.2); None where the tails are too small to be divided by."""
    d, share = _choices(curve), tails[pool, level] - tails[pool, level + 1]
    if share < 1e-30 or tails[pool, level + 1] > tails[pool, level] * (1 - 1e-6):
        return None
    own = tails[pool, level] ** d[pool] - tails[pool, level + 1] ** d[pool]
    rate = float(curve["arrival_rate"] / curve["pool_fraction"][pool]) * own / share
    speeds = [Fraction(float(x)).limit_denominator(1000) for x in curve["pool_speed"].values]
    for other in range(len(speeds)):
        if other != pool:
            rate *= _worse(curve, tails, speeds, pool, level, other) ** d[other]
    return float(rate)


def _worse(
    curve: "xr.Dataset",
    tails: np.ndarray,
    speeds: list[Fraction],
    pool: int,
    level: int,
    other: int,
) -> float:
    """Return how likely a server of another pool is worse than one of this pool and level."""
    if str(curve["policy_name"].values) == "scheme1":
        needed = level if other < pool else level + 1
    else:
        same = speeds[other] * level / speeds[pool]
        needed = -floor(-same) if other < pool else floor(same) + 1
    return float(tails[other, needed]) if needed < tails.shape[1] else 0.0
