"""Trajectories of a smooth drift."""

import numpy as np
import scipy

from manyserver.mean_field.drift import Drift
from manyserver.mean_field.path import Path
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["follow_drift"]


def follow_drift(
    system: System,
    policy: Policy,
    levels: int,
    start: np.ndarray,
    times: np.ndarray,
    tolerances: tuple[float, float],
) -> Path:
    """Integrate a smooth drift from the given tails at time 0."""
    drift = Drift(system, policy, levels)
    path = _integrate(drift, drift.state(start), times, tolerances)
    joins = np.stack([drift.law.probabilities(tails) for tails in path])
    return Path(path, joins, np.stack([drift.law.densities(tails) for tails in path]))


def _integrate(
    drift: Drift, state: np.ndarray, times: np.ndarray, tolerances: tuple[float, float]
) -> np.ndarray:
    if times[-1] == 0:
        return drift.tails(state)[None]
    solution = scipy.integrate.solve_ivp(
        lambda _, state: drift(state),
        (0.0, times[-1]),
        state,
        method="LSODA",
        jac=lambda _, state: drift.jacobian(state),
        t_eval=times,
        rtol=tolerances[0],
        atol=tolerances[1],
    )
    if not solution.success:
        raise RuntimeError(f"the mean-field equations were not integrated: {solution.message}")
    return np.stack([drift.tails(state) for state in solution.y.T])
