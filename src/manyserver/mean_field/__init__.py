"""The limit of infinitely many servers: trajectories, the fixed point, and corrections to it."""

from manyserver.mean_field.fixed_point import fixed_point
from manyserver.mean_field.ode import mean_field
from manyserver.mean_field.refinement import NotSmooth, refine
from manyserver.mean_field.relaxation import relaxation_time

__all__ = ["NotSmooth", "fixed_point", "mean_field", "refine", "relaxation_time"]
