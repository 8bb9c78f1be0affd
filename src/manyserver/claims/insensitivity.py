"""Insensitivity to the law of the job sizes under processor sharing, arXiv:1502.05786."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from manyserver.claims.base import MUKHOPADHYAY, Claim
from manyserver.claims.evidence import Evidence
from manyserver.claims.patterns import Fitted

if TYPE_CHECKING:
    from manyserver.claims.results import Results

TO_EXPONENTIAL = "relative deviation of the mean from exponential"
TO_LIMIT = "relative deviation of the mean from the limit"
SCHEME_1, SCHEME_2 = "scheme1 d=(2,2)", "scheme2 d=(2,2)"


class Insensitive(Fitted):
    """The mean sojourn time is that of exponential sizes."""

    paper = MUKHOPADHYAY
    number = "Section 6, Table 1"
    studies = ("insensitivity",)
    tolerance = 0.03


class InsensitiveConstant(Insensitive):
    """Table 1, constant sizes."""

    name = "insensitive_constant_sizes"
    statement = "With 100 servers and constant sizes the mean is that of exponential ones, to 3 %."
    rows = {"parameter": TO_EXPONENTIAL, "jobs": "constant", "policy": SCHEME_1}


class InsensitivePowerLaw(Insensitive):
    """Table 1, a power law."""

    name = "insensitive_power_law"
    statement = "With 100 servers and a power law the mean is that of exponential sizes, to 3 %."
    rows = {"parameter": TO_EXPONENTIAL, "jobs": "power law", "policy": SCHEME_1}


class InsensitiveHyperexponential(Insensitive):
    """The conjecture, for a law that is not in the table."""

    name = "insensitive_hyperexponential"
    stated = False
    statement = (
        "With 100 servers and hyperexponential sizes the mean is that of exponential ones, to 3 %."
    )
    rows = {"parameter": TO_EXPONENTIAL, "jobs": "hyperexponential", "policy": SCHEME_1}


class InsensitiveScheme2(Insensitive):
    """The conjecture, for Scheme 2."""

    name = "insensitive_scheme2"
    stated = False
    number = "Section 6"
    statement = (
        "Under Scheme 2, with 100 servers, the mean is that of exponential sizes for all laws, "
        "to 3 %."
    )
    rows = {"parameter": TO_EXPONENTIAL, "policy": SCHEME_2}


class InsensitiveLimit(Insensitive):
    """The limit holds for all laws."""

    name = "limit_for_all_laws"
    number = "Section 6, the conjecture that limits are insensitive"
    statement = (
        "With 1000 servers the mean sojourn time under Scheme 1 is within .6 % of the limit for "
        "exponential sizes, whatever the law."
    )
    studies = ("insensitivity_1000",)
    tolerance = 0.006

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read the deviations from the limit."""
        for number in results.fitted(*self.studies, parameter=TO_LIMIT, policy=SCHEME_1):
            yield number.near(0.0, self.tolerance)


class Insensitive1000(Insensitive):
    """Table 1, with 1000 servers."""

    name = "insensitive_1000_servers"
    statement = "With 1000 servers the mean sojourn time depends on the law by .5 % at most."
    studies = ("insensitivity_1000",)
    rows = {"parameter": TO_EXPONENTIAL, "policy": SCHEME_1}
    tolerance = 0.005


class InsensitiveVariance(Claim):
    """It does not hold for more than the mean."""

    name = "variance_is_insensitive"
    stated = False
    paper = MUKHOPADHYAY
    number = "Section 6 (said of means alone)"
    statement = "The variance of the sojourn time does not depend on the law of the sizes, either."
    studies = ("insensitivity",)

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read the ratios of the variances."""
        name = "ratio of the variance to that of exponential"
        for number in results.fitted("insensitivity", parameter=name):
            yield number.near(1.0, 0.05)
