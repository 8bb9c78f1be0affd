"""Randomized dispatching in large parallel-server systems."""

from manyserver.compare import compare
from manyserver.diffusion import halfin_whitt
from manyserver.exact import exact
from manyserver.mean_field import fixed_point, mean_field, refine, relaxation_time
from manyserver.model import Pool, System, UnstableSystem
from manyserver.policies import policy
from manyserver.simulate import simulate

__all__ = [
    "Pool",
    "System",
    "UnstableSystem",
    "compare",
    "exact",
    "fixed_point",
    "halfin_whitt",
    "mean_field",
    "policy",
    "refine",
    "relaxation_time",
    "simulate",
]
