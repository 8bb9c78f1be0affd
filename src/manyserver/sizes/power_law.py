"""The power law of arXiv:1502.05786."""

from dataclasses import dataclass, field
from typing import ClassVar

from manyserver.sizes.pareto import Pareto

__all__ = ["PowerLaw"]


@dataclass(frozen=True)
class PowerLaw(Pareto):
    """``P(X > x) = 1 / (4 x**2)`` for x >= 1/2: mean one, infinite variance.

    Parameters
    ----------
    mean : float

    Notes
    -----
    The power law of Table 1 of arXiv:1502.05786; Pareto's law of shape 2.
    """

    name: ClassVar[str] = "power_law"
    title: ClassVar[str] = "power law"

    shape: float = field(default=2.0, init=False, repr=False)
    mean: float = 1.0
