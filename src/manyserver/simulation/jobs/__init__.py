"""Simulation of every job, for any law of the job sizes."""

from manyserver.simulation.jobs.run import JobRun
from manyserver.simulation.jobs.settings import DEFAULT_PRECISION, checked_jobs

__all__ = ["DEFAULT_PRECISION", "JobRun", "checked_jobs"]
