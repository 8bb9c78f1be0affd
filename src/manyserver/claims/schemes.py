"""Schemes 1 and 2 against each other and against state-independent splits, arXiv:1502.05786."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from manyserver.claims.base import MUKHOPADHYAY, Claim, NotBuilt
from manyserver.claims.evidence import Evidence
from manyserver.claims.patterns import Beats, NoNumber, Valued
from manyserver.claims.results import Number
from manyserver.methods import Role

if TYPE_CHECKING:
    from manyserver.claims.results import Results

SCHEME_1, SCHEME_2 = "scheme1 d=(2,2)", "scheme2 d=(2,2)"
FIRST, SECOND = "Scheme 1", "Scheme 2"
"""Their labels in the studies where the choices are an axis."""
OPTIMAL_HYBRID, NAIVE_HYBRID = "hybrid_sq d=2 split=optimal", "hybrid_sq d=2 split=naive"


class Scheme2BetterTwoChoices(Beats):
    """The remark after (2.4), for d = 2."""

    name = "scheme2_better_two_choices"
    paper = MUKHOPADHYAY
    number = "Section 2, remark on (2.4)"
    statement = (
        "Scheme 2, whose metric is finer, has a smaller mean sojourn time than Scheme 1 when both "
        "look at two servers of each pool."
    )
    studies = ("choices",)
    better, worse = SECOND, FIRST
    labels = {"d": 2}


class Scheme2BetterVeryUnequal(Beats):
    """The same where speeds are very unequal."""

    name = "scheme2_better_very_unequal"
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 4"
    statement = "At C = (1/5, 9/5) Scheme 2 has a smaller mean sojourn time than Scheme 1 from .3."
    studies = ("fig4_optimised",)
    better, worse = SCHEME_2, SCHEME_1
    labels = {"arrival_rate": [round(0.3 + 0.05 * i, 2) for i in range(13)]}


class Scheme2BetterAnyChoices(Claim):
    """The same remark, for any d."""

    name = "scheme2_better_any_choices"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 2, remark on (2.4)"
    statement = (
        "Scheme 2 has a smaller mean sojourn time than Scheme 1 for every number of choices."
    )
    studies = ("choices",)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the two wherever they differ."""
        one, other = {"policy": SECOND}, {"policy": FIRST}
        for a, b in results.compared("choices", "sojourn_mean", one, other):
            # With many choices and little load the two hardly do.
            if abs(a.value / b.value - 1) > 1e-9:
                yield a.at_most(b)


class AnyRatio(Beats):
    """One policy beats another for every ratio of the speeds and every part of fast servers."""

    stated = False
    paper = MUKHOPADHYAY
    studies = ("capacity_ratio",)


class Scheme2BetterAnyRatio(AnyRatio):
    """The same remark, for any speeds."""

    name = "scheme2_better_any_ratio"
    number = "Section 2, remark on (2.4)"
    statement = (
        "Scheme 2 has a smaller mean sojourn time than Scheme 1, both with two choices, for every "
        "ratio of the speeds."
    )
    better, worse = SCHEME_2, SCHEME_1


class Scheme1BeatsNaiveHybridAnyRatio(AnyRatio):
    """Scheme 1 outperforms hybrid SQ(2)."""

    name = "scheme1_beats_naive_hybrid_any_ratio"
    number = "Section 6, Figures 4 and 5"
    statement = (
        "Scheme 1 outperforms hybrid SQ(2), split in proportion, for every ratio of the speeds."
    )
    better, worse = SCHEME_1, NAIVE_HYBRID


class Scheme2BeatsNaiveHybridAnyRatio(AnyRatio):
    """Scheme 2 outperforms hybrid SQ(2)."""

    name = "scheme2_beats_naive_hybrid_any_ratio"
    number = "Section 6, Figures 4 and 5"
    statement = (
        "Scheme 2 outperforms hybrid SQ(2), split in proportion, for every ratio of the speeds."
    )
    better, worse = SCHEME_2, NAIVE_HYBRID


class Scheme2BeatsOptimalSplitAnyRatio(AnyRatio):
    """Scheme 2 beats the optimal state-independent split."""

    name = "scheme2_beats_optimal_split_any_ratio"
    number = "Section 6, Figures 4 and 5"
    statement = "Scheme 2 beats the optimal state-independent split for every ratio of the speeds."
    better, worse = SCHEME_2, "optimal_split"


class JSQBeatsScheme2AnyRatio(AnyRatio):
    """Join the shortest queue."""

    name = "jsq_beats_scheme2_any_ratio"
    number = "Section 6, Figures 4 and 5"
    statement = "JSQ, with ties to the fastest, beats Scheme 2 for every ratio of the speeds."
    better, worse = "jsq ties=fastest", SCHEME_2


class Scheme1BeatsNaiveHybrid(Beats):
    """Figure 5, Scheme 1."""

    name = "scheme1_beats_naive_hybrid"
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 5"
    statement = "Scheme 1 outperforms hybrid SQ(2) with the split in proportion to the capacity."
    studies = ("fig5_naive",)
    better, worse = SCHEME_1, NAIVE_HYBRID


class Scheme2BeatsNaiveHybrid(Beats):
    """Figure 5, Scheme 2."""

    name = "scheme2_beats_naive_hybrid"
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 5"
    statement = "Scheme 2 outperforms hybrid SQ(2) with the split in proportion to the capacity."
    studies = ("fig5_naive",)
    better, worse = SCHEME_2, NAIVE_HYBRID


class Scheme1BeatsNaiveSplit(Beats):
    """Figure 5, the split."""

    name = "scheme1_beats_naive_split"
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 5"
    statement = "Scheme 1 outperforms the state-independent split in proportion to the capacity."
    studies = ("fig5_naive",)
    better, worse = SCHEME_1, "naive_split"


class Scheme2BeatsNaiveSplit(Beats):
    """Figure 5, the split."""

    name = "scheme2_beats_naive_split"
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 5"
    statement = "Scheme 2 outperforms the state-independent split in proportion to the capacity."
    studies = ("fig5_naive",)
    better, worse = SCHEME_2, "naive_split"


class Scheme1BeatsOptimalHybrid(Beats):
    """Figure 4, Scheme 1."""

    name = "scheme1_beats_optimal_hybrid"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 4"
    statement = "Scheme 1 outperforms hybrid SQ(2) with the optimal split."
    studies = ("fig4_optimised",)
    better, worse = SCHEME_1, OPTIMAL_HYBRID


class Scheme2BeatsOptimalHybrid(Beats):
    """Figure 4, Scheme 2."""

    name = "scheme2_beats_optimal_hybrid"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 4"
    statement = "Scheme 2 outperforms hybrid SQ(2) with the optimal split."
    studies = ("fig4_optimised",)
    better, worse = SCHEME_2, OPTIMAL_HYBRID


class Scheme2BeatsOptimalHybridHighLoad(Beats):
    """Figure 4, Scheme 2 at high load."""

    name = "scheme2_beats_optimal_hybrid_high_load"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 4"
    statement = "At arrival rates from .85 on, Scheme 2 outperforms hybrid SQ(2), optimally split."
    studies = ("fig4_optimised",)
    better, worse = SCHEME_2, OPTIMAL_HYBRID
    labels = {"arrival_rate": [0.85, 0.9]}


class Scheme1BeatsOptimalSplit(Beats):
    """The schemes against the best split."""

    name = "scheme1_beats_optimal_split"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 4"
    statement = "Scheme 1 always beats the optimal state-independent split."
    studies = ("fig4_optimised",)
    better, worse = SCHEME_1, "optimal_split"


class Scheme2BeatsOptimalSplit(Beats):
    """The schemes against the best split."""

    name = "scheme2_beats_optimal_split"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 4"
    statement = "Scheme 2 always beats the optimal state-independent split."
    studies = ("fig4_optimised",)
    better, worse = SCHEME_2, "optimal_split"


class HybridBeatsSplit(Beats):
    """Two choices within the pool that the split picks."""

    name = "hybrid_beats_split"
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 4"
    statement = "Looking at two servers of the pool that an optimal split picks beats looking at 1."
    studies = ("fig4_optimised",)
    better, worse = OPTIMAL_HYBRID, "optimal_split"


class NaiveHybridBeatsNaiveSplit(Beats):
    """The same with the other split."""

    name = "naive_hybrid_beats_naive_split"
    paper = MUKHOPADHYAY
    number = "Section 6, Figure 5"
    statement = "Looking at two servers of the pool that a naive split picks beats looking at one."
    studies = ("fig5_naive",)
    better, worse = NAIVE_HYBRID, "naive_split"


class Scheme1BeatsSQ(Beats):
    """SQ(d) on the whole system, where it is stable."""

    name = "scheme1_beats_sq"
    paper = MUKHOPADHYAY
    number = "Section 3, after (3.5)"
    statement = "Scheme 1 beats SQ(2) on the whole system wherever that is stable."
    studies = ("fig5_naive",)
    better, worse = SCHEME_1, "sq d=2"


class Scheme2BeatsSQ(Beats):
    """SQ(d) on the whole system, where it is stable."""

    name = "scheme2_beats_sq"
    paper = MUKHOPADHYAY
    number = "Section 3, after (3.5)"
    statement = "Scheme 2 beats SQ(2) on the whole system wherever that is stable."
    studies = ("fig5_naive",)
    better, worse = SCHEME_2, "sq d=2"


class OneChoiceBeatsSplit(Beats):
    """The abstract: the schemes reduce the mean sojourn time."""

    name = "one_choice_beats_optimal_split"
    paper = MUKHOPADHYAY
    number = "Abstract"
    statement = (
        "Looking at one server of each pool reduces the mean sojourn time below that of the "
        "optimal split, at C = (2/3, 4/3)."
    )
    studies = ("how_much_information",)
    better, worse = "scheme1 d=(1,1)", "optimal_split"


class ChoicesHelp(Claim):
    """The mean sojourn time falls with d."""

    scheme: str
    studies = ("choices",)
    paper = MUKHOPADHYAY
    number = "Section 6"

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare each d with the one before."""
        for few, many in pairwise(results.cube("choices")["d"].values.tolist()):
            at = ({"d": many}, {"d": few})
            for a, b in results.compared("choices", "sojourn_mean", *at, policy=self.scheme):
                if abs(a.value / b.value - 1) > 1e-9:
                    yield a.at_most(b)


class ChoicesHelpScheme1(ChoicesHelp):
    """Scheme 1."""

    name = "choices_help_scheme1"
    statement = "Under Scheme 1 more choices never make the mean sojourn time longer."
    scheme = FIRST


class ChoicesHelpScheme2(ChoicesHelp):
    """Scheme 2."""

    name = "choices_help_scheme2"
    statement = "Under Scheme 2 more choices never make the mean sojourn time longer."
    scheme = SECOND


class FewerJobsThanSplit(Claim):
    """Remark 3.1, in the mean."""

    name = "fewer_jobs_than_proportional_split"
    paper = MUKHOPADHYAY
    number = "Remark 3.1"
    statement = (
        "With one choice in each pool there are fewer jobs than under the split in proportion to "
        "the capacity, where each server is an M/M/1 queue with the load of the whole, on average."
    )
    studies = ("choices",)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare with the mean number of jobs at an M/M/1 queue."""
        for jobs in results.read("choices", "jobs_per_server", policy=[FIRST, SECOND], d=1):
            load = float(str(jobs.cell["arrival_rate"])) / _capacity(results, "choices", jobs)
            yield jobs.below(load / (1 - load))


def _capacity(results: "Results", study: str, number: Number) -> float:
    """Return the capacity per server of the system of a number."""
    here = results.cube(study).sel(system=number.cell["system"])
    return float((here["pool_fraction"] * here["pool_speed"]).sum())


class StableUpToCapacity(Claim):
    """Theorem 3.1: the flows balance at every load below the capacity."""

    name = "stable_up_to_the_capacity"
    paper = MUKHOPADHYAY
    number = "Theorem 3.1"
    statement = "Schemes 1 and 2 are stable at every load below the capacity, here to .99."
    studies = ("choices",)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read the mean number of jobs, which is finite, at the largest rate."""
        rate = float(results.cube("choices")["arrival_rate"].max())
        if rate < 0.99:
            raise NotBuilt("the study choices has no arrival rate of .99")
        for jobs in results.read("choices", "jobs_per_server", arrival_rate=rate):
            yield jobs.between(0.0, rate / (1 - rate))


class StabilityLimit(Valued):
    """Theorem 3.1, by the condition (3.2)-(3.5) for all sets of servers."""

    name = "stability_limit_of_the_schemes"
    paper = MUKHOPADHYAY
    number = "Theorem 3.1, (3.2)-(3.5)"
    statement = "Under Schemes 1 and 2 no set of servers is overloaded at a load below one."
    studies = ("fig5_naive", "capacity_ratio")
    variable = "stability_limit"
    low, high = 1 - 1e-9, 1 + 1e-9
    labels = {"policy": [SCHEME_1, SCHEME_2]}


class SQStability(Claim):
    """Where SQ(2) stops being stable, by its points."""

    name = "stability_limit_of_sq"
    paper = MUKHOPADHYAY
    number = "(3.2)-(3.5)"
    statement = (
        "SQ(2) on the whole system has a stationary law up to the rate at which the slow servers "
        "alone are overloaded, and not above."
    )
    studies = ("fig5_naive",)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Find the rates between which it stops having one."""
        study, policy = "fig5_naive", "sq d=2"
        rates = results.cube(study)["arrival_rate"].values
        found = results.read(study, "sojourn_mean", policy=policy)
        last = max(found, key=lambda number: float(str(number.cell["arrival_rate"])))
        below = float(str(last.cell["arrival_rate"]))
        if not (rates > below).any():
            raise NotBuilt(f"the study {study} has no rate at which SQ(2) is unstable")
        step = float(rates[rates > below].min()) - below
        (limit,) = results.read(study, "stability_limit", policy=policy)
        middle = Number(below + step / 2, step / 2, study, last.cell)
        yield middle.near(limit.value * _capacity(results, study, limit), step + 1e-9)


class SQMaximallyStable(Valued):
    """Not so for SQ(d)."""

    name = "sq_is_maximally_stable"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 3, after (3.5)"
    statement = "SQ(2) on the whole system is stable at every load below one, too."
    studies = ("fig5_naive", "capacity_ratio")
    variable = "stability_limit"
    low = 1 - 1e-9
    labels = {"policy": "sq d=2"}


class EqualLoads(Claim):
    """The naive split loads all servers alike."""

    name = "proportional_split_loads_all_alike"
    paper = MUKHOPADHYAY
    number = "Section 6"
    statement = "The split in proportion to the capacity gives all servers the same load."
    studies = ("fig5_naive",)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the fraction of busy servers of each pool with the load."""
        for busy in results.read("fig5_naive", "queue_tail", policy="naive_split", level=1):
            load = float(str(busy.cell["arrival_rate"])) / _capacity(results, "fig5_naive", busy)
            yield busy.near(load, 1e-9)


class UnstableAboveCapacity(NoNumber):
    """No policy is stable above the capacity."""

    name = "unstable_above_capacity"
    paper = MUKHOPADHYAY
    number = "Section 3"
    statement = "No policy is stable if the arrival rate exceeds the capacity."
    reason = "such systems are refused: there is no stationary law whose numbers could be read"


class UniqueSolution(NoNumber):
    """Proposition 4.1."""

    name = "unique_solution"
    paper = MUKHOPADHYAY
    number = "Proposition 4.1"
    statement = "The mean-field equations have one solution from every start."
    reason = "it is a statement about all solutions of a differential equation"


class LimitAtFigure4(Claim):
    """Figures 4 and 5 against simulations."""

    name = "limit_near_100_servers"
    paper = MUKHOPADHYAY
    number = "Section 6, Figures 4 and 5"
    statement = (
        "With 100 servers the mean sojourn time under the schemes is within 5 % of its limit."
    )
    studies = ("fig4_optimised",)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare simulation and limit."""
        finite, limit = {"n_servers": 100.0}, {"n_servers": np.inf}
        for a, b in results.compared(
            "fig4_optimised",
            "sojourn_mean",
            finite,
            limit,
            Role.SIMULATION,
            Role.LIMIT,
            policy=[SCHEME_1, SCHEME_2],
        ):
            yield (a / b).near(1.0, 0.05)


class Messages(Valued):
    """What the schemes cost."""

    name = "schemes_ask_each_server"
    paper = MUKHOPADHYAY
    number = "Section 2"
    statement = (
        "A scheme that looks at two servers of each of two pools costs eight messages a job."
    )
    studies = ("how_much_information",)
    variable = "messages_per_job"
    low, high = 7.999, 8.001
    labels = {"policy": [SCHEME_1, SCHEME_2]}
    role = Role.SIMULATION
