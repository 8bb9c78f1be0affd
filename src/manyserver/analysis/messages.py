"""Messages per job at a point of a cube, also in the limit."""

import json
from typing import TYPE_CHECKING

import numpy as np

from manyserver.analysis.curves import system_of
from manyserver.outputs import occupancy
from manyserver.policies import policy
from manyserver.policies.messages import messages

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["MESSAGES", "messages_at"]

MESSAGES = "messages_per_job"


def messages_at(point: "xr.Dataset") -> tuple[float, float]:
    """Return the messages per job, and their 95 % half-width.

    Parameters
    ----------
    point : xarray.Dataset
        A slice of a cube with no axis left.

    Returns
    -------
    tuple of float
        As measured; else by the flows between the levels of the queue tails, with half-width 0, if
        the point is the limit. NaN if the cube tells neither.
    """
    if MESSAGES in point and np.isfinite(point[MESSAGES]):
        name = f"{MESSAGES}_half_width"
        half_width = float(point[name]) if name in point else 0.0
        return float(point[MESSAGES]), float(np.nan_to_num(half_width))
    in_limit = np.isinf(point["n_servers"]) and "queue_tail" in point
    if not in_limit or not np.isfinite(point["queue_tail"]).any():
        return np.nan, 0.0
    return _by_flows(point), 0.0


def _by_flows(point: "xr.Dataset") -> float:
    system = system_of(point)
    parameters = json.loads(str(point["policy_parameters"].values))
    chosen = policy(str(point["policy_name"].values), **parameters)
    known = chosen.memoryless
    tails = np.nan_to_num(point["queue_tail"].transpose("pool", "level").values)
    tails = tails[: len(system.pools)]
    busy = occupancy(tails)
    # As often as servers leave a level, arrivals lead to it from the one below.
    leaves = (system.fractions * system.speeds)[:, np.newaxis] * busy
    leaves[:, 0] = 0.0
    joins = np.append(leaves[:, 1:], np.zeros((len(leaves), 1)), axis=1)
    arrivals = np.array(system.arrival_rate)
    sent = messages(system, known.sampling(system), arrivals, joins, leaves)
    return float(sent / leaves.sum())
