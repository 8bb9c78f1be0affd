"""The fixed point of pools that do not see each other."""

from typing import Any

import numpy as np

from manyserver.mean_field.independent.pools import IndependentPool
from manyserver.mean_field.smooth.fixed_point import EXTRA_LEVELS, LOWEST_LOG_TAIL
from manyserver.mean_field.solver import MOST_LEVELS, TOP_TAIL
from manyserver.model import System
from manyserver.outputs import stationary_outputs

__all__ = ["separate_fixed_point"]


def separate_fixed_point(system: System, pools: list[IndependentPool]) -> dict[str, Any]:
    """Put together pools that do not see each other; outputs by variable name."""
    needed = [
        max(
            pool.level_reaching(np.log(TOP_TAIL)),
            min(pool.level_reaching(LOWEST_LOG_TAIL), EXTRA_LEVELS),
        )
        for pool in pools
    ]
    levels = np.arange(min(max(needed) + 1, MOST_LEVELS))
    log_tail = np.stack([pool.log_tail(levels) for pool in pools])
    shares = np.array([pool.arrival_rate for pool in pools]) * system.fractions
    shares /= system.arrival_rate
    outputs = stationary_outputs(
        system,
        np.exp(log_tail),
        np.stack([pool.joining_rate(levels) for pool in pools]),
        waiting=float(shares @ [pool.waiting for pool in pools]),
        blocking=float(shares @ [pool.blocking for pool in pools]),
        queue_mean=np.array([pool.queue_mean() for pool in pools]),
    )
    return outputs | {"queue_log_tail": log_tail, "residual": 0.0, "truncation_error": 0.0}
