"""Regimes: how a system with many servers behaves under a policy, and what follows from that."""

from manyserver.mean_field.regimes.announced import Announced
from manyserver.mean_field.regimes.base import Regime
from manyserver.mean_field.regimes.independent import Independent
from manyserver.mean_field.regimes.routed import Routed
from manyserver.mean_field.regimes.smooth import Smooth
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Regime", "Smooth", "regime_of"]

REGIMES: tuple[type[Regime], ...] = (Routed, Announced, Independent, Smooth)
"""The first that fits is that of a system."""


def regime_of(system: System, policy: Policy) -> Regime:
    """Return the regime of a system under a policy.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.9, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
    >>> for policy in ms.policy("jsq"), ms.policy("scheme1", d=[2, 2]), ms.policy("optimal_split"):
    ...     print(type(regime_of(system, policy)).__name__)
    Announced
    Smooth
    Independent
    """
    fitting = next(regime for regime in REGIMES if regime.fits(system, policy))
    return fitting(system, policy)
