"""What a point computes: one beta and one number of servers."""

from dataclasses import dataclass
from typing import Any

from manyserver.methods.halfin_whitt import HalfinWhittProblem

__all__ = ["Regime"]


@dataclass(frozen=True)
class Regime(HalfinWhittProblem):
    """Join the shortest queue with `n_servers` servers, or its limit, at one `beta`."""

    @property
    def problem(self) -> HalfinWhittProblem:
        """What a method computes."""
        return self

    @property
    def shared(self) -> dict[str, Any]:
        """All but beta."""
        return {"halfin_whitt": {"n_servers": self.n_servers}}

    @property
    def parameters(self) -> dict[str, Any]:
        """All that the result depends on."""
        return {"halfin_whitt": {"beta": self.beta, "n_servers": self.n_servers}}

    @property
    def seeded(self) -> dict[str, Any]:
        """The same, from which the seed is derived."""
        return self.parameters

    @property
    def title(self) -> str:
        """Nothing more to tell than the method."""
        return ""

    @property
    def modules(self) -> tuple[str, ...]:
        """No code but that of the method."""
        return ()
