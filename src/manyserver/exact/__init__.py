"""Small systems without approximation: the stationary law of the finite Markov chain."""

from manyserver.exact.measures import exact
from manyserver.exact.stationary import StationaryLaw, stationary_law
from manyserver.exact.truncation import TooManyStates

__all__ = ["StationaryLaw", "TooManyStates", "exact", "stationary_law"]
