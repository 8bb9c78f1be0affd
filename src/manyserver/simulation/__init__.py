"""Simulation of finite systems, event by event."""

from manyserver.simulation.estimators import make_estimator
from manyserver.simulation.paired import run_together
from manyserver.simulation.run import Run
from manyserver.simulation.settings import checked_settings

__all__ = ["Run", "checked_settings", "make_estimator", "run_together"]
