"""Randomized dispatching in large parallel-server systems."""

from manyserver.mean_field import fixed_point, mean_field, relaxation_time
from manyserver.model import Pool, System, UnstableSystem
from manyserver.policies import policy

__all__ = [
    "Pool",
    "System",
    "UnstableSystem",
    "fixed_point",
    "mean_field",
    "policy",
    "relaxation_time",
]
