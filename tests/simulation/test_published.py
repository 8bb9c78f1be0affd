"""SQ(d) with replacement against the simulations behind the tables of Gast and Van Houdt."""

import math

import pytest
from tests.simulation.test_run import given, rows

import manyserver as ms

SERVERS = ("10", "20", "50", "100")
LOADS = ("0.7", "0.9")


def published() -> dict[tuple[int, str, int], tuple[float, float]]:
    """Mean number of jobs per server and its error, the smallest where there are several."""
    found: dict[tuple[int, str, int], tuple[float, float]] = {}
    name = "mean queue length per server L (simulation, control variate busy fraction=lambda)"
    for row in rows("sq_d.csv", name):
        values = given(row)
        if values["N"] in SERVERS and values["lambda"] in LOADS:
            place = (int(values["d"]), values["lambda"], int(values["N"]))
            new = (float(row["value"]), float(row["uncertainty"]))
            found[place] = min(found.get(place, new), new, key=lambda pair: pair[1])
    return found


PUBLISHED = published()


def test_the_table_is_there() -> None:
    assert {d for d, _, _ in PUBLISHED} == {2, 3, 4}


@pytest.mark.parametrize("place", PUBLISHED, ids=str)
def test_published_means(place: tuple[int, str, int], seed: int) -> None:
    """Within 4 of the standard errors of both (1 in 16,000)."""
    d, load, n_servers = place
    value, error = PUBLISHED[place]
    system = ms.System(float(load), [ms.Pool(1, 1)], n_servers=n_servers)
    policy = ms.policy("sq", d=d, replacement=True)
    result = ms.simulate(system, policy, seed=(seed, 17, d, n_servers), precision=0.002)
    assert bool(result.precision_met)
    own = float(result.jobs_per_server_half_width) / 1.96
    assert abs(float(result.jobs_per_server) - value) < 4 * math.hypot(own, error)
