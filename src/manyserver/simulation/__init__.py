"""Simulation of finite systems, event by event."""

from manyserver.simulation.run import run

__all__ = ["run"]
