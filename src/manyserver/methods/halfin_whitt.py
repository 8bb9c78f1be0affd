"""Methods for join the shortest queue in the Halfin-Whitt regime."""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from pydantic import BaseModel

from manyserver.methods.base import Method

__all__ = ["HalfinWhittMethod", "HalfinWhittProblem"]

Options = TypeVar("Options", bound=BaseModel)


@dataclass(frozen=True)
class HalfinWhittProblem:
    """Join the shortest queue with `n_servers` servers, or its limit, at one `beta`."""

    beta: float
    n_servers: int | None

    @property
    def finite_servers(self) -> int:
        """The number of servers where there is one."""
        if self.n_servers is None:
            raise ValueError("n_servers = None: must be a number")
        return self.n_servers


class HalfinWhittMethod(Method[HalfinWhittProblem, Options]):
    """A method for values of beta in an interval.

    Attributes
    ----------
    betas : tuple of float
        Smallest and largest beta.
    """

    model = "halfin_whitt"
    primary_variable = "scaled_waiting_mean"
    betas: ClassVar[tuple[float, float]] = (0.01, 6.0)

    def check(self, problem: HalfinWhittProblem, options: Options) -> None:
        """Raise a ValueError if beta is out of the interval."""
        lowest, highest = self.betas
        if not lowest <= problem.beta <= highest:
            raise ValueError(f"beta must be from {lowest:g} to {highest:g}")
