"""Dispatching policies, found by :mod:`manyserver.registry`.

Every module in this package that defines a :class:`~manyserver.policies.base.Policy` adds it
under its `name`, and so does an entry point of the group ``manyserver.policies`` in any other
package. The classes can be imported from here.
"""

from typing import Any

from manyserver.policies.base import Branch, Draw, Policy, Sampling, check_fit
from manyserver.policies.sampling import full
from manyserver.registry import Registry

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

REGISTRY = Registry("policy", Policy, __name__)
names, policy_class = REGISTRY.names, REGISTRY.find


def __getattr__(name: str) -> Any:
    return REGISTRY.exported(name)


def policy(name: str, **parameters: Any) -> Policy:
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
    >>> ms.policies.Scheme1(d=(2, 2))
    Scheme1(d=(2, 2), replacement=False)
    """
    return REGISTRY.make(name, **parameters)
