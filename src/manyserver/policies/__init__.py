"""Dispatching policies, found by discovery.

Every module in this package that defines a :class:`~manyserver.policies.base.Policy` adds it to
the registry under its `name`; nothing else has to change for a new policy.
"""

from functools import cache

from manyserver.policies.base import Branch, Draw, Policy, Sampling, check_fit
from manyserver.policies.sampling import full
from manyserver.registry import discovered, found, made

__all__ = [
    "Branch",
    "Draw",
    "Policy",
    "Sampling",
    "check_fit",
    "full",
    "names",
    "policy",
    "policy_class",
]


@cache
def _registry() -> dict[str, type[Policy]]:
    return discovered(Policy, __name__, __path__)


def names() -> tuple[str, ...]:
    """Return the names of all policies, in alphabetical order."""
    return tuple(_registry())


def policy_class(name: str) -> type[Policy]:
    """Return the class of a policy.

    Raises
    ------
    ValueError
        If there is no policy of this name.
    """
    return found(_registry(), name, "policy")


def policy(name: str, **parameters: object) -> Policy:
    """Make a policy from its name and parameters.

    Parameters
    ----------
    name : str
        For example ``"sq"``; ``manyserver.policies.names()`` gives all.
    **parameters
        The fields of that policy, for example ``d=[2, 2]``. Policies that draw servers take
        ``replacement=False``: whether one draw may look at the same server twice.

    Returns
    -------
    Policy

    Raises
    ------
    ValueError
        If the name or a parameter is unknown, missing, or out of its range.

    Examples
    --------
    >>> import manyserver as ms
    >>> ms.policy("scheme1", d=[2, 2])
    Scheme1(d=(2, 2), replacement=False)
    """
    return made(policy_class(name), name, "policy", parameters)
