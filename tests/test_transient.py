"""Paths of finite systems against exact laws at finite times."""

import math

import numpy as np
import pytest
import scipy

import manyserver as ms
from manyserver.exact.chain import build_chain
from manyserver.policies import Policy
from tests.registry import POOLS, announced_policies, followed_policies, policies

TIMES = [0.0, 0.5, 3.0]
CAP = 9
"""Jobs at a server that are exceeded with a chance below 1e-6 by then."""
FOUR = ms.System(0.8, POOLS, n_servers=4)


def fits(policy: Policy) -> bool:
    """Whether there are as many servers as it looks at."""
    try:
        policy.check(FOUR)
    except ms.UnstableSystem:
        return True
    except ValueError:
        return False
    return True


FITTING = [policy for policy in (*policies(), *announced_policies()) if fits(policy)]


def exact_means(system: ms.System, policy: Policy) -> np.ndarray:
    """Return the mean number of jobs of every pool at all times, shape (time, pool)."""
    chain = build_chain(system, policy, tuple((CAP,) * count for count in system.counts))
    rates = chain.up + chain.down
    generator = rates - scipy.sparse.diags_array(np.asarray(rates.sum(axis=0)).ravel())
    law = np.zeros(len(chain.states.jobs))
    law[np.flatnonzero(chain.states.total == 0)] = 1.0
    pool = np.repeat(np.arange(len(system.counts)), system.counts)
    jobs = np.stack([chain.states.jobs[:, pool == j].sum(axis=1) for j in range(pool[-1] + 1)], 1)
    laws = [scipy.sparse.linalg.expm_multiply(generator * time, law) for time in TIMES]
    return np.asarray(np.stack(laws) @ jobs / np.array(system.counts))


@pytest.mark.parametrize("policy", FITTING, ids=lambda policy: f"{policy.name} {policy.parameters}")
def test_means_are_those_of_the_exact_law(policy: Policy) -> None:
    """Six means each; one is off by five standard errors in one of 200,000 runs of all tests."""
    found = ms.transient(FOUR, policy, TIMES, replications=400, seed=3)
    exact = exact_means(FOUR, policy)
    assert (found.queue_mean.values[0] == 0).all()
    error = found.queue_mean_half_width.values[1:] / 1.966
    # What happens in one of many runs may happen in none, or in five.
    assert (np.abs(found.queue_mean.values[1:] - exact[1:]) < 5 * error + 5 / 400).all()


def test_a_single_server_is_mm1_and_starts_where_it_is_told() -> None:
    system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=200)
    tails = [[1.0, 1.0, 0.5]]
    found = ms.transient(system, ms.policy("random"), [0, 1, 40], tails, replications=50, paths=3)
    assert found.queue_mean.values[0] == pytest.approx(1.5)
    # Ever after, a share of load**k of the servers has k jobs or more.
    assert found.queue_tail.values[2, 0, 1] == pytest.approx(0.5, abs=0.02)
    assert found.queue_tail_path.dims == ("path", "time", "pool", "level")
    assert found.jobs_per_server_path.values.shape == (3, 3)
    spread = found.jobs_per_server_deviation.values[2]
    # The stationary variance of M/M/1 is load / (1 - load)**2; 49 degrees of freedom.
    assert spread * math.sqrt(200) == pytest.approx(math.sqrt(2), rel=0.45)


def test_many_servers_follow_the_mean_field() -> None:
    times = [0.5, 2.0, 8.0]
    scheme = ms.policy("scheme1", d=(2, 2))
    pools = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
    limit = ms.mean_field(ms.System(0.9, pools), scheme, times)
    apart = []
    for n in (100, 10_000):
        found = ms.transient(ms.System(0.9, pools, n), scheme, times, replications=20)
        apart.append(float(np.abs(found.jobs_per_server - limit.jobs_per_server).max()))
    assert apart[1] < 0.02
    assert apart[1] < apart[0]


def test_runs_have_common_random_numbers_and_pull_has_paths() -> None:
    system = ms.System(0.7, [ms.Pool(1, 1)], n_servers=50)
    one = ms.transient(system, ms.policy("pull", routers=2), [1, 5], replications=10, seed=4)
    again = ms.transient(system, ms.policy("pull", routers=2), [1, 5], replications=10, seed=4)
    assert one.jobs_per_server.values.tolist() == again.jobs_per_server.values.tolist()
    overloaded = ms.System(0.3, [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")], n_servers=10)
    above = ms.System(0.45, overloaded.pools, n_servers=10)
    # SQ(2) bears loads up to 0.4 here, and any other for a while.
    assert ms.transient(above, ms.policy("sq", d=2), [1.0], replications=5).jobs_per_server > 0


SYSTEM = ms.System(0.5, [ms.Pool(1, 1)], n_servers=10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"times": [1.0, 0.5]}, r"times = \[1.0, 0.5\]: must be finite, increasing"),
        ({"start": "full"}, "start = 'full': must be 'empty', a System"),
        ({"start": [[1, 0.5], [1, 0.2]]}, r"start: queue tails of shape \(2, 2\)"),
        ({"replications": 1}, "replications = 1: must be an integer >= 2"),
        ({"paths": 101}, "paths = 101: must be"),
        ({"seed": -1}, "seed = -1: must be"),
        ({"system": ms.System(0.5, [ms.Pool(1, 1)])}, "n_servers = None"),
        ({"policy": followed_policies()[0]}, "needs jobs to be followed"),
    ],
)
def test_what_is_out_of_range_is_refused(changes: dict[str, object], message: str) -> None:
    given = {"system": SYSTEM, "policy": ms.policy("sq", d=2), "times": [1.0]} | changes
    with pytest.raises(ValueError, match=message):
        ms.transient(**given)  # type: ignore[arg-type]
