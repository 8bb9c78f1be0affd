"""Claims of forms that occur often; a claim of one of them is data alone."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from manyserver.claims.base import Claim, NotComputable
from manyserver.claims.evidence import Evidence
from manyserver.claims.results import Number
from manyserver.methods import Role

if TYPE_CHECKING:
    from manyserver.claims.results import Results

__all__ = ["Beats", "Falls", "Fitted", "NoNumber", "Valued"]


class Beats(Claim):
    """In the limit, one policy has the smaller mean sojourn time at all points of a study."""

    better: ClassVar[str]
    worse: ClassVar[str]
    labels: ClassVar[Mapping[str, Any]] = {}

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare the two at equal systems and rates."""
        one, other = {"policy": self.better}, {"policy": self.worse}
        for study in self.studies:
            for a, b in results.compared(study, "sojourn_mean", one, other, **self.labels):
                yield a.at_most(b)


class Falls(Claim):
    """A variable of finite systems falls from each number of servers to the next that is read."""

    variable: ClassVar[str]
    servers: ClassVar[tuple[float, ...]]
    labels: ClassVar[Mapping[str, Any]] = {}
    role: ClassVar[Role] = Role.SIMULATION

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Compare each number of servers with the one before."""
        (study,) = self.studies
        for few, many in pairwise(self.servers):
            at = ({"n_servers": many}, {"n_servers": few})
            for a, b in results.compared(study, self.variable, *at, self.role, **self.labels):
                if not a.value == b.value == 0:
                    yield a.at_most(b)


class Valued(Claim):
    """A variable lies in an interval at all points of a study."""

    variable: ClassVar[str]
    low: ClassVar[float] = -np.inf
    high: ClassVar[float] = np.inf
    labels: ClassVar[Mapping[str, Any]] = {}
    role: ClassVar[Role] = Role.LIMIT

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read the variable."""
        for study in self.studies:
            for number in results.read(study, self.variable, self.role, **self.labels):
                yield number.between(self.low, self.high)


class Fitted(Claim):
    """A fitted parameter is as expected, to within a tolerance."""

    rows: ClassVar[Mapping[str, Any]]
    tolerance: ClassVar[float]
    relative: ClassVar[bool] = False

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Read the rows of the fits."""
        for study in self.studies:
            for number in results.fitted(study, **self.rows):
                yield number.near(number.expected, self.allowed(number))

    def allowed(self, number: Number) -> float:
        """Return the tolerance of one number."""
        return self.tolerance * (abs(number.expected) if self.relative else 1)


class NoNumber(Claim):
    """A statement that no number can decide."""

    studies = ()
    reason: ClassVar[str]

    def evidence(self, results: "Results") -> Iterator[Evidence]:
        """Say why there is none."""
        raise NotComputable(self.reason)
