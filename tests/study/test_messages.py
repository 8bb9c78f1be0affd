import json
import math

import numpy as np
import pytest
import xarray as xr

import manyserver as ms
from manyserver.analysis.messages import messages_at

POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]


def point_of(name: str, servers: int | None, **parameters: object) -> xr.Dataset:
    policy = ms.policy(name, **parameters)
    system = ms.System(0.6, POOLS, n_servers=servers)
    if servers is None:
        result = ms.fixed_point(system, policy)
    else:
        result = ms.simulate(system, policy, precision=0.01)
    return result.assign_coords(
        n_servers=math.inf if servers is None else float(servers),
        arrival_rate=system.arrival_rate,
        policy_name=policy.name,
        policy_parameters=json.dumps(policy.parameters),
    )


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("optimal_split", {}, 0),
        ("sq", {"d": 3}, 6),
        ("scheme1", {"d": [2, 2]}, 8),
        ("hybrid_sq", {"d": 2}, 4),
        ("jsq", {}, 1),
        ("jiq", {}, 1),
        ("sed", {}, 1),
        ("pull", {"routers": 3}, 1),
    ],
)
def test_messages_in_the_limit(name: str, parameters: dict[str, object], expected: float) -> None:
    found, half_width = messages_at(point_of(name, None, **parameters))
    assert found == pytest.approx(expected)
    assert half_width == 0.0


def test_flows_agree_with_a_large_simulation() -> None:
    """Servers below a threshold of two announce themselves about every other departure.

    4 standard errors, and what 2000 servers differ from infinitely many.
    """
    measured, half_width = messages_at(point_of("threshold", 2000, threshold=2))
    limit, _ = messages_at(point_of("threshold", None, threshold=2))
    assert half_width > 0
    assert abs(measured - limit) < 2.05 * half_width + 1e-3


def test_unknown_messages_are_missing() -> None:
    point = point_of("jiq", None)
    finite = point.assign_coords(n_servers=10.0)
    assert math.isnan(messages_at(finite)[0])
    assert math.isnan(messages_at(point * np.nan)[0])
