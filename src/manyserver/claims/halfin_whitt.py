"""Join the shortest queue in the Halfin-Whitt regime, arXiv:1801.05121."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from manyserver.claims.base import BRAVERMAN, Claim
from manyserver.claims.evidence import Evidence
from manyserver.claims.patterns import Falls, Fitted, NoNumber, Valued
from manyserver.claims.results import Number
from manyserver.methods import Role

if TYPE_CHECKING:
    from manyserver.claims.results import Results

STUDY, GAPS, PORTRAIT = "halfin_whitt", "ergodicity", "fluid_portrait"
WAITING, MEAN = "scaled_waiting_probability", "scaled_waiting_mean"
SMALL_BETA_LEFT_OUT = [1.0, 1.5, 2.0]
"""For smaller beta the chain is cut, or the asymptotic form is not yet seen at these n."""


class IdleServers(Claim):
    """Lemma 2, (3.2), i = 1."""

    name = "mean_idle_servers"
    paper = BRAVERMAN
    number = "Lemma 2, (3.2) for i = 1"
    statement = "The mean number of idle servers is beta sqrt(n) (to .005 of sqrt(n))."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the scaled mean with beta."""
        for idle in results.read(STUDY, "scaled_idle_mean", Role.EXACT):
            yield idle.near(_beta(idle), 0.005)


class WaitingIdentity(Claim):
    """Lemma 2, (3.2), i = 2."""

    name = "waiting_identity"
    paper = BRAVERMAN
    number = "Lemma 2, (3.2) for i = 2"
    statement = "E Q2 is the arrival rate times the probability that all servers are busy."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the two sides."""
        waits = {_place(number): number for number in results.read(STUDY, WAITING, Role.EXACT)}
        for mean in results.read(STUDY, MEAN, Role.EXACT, beta=SMALL_BETA_LEFT_OUT):
            rate = 1 - _beta(mean) / math.sqrt(_servers(mean))
            yield (mean / (waits[_place(mean)].value * rate)).near(1.0, 1e-3)


class WaitingBound(Claim):
    """Theorem 2, (2.2)."""

    name = "mean_waiting_bound"
    paper = BRAVERMAN
    number = "Theorem 2, (2.2)"
    statement = (
        "E Q2 is at most C(beta) sqrt(n) for all n, with C(beta) = beta + 18/beta + 2 sqrt(6) by "
        "the proof."
    )
    studies = (STUDY,)
    role: ClassVar[Role] = Role.EXACT

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the scaled mean with the bound."""
        for mean in results.read(STUDY, MEAN, self.role):
            yield mean.below(_waiting_bound(mean))


class WaitingBoundSimulated(WaitingBound):
    """The same by simulation."""

    name = "mean_waiting_bound_simulated"
    statement = "So it is in simulations of small systems, whose chain is not cut."
    role = Role.SIMULATION


class WaitingBoundLimit(WaitingBound):
    """The same in the limit."""

    name = "mean_waiting_bound_limit"
    number = "Theorem 2 and Proposition 1"
    statement = "The mean of the limit Y2 is at most C(beta)."
    role = Role.LIMIT


class WaitingBoundLoose(Claim):
    """Remark 3."""

    name = "mean_waiting_bound_not_tight"
    paper = BRAVERMAN
    number = "Remark 3"
    statement = "The bound of E Q2 is not tight: its limit E Y2 is below half of it."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the limit of the scaled mean with half the bound."""
        for mean in results.read(STUDY, MEAN):
            yield mean.below(_waiting_bound(mean) / 2)


class ThirdQueueBound(Claim):
    """Theorem 2, (2.3)."""

    name = "third_queue_bound"
    paper = BRAVERMAN
    number = "Theorem 2, (2.3) for i = 3"
    statement = "E Q3 is at most a constant that depends on beta alone; that of (A.6)."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare with the bound."""
        from manyserver.diffusion.halfin_whitt.fluid_model.bounds import queue_bound

        for mean in results.read(STUDY, "q3_mean", Role.EXACT):
            yield mean.below(queue_bound(_beta(mean), int(_servers(mean)), 3))


class ThirdQueueVanishes(Claim):
    """Remark 3."""

    name = "third_queue_falls_faster_than_powers"
    paper = BRAVERMAN
    number = "Remark 3"
    statement = (
        "E Q3 falls faster than any power of n: for beta = 1 from 100 to 400 servers by a larger "
        "power than from 25 to 100."
    )
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare powers of n, of which the errors are those of the relative changes."""
        few, more, many = (
            results.read(STUDY, "q3_mean", Role.EXACT, beta=1.0, n_servers=n)
            for n in (25.0, 100.0, 400.0)
        )
        for a, b, c in zip(few, more, many, strict=True):
            powers = [_power(b, a), _power(c, b)]
            yield (powers[1] - powers[0]).below(0.0)


class LawOfWaitingConverges(Falls):
    """Proposition 1, second marginal."""

    name = "law_of_q2_converges"
    paper = BRAVERMAN
    number = "Proposition 1"
    statement = (
        "The stationary law of Q2/sqrt(n) approaches that of Y2: its Wasserstein distance falls "
        "whenever n is multiplied by four."
    )
    studies = (STUDY,)
    variable = "q2_wasserstein"
    servers = (100.0, 400.0, 1600.0, 6400.0, 25600.0)
    labels = {"beta": SMALL_BETA_LEFT_OUT}
    role = Role.EXACT


class LawOfIdleConverges(LawOfWaitingConverges):
    """Proposition 1, first marginal."""

    name = "law_of_q1_converges"
    statement = (
        "The stationary law of (Q1 - n)/sqrt(n) approaches that of Y1: its Wasserstein distance "
        "falls whenever n is multiplied by four."
    )
    variable = "q1_wasserstein"


class Rate(Fitted):
    """Proposition 1, with the rate."""

    paper = BRAVERMAN
    number = "Proposition 1, with the rate"
    studies = (STUDY,)
    tolerance = 0.05


class RateOfMean(Rate):
    """The mean."""

    name = "rate_of_mean_waiting"
    stated = False
    statement = "E Q2/sqrt(n) approaches its limit like n^(-1/2), for beta >= 1."
    rows = {
        "parameter": "exponent",
        "quantity": "limit - E Q2/sqrt(n)",
        "beta": SMALL_BETA_LEFT_OUT,
    }


class RateOfWaitingLaw(Rate):
    """The law of Q2."""

    name = "rate_of_q2_wasserstein"
    stated = False
    statement = (
        "The Wasserstein distance of the law of Q2/sqrt(n) falls like n^(-1/2), for beta >= 1."
    )
    rows = {
        "parameter": "exponent",
        "quantity": "Wasserstein distance of Q2/sqrt(n)",
        "beta": SMALL_BETA_LEFT_OUT,
    }


class RateOfIdleLaw(Rate):
    """The law of Q1."""

    name = "rate_of_q1_wasserstein"
    stated = False
    statement = (
        "For beta >= 1 the Wasserstein distance of the law of (Q1 - n)/sqrt(n) falls like n^(-1/2)."
    )
    rows = {
        "parameter": "exponent",
        "quantity": "Wasserstein distance of (Q1 - n)/sqrt(n)",
        "beta": SMALL_BETA_LEFT_OUT,
    }


class RateOfIdleKolmogorov(Rate):
    """Kolmogorov's distance of Q1."""

    name = "rate_of_q1_kolmogorov"
    stated = False
    statement = (
        "For beta >= 1 the Kolmogorov distance of the law of (Q1 - n)/sqrt(n) falls like n^(-1/2)."
    )
    rows = {
        "parameter": "exponent",
        "quantity": "Kolmogorov distance of (Q1 - n)/sqrt(n)",
        "beta": SMALL_BETA_LEFT_OUT,
    }


class RateOfWaitingKolmogorov(Rate):
    """Kolmogorov's distance of Q2."""

    name = "rate_of_q2_kolmogorov"
    stated = False
    statement = (
        "The Kolmogorov distance of the law of Q2/sqrt(n) decays like n^(-theta/2) only, for "
        "beta >= 1: it is that of the atom at 0, which the diffusion does not have."
    )
    tolerance = 0.01
    rows = {
        "parameter": "exponent",
        "quantity": "Kolmogorov distance of Q2/sqrt(n)",
        "beta": SMALL_BETA_LEFT_OUT,
    }


class RateOfWaitingKolmogorovHalf(Claim):
    """Whether it is as fast as all else."""

    name = "rate_of_q2_kolmogorov_is_half"
    stated = False
    paper = BRAVERMAN
    number = "Proposition 1, with the rate"
    statement = "The Kolmogorov distance of the law of Q2/sqrt(n), too, falls like n^(-1/2)."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the exponents with -1/2."""
        name = "Kolmogorov distance of Q2/sqrt(n)"
        for number in results.fitted(STUDY, parameter="exponent", quantity=name):
            yield number.near(-0.5, 0.05)


class Tightness(Claim):
    """The mean is bounded by its limit."""

    name = "mean_waiting_below_its_limit"
    paper = BRAVERMAN
    number = "Theorem 2, tightness"
    statement = "E Q2/sqrt(n) is below its limit for every n, so its least upper bound is E Y2."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare chains with the diffusion."""
        limits = {_beta(number): number for number in results.read(STUDY, MEAN)}
        for mean in results.read(STUDY, MEAN, Role.EXACT):
            yield mean.at_most(limits[_beta(mean)])


class IdleMeanLimit(Claim):
    """The drift of the diffusion."""

    name = "diffusion_mean_idle"
    paper = BRAVERMAN
    number = "(2.1) and Theorem 3"
    statement = "The stationary mean of Y1 is -beta."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the mean with beta."""
        for idle in results.read(STUDY, "scaled_idle_mean"):
            yield idle.near(_beta(idle), 1e-6)


class Covariance(Claim):
    """The generator applied to x1 x2."""

    name = "diffusion_covariance"
    stated = False
    paper = BRAVERMAN
    number = "(2.1), applied to x1 x2"
    statement = "The stationary covariance of Y1 and Y2 is beta E Y2 / 2."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the covariance with that."""
        names = ("scaled_idle_variance", "scaled_waiting_variance", "y1_y2_correlation", MEAN)
        for idle, waiting, correlation, mean in zip(
            *(results.read(STUDY, name) for name in names), strict=True
        ):
            spread = math.sqrt(idle.value * waiting.value)
            expected = _beta(mean) * mean.value / 2
            yield (correlation / (expected / spread)).near(1.0, 1e-5)


class IdleVariance(Claim):
    """The generator applied to x1^2."""

    name = "diffusion_idle_variance"
    stated = False
    paper = BRAVERMAN
    number = "(2.1), applied to x1 squared"
    statement = "The stationary variance of Y1 is 1 - beta E Y2 / 2."
    studies = (STUDY,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the variance with that."""
        means = {_beta(number): number for number in results.read(STUDY, MEAN)}
        for variance in results.read(STUDY, "scaled_idle_variance"):
            expected = 1 - _beta(variance) * means[_beta(variance)].value / 2
            yield (variance / expected).near(1.0, 1e-5)


class Ergodic(Valued):
    """Corollary 1."""

    name = "diffusion_exponentially_ergodic"
    paper = BRAVERMAN
    number = "Theorem 4, Corollary 1"
    statement = "The diffusion forgets its start exponentially: its spectral gap is positive."
    studies = (GAPS,)
    variable = "spectral_gap"
    low = 1e-6
    labels = {"n_servers": np.inf}
    role = Role.RELAXATION


class ChainsErgodic(Claim):
    """Remark 2."""

    name = "chains_exponentially_ergodic"
    paper = BRAVERMAN
    number = "Remark 2"
    statement = (
        "The chains forget their start exponentially, at a rate that does not vanish with n: their "
        "gaps are at least that of the diffusion."
    )
    studies = (GAPS,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the gaps of chains with that of the diffusion."""
        gaps = results.read(GAPS, "spectral_gap", Role.RELAXATION)
        limits = {_beta(gap): gap for gap in gaps if math.isinf(_servers(gap))}
        for gap in gaps:
            if not math.isinf(_servers(gap)):
                yield (gap / limits[_beta(gap)]).above(1.0)


class GapIsTheEdge(Claim):
    """What a drift of -beta far out would give."""

    name = "gap_is_beta_squared_over_four"
    stated = False
    paper = BRAVERMAN
    number = "Section 5, with the rate"
    statement = "The spectral gap of the diffusion is beta^2/4, as for a constant drift -beta."
    studies = (GAPS,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the gap with that."""
        for gap in results.read(GAPS, "spectral_gap", Role.RELAXATION, n_servers=np.inf):
            yield (gap / (_beta(gap) ** 2 / 4)).near(1.0, 0.05)


class FluidStaysInside(Claim):
    """(4.1)."""

    name = "fluid_stays_inside"
    paper = BRAVERMAN
    number = "(4.1)"
    statement = "Paths of the fluid model keep y1 <= 0 and y2 >= 0."
    studies = (PORTRAIT,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read the extremes of every path."""
        for name, sign in (("fluid_y1", -1.0), ("fluid_y2", 1.0)):
            paths: dict[object, Number] = {}
            for number in results.read(PORTRAIT, name, Role.PATHS):
                worst = paths.setdefault(number.cell["path"], number)
                if sign * number.value < sign * worst.value:
                    paths[number.cell["path"]] = number
            for number in paths.values():
                yield number.above(-1e-9) if sign > 0 else number.below(1e-9)


class FluidComesToRest(Claim):
    """Section 4: all paths end at (-beta, 0)."""

    name = "fluid_comes_to_rest"
    paper = BRAVERMAN
    number = "(4.5), (4.6)"
    statement = "All paths of the fluid model come to rest at (-beta, 0)."
    studies = (PORTRAIT,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read where the paths end."""
        last = int(results.cube(PORTRAIT)["step"].max())
        for number in results.read(PORTRAIT, "fluid_y1", Role.PATHS, step=last):
            yield number.near(-_beta(number), 0.02)
        for number in results.read(PORTRAIT, "fluid_y2", Role.PATHS, step=last):
            yield number.near(0.0, 0.02)


class NoCostBelow(Claim):
    """(4.14)."""

    name = "no_cost_below_the_level"
    paper = BRAVERMAN
    number = "(4.14)"
    statement = "The solution f* of the Stein equation is 0 where y2 is below the level."
    studies = (PORTRAIT,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read f* below the level."""
        cube = results.cube(PORTRAIT)
        level = float(cube["excess_level"].values.item())
        heights = dict(zip(cube["x2"].values.tolist(), cube["y2_grid"].values.ravel(), strict=True))
        found = results.read(PORTRAIT, "excess_cost", Role.PATHS)
        below = [n for n in found if heights[n.cell["x2"]] <= level]
        yield max(below, key=lambda number: abs(number.value)).near(0.0, 1e-9)


class CostPositive(Claim):
    """(4.3), (4.4): the cost is an integral of what is above the level."""

    name = "cost_not_negative"
    paper = BRAVERMAN
    number = "(4.3), (4.4)"
    statement = "The solution f* is nowhere negative."
    studies = (PORTRAIT,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read the least value."""
        found = results.read(PORTRAIT, "excess_cost", Role.PATHS)
        yield min(found, key=lambda number: number.value).above(-1e-9)


class CostRises(Claim):
    """Lemma 7, as far as a grid shows it."""

    name = "cost_rises_with_waiting"
    paper = BRAVERMAN
    number = "(4.14), Lemma 7"
    statement = "The solution f* does not fall as more customers wait."
    studies = (PORTRAIT,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare neighbours on the grid, and read the least rise."""
        found = results.read(PORTRAIT, "excess_cost", Role.PATHS)
        rises = [b - a for a, b in pairwise(found) if a.cell["x1"] == b.cell["x1"]]
        yield min(rises, key=lambda number: number.value).above(-1e-9)


class CurvesRise(Claim):
    """Lemma 5."""

    name = "gamma_rises_with_the_level"
    paper = BRAVERMAN
    number = "Lemma 5"
    statement = "The curve Gamma of a higher level lies above that of a lower one."
    studies = (PORTRAIT,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare each curve with the one below it."""
        curves = results.cube(PORTRAIT).sizes["curve"]
        for curve in range(1, curves):
            at = ({"curve": curve}, {"curve": curve - 1})
            pairs = results.compared(PORTRAIT, "gamma_curve", *at, Role.PATHS)
            yield min((a - b for a, b in pairs), key=lambda n: n.value).above(0.0)


class CurveEndsAtLevel(Claim):
    """Lemma 5, on the axis."""

    name = "gamma_meets_the_axis_at_the_level"
    paper = BRAVERMAN
    number = "Lemma 5"
    statement = "The curve Gamma of a level meets the axis y1 = 0 at that level."
    studies = (PORTRAIT,)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the end of each curve with its level."""
        levels = results.cube(PORTRAIT)["curve_level"].values.ravel()
        last = int(results.cube(PORTRAIT)["x1"].max())
        for number in results.read(PORTRAIT, "gamma_curve", Role.PATHS, x1=last):
            yield number.near(float(levels[int(str(number.cell["curve"]))]), 1e-9)


class LimitPointsStationary(NoNumber):
    """Section A.5."""

    name = "limit_points_are_stationary"
    paper = BRAVERMAN
    number = "Appendix A.5"
    statement = "Any limit point of the stationary laws is stationary for the diffusion."
    reason = "it is a statement about all subsequences"


def _beta(number: Number) -> float:
    return float(str(number.cell["beta"]))


def _waiting_bound(mean: Number) -> float:
    """Return C(beta) of Theorem 2."""
    # Imported here as it imports scipy.
    from manyserver.diffusion.halfin_whitt.fluid_model.bounds import mean_waiting_bound

    return mean_waiting_bound(_beta(mean))


def _servers(number: Number) -> float:
    return float(str(number.cell["n_servers"]))


def _place(number: Number) -> tuple[float, float]:
    return _beta(number), _servers(number)


def _power(many: Number, few: Number) -> Number:
    """Return the power of n by which a number changes; its error is that of the ratio."""
    ratio, factor = many / few, math.log(_servers(many) / _servers(few))
    width = ratio.half_width / ratio.value / factor
    return Number(math.log(ratio.value) / factor, width, many.study, many.cell)
