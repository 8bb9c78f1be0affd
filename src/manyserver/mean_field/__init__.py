"""The limit of infinitely many servers: trajectories, the fixed point, and corrections to it."""

from manyserver.mean_field.announced import CriticalLoad
from manyserver.mean_field.fixed_point import fixed_point, pull_fixed_point
from manyserver.mean_field.ode import mean_field
from manyserver.mean_field.pull import pull_asymptotics
from manyserver.mean_field.refinement import NotSmooth, refine
from manyserver.mean_field.relaxation import relaxation_time

__all__ = [
    "CriticalLoad",
    "NotSmooth",
    "fixed_point",
    "mean_field",
    "pull_asymptotics",
    "pull_fixed_point",
    "refine",
    "relaxation_time",
]
