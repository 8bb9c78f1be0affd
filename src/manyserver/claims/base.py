"""What a claim is, and how its verdict follows from numbers.

Every claim is brought to one form: some numbers, each with its 95 % half-width, must lie in an
interval. Then one rule decides (:func:`decide`): a claim is confirmed if the interval of every
number lies inside, refuted if that of one lies outside, and else not decidable.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar

from manyserver.claims.evidence import Evidence, where_false

if TYPE_CHECKING:
    from manyserver.claims.results import Results

__all__ = [
    "BRAVERMAN",
    "MUKHOPADHYAY",
    "STOLYAR",
    "Claim",
    "Finding",
    "NotBuilt",
    "NotComputable",
    "Verdict",
    "decide",
]

MUKHOPADHYAY, STOLYAR, BRAVERMAN = "1502.05786", "1512.07873", "1801.05121"
"""The papers, by their numbers on arXiv."""
LEVEL = 0.95


class Verdict(Enum):
    """What the numbers say of a claim."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted in general"
    UNDECIDED = "not decidable at this precision"
    NOT_COMPUTABLE = "not computable"
    NOT_BUILT = "study not built"


class NotBuilt(Exception):
    """Raised where a study that is needed was not built, or lacks the cells."""


class NotComputable(Exception):
    """Raised where no number can decide a claim; the message says why."""


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict.

    Parameters
    ----------
    claim : Claim
    verdict : Verdict
    evidence : Evidence or None
        What decided: the counterexample, or the number that comes nearest to being one.
    numbers : int
        How many numbers were looked at.
    note : str
        What else a reader should know, such as why there is no verdict.
    """

    claim: "Claim"
    verdict: Verdict
    evidence: Evidence | None = None
    numbers: int = 0
    note: str = ""


class Claim(ABC):
    """A statement of a paper, and the numbers that decide it.

    Attributes
    ----------
    name : str
        Identifies it; never changed, since tables are compared by it.
    paper : str
        The paper's number on arXiv.
    number : str
        Which statement it is, by the numbers of the version on arXiv.
    statement : str
        The statement in our own words.
    studies : tuple of str
        Studies from which it is decided.
    stated : bool
        Whether the paper states it; else it is a question that the statement raises, such as how
        fast something converges.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    number: ClassVar[str]
    statement: ClassVar[str]
    studies: ClassVar[tuple[str, ...]]
    stated: ClassVar[bool] = True

    @abstractmethod
    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Yield the numbers of the cubes and fits that decide the claim.

        Raises
        ------
        NotBuilt
            If a study was not built, or does not have the cells.
        NotComputable
            If no number can decide it.
        """

    def finding(self, results: "Results") -> Finding:
        """Decide the claim."""
        try:
            found = list(self.evidence(results))
        except NotBuilt as error:
            return Finding(self, Verdict.NOT_BUILT, note=str(error))
        except NotComputable as error:
            return Finding(self, Verdict.NOT_COMPUTABLE, note=str(error))
        except (IndexError, KeyError, TypeError, ValueError) as error:
            # A study was edited so far that what a claim is about is not in it.
            return Finding(self, Verdict.NOT_BUILT, note=f"the studies lack what it needs: {error}")
        return decide(self, found)


def decide(claim: Claim, found: Iterable[Evidence]) -> Finding:
    """Return the verdict that numbers give.

    Half-widths of several numbers are widened, so that all of their intervals hold together with
    95 % (Bonferroni). Numbers without a reliable interval are left out, and counted in the note.
    """
    found = list(found)
    known = [one for one in found if one.known]
    if not known:
        return Finding(claim, Verdict.NOT_BUILT, note="no cell has a number with an error")
    factor = _widening(sum(one.half_width > 0 for one in known))
    left_out = len(found) - len(known)
    told = [f"{left_out} cells without a reliable interval left out"] if left_out else []

    def slack(one: Evidence) -> float:
        return one.inside - factor * one.half_width

    against = [one for one in known if one.inside < -factor * one.half_width]
    if against:
        verdict = Verdict.REFUTED
        worst = min(against, key=lambda one: one.inside + factor * one.half_width)
        told.insert(0, where_false(known, against))
    else:
        worst = min(known, key=slack)
        verdict = Verdict.CONFIRMED if slack(worst) >= 0 else Verdict.UNDECIDED
    return Finding(claim, verdict, worst, len(known), "; ".join(told))


def _widening(count: int) -> float:
    """Return by what half-widths of `count` numbers are multiplied to hold together."""
    one, all_of_them = ((1 + level) / 2 for level in (LEVEL, 1 - (1 - LEVEL) / max(1, count)))
    return NormalDist().inv_cdf(all_of_them) / NormalDist().inv_cdf(one)
