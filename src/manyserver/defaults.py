"""What a simulation is like if nothing else is asked for, in Python and in studies."""

__all__ = [
    "CONTROL_VARIATES",
    "MAX_EVENTS",
    "MOMENTS",
    "PRECISION",
    "PRECISION_OF_JOBS",
    "REPLICATIONS",
]

PRECISION, PRECISION_OF_JOBS = 0.0005, 0.005
"""Half-width of the mean sojourn time, relative to it; where jobs are followed."""
REPLICATIONS = 8
MAX_EVENTS = 1e10
CONTROL_VARIATES = True
MOMENTS = False
