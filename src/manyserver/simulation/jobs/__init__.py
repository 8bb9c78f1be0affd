"""Simulation of every job, for any law of the job sizes."""
