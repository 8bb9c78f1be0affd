"""The fixed points of PULL: one for every split of the idle servers over the routers."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_array
from manyserver.mean_field.announced import stationary
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["checked_split", "routed_fixed_point"]

ROUNDING = 1e-9


def checked_split(routers: int, split: ArrayLike | None) -> np.ndarray:
    """Return the part of the idle servers that each router knows of; equal parts by default."""
    if split is None:
        return np.full(routers, 1 / routers)
    parts = checked_array("split", split, f"{routers} numbers in [0, 1] that sum to 1")
    if parts.shape != (routers,) or not np.all(parts >= 0) or abs(parts.sum() - 1) > ROUNDING:
        raise ValueError(
            f"split = {split!r}: must be {routers} numbers in [0, 1] that sum to 1, one for each "
            "router"
        )
    return np.asarray(parts / parts.sum())


def routed_fixed_point(system: System, policy: Policy, split: np.ndarray) -> dict[str, Any]:
    """Compute the fixed point with a given split, by variable name.

    Parameters
    ----------
    system : System
    policy : Policy
        With routers.
    split : numpy.ndarray, shape (router,)
        They sum to one.
    """
    values = stationary(system, policy.memoryless)
    tails = values["queue_tail"]
    idle = system.fractions * (1 - tails[:, 1])
    leaving = float(
        (system.fractions * system.speeds) @ (tails[:, 1] - tails[:, 2:].max(axis=1, initial=0.0))
    )
    accepted = system.arrival_rate * (1 - values["blocking_probability"])
    return values | {
        "router_idle": idle[:, None] * split,
        "idle_concentration": float((split**2).sum()),
        "empty_router_probability": 0.0 if idle.any() else 1 - leaving / system.arrival_rate,
        "messages_per_job": leaving / accepted,
    }
