"""Policies whose joining law is smooth in the limit."""

from manyserver.mean_field.smooth.expansion import Expansion, expand
from manyserver.mean_field.smooth.fixed_point import joint_fixed_point
from manyserver.mean_field.smooth.path import follow_drift
from manyserver.mean_field.smooth.relaxation import slowest_mode

__all__ = ["Expansion", "expand", "follow_drift", "joint_fixed_point", "slowest_mode"]
