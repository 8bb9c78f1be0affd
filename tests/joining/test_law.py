"""The joining law against an enumeration of all samples, and its derivatives."""

import itertools
import math

import numpy as np
import pytest
from tests.registry import BOUNDED, EQUAL, POOLS, announced_policies, policies

import manyserver as ms
from manyserver.joining import JoiningLaw
from manyserver.policies import Draw, Policy, Sampling

LEVELS = 4


def enumerated(
    system: ms.System, policy: Policy, jobs: np.ndarray, pool_of: np.ndarray
) -> np.ndarray:
    """Joining probabilities by looking at every sample that can be drawn."""
    sampling = policy.sampling(system)
    ranks = policy.rank_table(system, LEVELS)
    result = np.zeros(ranks.shape)
    room = [pool.buffer or LEVELS for pool in system.pools]
    known = LEVELS if sampling.announced is None else sampling.announced
    announced = [
        (ranks[pool, level], pool, level)
        for pool, level in zip(pool_of, jobs, strict=True)
        if level < min(known, room[pool])
    ]
    best = [own[1:] for own in announced if own[0] == min(announced)[0]]
    for pool, level in best:
        result[pool, level] += 1 / len(best)
    if best or not sampling.branches:
        return result
    for branch in sampling.branches:
        samples = [_samples(draw, sampling, pool_of) for draw in branch.draws]
        weight = branch.probability / math.prod(len(sample) for sample in samples)
        for chosen in itertools.product(*samples):
            servers = list(itertools.chain(*chosen))
            best = min(ranks[pool_of[server], jobs[server]] for server in servers)
            tied = [s for s in servers if ranks[pool_of[s], jobs[s]] == best]
            for server in tied:
                if jobs[server] < room[pool_of[server]]:
                    result[pool_of[server], jobs[server]] += weight / len(tied)
    return result


def _samples(draw: Draw, sampling: Sampling, pool_of: np.ndarray) -> list[tuple[int, ...]]:
    servers = [int(server) for server in np.flatnonzero(np.isin(pool_of, draw.pools))]
    if sampling.replacement:
        return list(itertools.product(servers, repeat=draw.count))
    return list(itertools.combinations(servers, draw.count))


@pytest.mark.parametrize("pools", [POOLS, EQUAL, BOUNDED], ids=["unequal", "equal", "bounded"])
@pytest.mark.parametrize("policy", [*policies(), *announced_policies()], ids=str)
def test_finite_law_is_that_of_all_samples(policy: Policy, pools: list[ms.Pool]) -> None:
    system = ms.System(0.5, pools, n_servers=12)
    pool_of = np.repeat(np.arange(3), system.counts)
    most = np.array([pool.buffer or LEVELS - 1 for pool in pools])[pool_of]
    law = JoiningLaw(system, policy, LEVELS, finite=True)
    random = np.random.default_rng(5)
    # Any state, one without idle servers, and one without room.
    states = (np.minimum(2, most), most) if pools is BOUNDED else (0 * most, np.minimum(1, most))
    for lowest in states:
        jobs = random.integers(lowest, most + 1)
        tails = np.array(
            [[np.mean(jobs[pool_of == pool] >= k) for k in range(LEVELS)] for pool in range(3)]
        )
        expected = enumerated(system, policy, jobs, pool_of)
        actual = law.probabilities(tails)
        assert actual == pytest.approx(expected, abs=1e-13)
        assert law.blocking(tails).sum() == pytest.approx(1 - expected.sum(), abs=1e-12)
        mass = -np.diff(tails, axis=1, append=0) * system.fractions[:, None]
        assert law.densities(tails) * mass == pytest.approx(actual, abs=1e-14)


def random_tails(seed: int, pools: int = 3) -> np.ndarray:
    tails = np.sort(np.random.default_rng(seed).random((pools, LEVELS)))[:, ::-1].copy()
    tails[:, 0] = 1
    return tails


def inside(tails: np.ndarray, pools: list[ms.Pool]) -> np.ndarray:
    """Take away the servers that hold more jobs than their buffer."""
    for tail, pool in zip(tails, pools, strict=True):
        tail[LEVELS if pool.buffer is None else pool.buffer + 1 :] = 0
    return tails


@pytest.mark.parametrize("pools", [POOLS, BOUNDED], ids=["unbounded", "bounded"])
@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("policy", policies(), ids=str)
def test_derivatives_are_those_of_the_probabilities(
    policy: Policy, finite: bool, pools: list[ms.Pool]
) -> None:
    """Central differences of step 1e-5: error of order 1e-10."""
    law = JoiningLaw(ms.System(0.5, pools, 16), policy, LEVELS, finite=finite)
    tails = inside(random_tails(3), pools)
    jacobian, hessian = law.jacobian(tails), law.hessian(tails)
    step = 1e-5
    for pool, level in itertools.product(range(3), range(LEVELS)):
        up, down = tails.copy(), tails.copy()
        up[pool, level] += step
        down[pool, level] -= step
        slope = (law.probabilities(up) - law.probabilities(down)) / (2 * step)
        bend = (law.jacobian(up) - law.jacobian(down)) / (2 * step)
        assert jacobian[:, :, pool, level] == pytest.approx(slope, abs=1e-8)
        assert hessian[..., pool, level] == pytest.approx(bend, abs=1e-7)


@pytest.mark.parametrize("pools", [POOLS, BOUNDED], ids=["unbounded", "bounded"])
@pytest.mark.parametrize("policy", policies(), ids=str)
def test_probabilities_sum_to_one_and_densities_are_their_ratio(
    policy: Policy, pools: list[ms.Pool]
) -> None:
    law = JoiningLaw(ms.System(0.5, pools), policy, LEVELS)
    tails = inside(random_tails(7), pools)
    probabilities = law.probabilities(tails)
    mass = -np.diff(tails, axis=1, append=0) * law.system.fractions[:, None]
    blocked = law.blocking(tails)
    assert probabilities.sum() + blocked.sum() == pytest.approx(1, abs=1e-14)
    assert (blocked.sum() > 1e-9) == (pools is BOUNDED)
    assert law.densities(tails) * mass == pytest.approx(probabilities, rel=1e-14)
    with np.errstate(divide="ignore"):
        log_tails = np.log(tails)
    assert np.exp(law.log_densities(log_tails)) == pytest.approx(law.densities(tails), rel=1e-12)


@pytest.mark.parametrize("policy", policies(), ids=str)
def test_many_servers_approach_the_limit(policy: Policy) -> None:
    """Drawing distinct servers matters as 1/N; without any difference with replacement."""
    tails = np.array([[1, 0.5, 0.25, 0]] * 3)
    limit = JoiningLaw(ms.System(0.5, POOLS), policy, LEVELS).probabilities(tails)

    def error(n_servers: int) -> float:
        law = JoiningLaw(ms.System(0.5, POOLS, n_servers), policy, LEVELS, finite=True)
        return float(np.abs(law.probabilities(tails) - limit).max())

    if policy.replacement:
        assert error(400) <= 1e-15
    else:
        assert error(4000) <= 0.11 * error(400) + 1e-15
        assert error(4000) < 1e-3


def test_logarithms_need_the_limit() -> None:
    law = JoiningLaw(ms.System(0.5, POOLS, 16), ms.policy("sq", d=2), LEVELS, finite=True)
    with pytest.raises(ValueError, match="finite = True: must be False"):
        law.log_densities(np.zeros((3, LEVELS)))


def test_logarithms_reach_far_below_floating_point() -> None:
    """SQ(2): arrivals to a server with k jobs come at the rate lambda (u_k + u_{k+1})."""
    law = JoiningLaw(ms.System(0.5, [ms.Pool(1, 1)]), ms.policy("sq", d=2), 3)
    log_densities = law.log_densities(np.array([[0.0, -1000.0, -2000.0]]))
    assert log_densities == pytest.approx(np.array([[0.0, -1000.0, -2000.0]]), abs=1e-12)


@pytest.mark.parametrize("pools", [POOLS, EQUAL, BOUNDED], ids=["unequal", "equal", "bounded"])
@pytest.mark.parametrize(
    ("policy", "same"),
    [
        (ms.policy("jsq"), ms.policy("sq", d=12)),
        (ms.policy("jsq", ties="fastest"), ms.policy("sq", d=12, ties="fastest")),
        (ms.policy("sed"), ms.policy("sed", d=12)),
        (ms.policy("threshold", threshold=1), ms.policy("jiq")),
        (ms.policy("pull", routers=1), ms.policy("jiq")),
    ],
    ids=["jsq", "jsq fastest", "sed", "threshold", "pull"],
)
def test_policies_that_are_the_same(policy: Policy, same: Policy, pools: list[ms.Pool]) -> None:
    system = ms.System(0.5, pools, n_servers=12)
    laws = [JoiningLaw(system, one, LEVELS, finite=True) for one in (policy, same)]
    counts = np.array(system.counts)[:, None]
    for seed in range(5):
        tails = inside(np.floor(counts * random_tails(seed)) / counts, pools)
        one, other = (law.probabilities(tails) for law in laws)
        assert one == pytest.approx(other, abs=1e-13)


@pytest.mark.parametrize("policy", announced_policies(), ids=str)
def test_announcements_make_steps(policy: Policy) -> None:
    system = ms.System(0.5, POOLS, 16)
    with pytest.raises(ValueError, match="finite = False: must be True"):
        JoiningLaw(system, policy, LEVELS)
    law = JoiningLaw(system, policy, LEVELS, finite=True)
    for derivative in (law.jacobian, law.hessian, law.size_correction, law.log_densities):
        with pytest.raises(ValueError, match="servers announce themselves"):
            derivative(random_tails(1))
