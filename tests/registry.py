"""Instances of every policy in the registry, for tests that walk over all of them."""

import manyserver as ms
from manyserver.policies import Policy, names, policy_class

_PARAMETERS: dict[str, list[dict[str, object]]] = {
    "random": [{"probabilities": [0.125, 0.35, 0.525]}],
    "naive_split": [{}],
    "optimal_split": [{}],
    "sq": [{"d": 2}, {"d": 3, "ties": "fastest"}],
    "hybrid_sq": [{"d": 2, "split": "naive"}, {"d": [1, 2, 3]}],
    "scheme1": [{"d": [1, 2, 2]}],
    "scheme2": [{"d": [2, 1, 2]}],
    "sed": [{"d": [1, 2, 2]}, {"d": 3}, {}],
    "jsq": [{}, {"ties": "fastest"}],
    "jiq": [{}, {"d": 2, "ties": "fastest"}],
    "threshold": [{"threshold": 2}],
    # With several routers PULL has a memory, and no sampling or preference: see test_pull.py.
    "pull": [{"routers": 1}],
    "weighted_random": [{"weights": [1, 3, 2]}],
    # Jobs are followed under these; see followed_policies.
    "round_robin": [{}],
    "weighted_round_robin": [{"weights": [1, 3, 2]}],
    "least_work": [{}, {"d": 2}],
    "central_queue": [{}],
}


def _instances() -> list[Policy]:
    missing = set(names()) - set(_PARAMETERS)
    assert not missing, f"say with which parameters {missing} are tested"
    return [
        ms.policy(name, **parameters, **replacement)
        for name in names()
        for parameters in _PARAMETERS[name]
        for replacement in ({}, {"replacement": True})
        if not replacement or "replacement" in policy_class(name).parameter_names()
    ]


def policies() -> list[Policy]:
    """Every policy that looks at the servers it draws, with and without replacement."""
    return [policy for policy in _ranked() if not policy.sampling(_SYSTEM).depends_on_all]


def announced_policies() -> list[Policy]:
    """Every policy to which servers announce themselves."""
    return [policy for policy in _ranked() if policy.sampling(_SYSTEM).depends_on_all]


def followed_policies() -> list[Policy]:
    """Every policy that is no sampling and preference, so that jobs are followed."""
    return [policy for policy in _instances() if policy.follows_jobs]


def _ranked() -> list[Policy]:
    return [policy for policy in _instances() if not policy.follows_jobs]


POOLS = [ms.Pool("1/4", "1/2"), ms.Pool("1/4", "3/2"), ms.Pool("1/2", 1)]
"""Three pools of capacity one at which every policy above is stable up to a load of 0.9."""
EQUAL = [ms.Pool("1/4", 1), ms.Pool("1/4", 1), ms.Pool("1/2", 1)]
"""Three pools of equal speed, where ties between pools are broken uniformly."""

BOUNDED = [ms.Pool("1/4", "1/2", 2), ms.Pool("1/4", "3/2", 3), ms.Pool("1/2", 1, 1)]
"""The first pools, with buffers."""

_SYSTEM = ms.System(0.5, POOLS)
