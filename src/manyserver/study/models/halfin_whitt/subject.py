"""What a point computes: one beta and one number of servers."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Regime"]


@dataclass(frozen=True)
class Regime:
    """Join the shortest queue with `n_servers` servers, or its limit, at one `beta`."""

    beta: float
    n_servers: int | None

    @property
    def arguments(self) -> tuple[float, int | None]:
        """First arguments of the functions of a method."""
        return self.beta, self.n_servers

    @property
    def keywords(self) -> dict[str, Any]:
        """None."""
        return {}

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
