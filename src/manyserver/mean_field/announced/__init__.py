"""Policies to which servers announce themselves: JSQ, SED, JIQ, thresholds, in the limit.

Where an arrival goes then depends on which announced servers there are at all, so that the mean
field is a differential inclusion: it slides along the states in which the best announced servers
are taken as fast as they appear.
"""

from manyserver.mean_field.announced.fixed_point import CriticalLoad, stationary
from manyserver.mean_field.announced.path import follow
from manyserver.mean_field.announced.relaxation import slowest

__all__ = ["CriticalLoad", "follow", "slowest", "stationary"]
