"""Small systems without approximation: the stationary law of the finite Markov chain."""

from manyserver.exact.measures import exact
from manyserver.exact.stationary import StationaryLaw, stationary_law

__all__ = ["StationaryLaw", "exact", "stationary_law"]
