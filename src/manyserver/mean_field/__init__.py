"""The limit of infinitely many servers: trajectories and the fixed point."""

from manyserver.mean_field.fixed_point import fixed_point
from manyserver.mean_field.ode import mean_field
from manyserver.mean_field.relaxation import relaxation_time

__all__ = ["fixed_point", "mean_field", "relaxation_time"]
