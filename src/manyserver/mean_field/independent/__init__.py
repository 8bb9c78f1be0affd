"""Pools that an arrival is sent to whatever their state, so that they do not see each other."""

from manyserver.mean_field.independent.expansion import expand_separately
from manyserver.mean_field.independent.fixed_point import separate_fixed_point
from manyserver.mean_field.independent.pools import IndependentPool, independent_pools

__all__ = ["IndependentPool", "expand_separately", "independent_pools", "separate_fixed_point"]
