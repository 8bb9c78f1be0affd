"""What the refined mean field asks of the joining law: its curvature and its 1/N correction."""

import numpy as np
import pytest
from tests.registry import EQUAL, POOLS, policies

import manyserver as ms
from manyserver.joining import JoiningLaw
from manyserver.policies import Policy

LEVELS = 4


def random_tails() -> np.ndarray:
    tails = np.sort(np.random.default_rng(11).random((3, LEVELS)))[:, ::-1].copy()
    tails[:, 0] = 1.0
    return tails


@pytest.mark.parametrize("pools", [POOLS, EQUAL], ids=["unequal", "equal"])
@pytest.mark.parametrize("policy", policies(), ids=str)
def test_curvature_is_the_hessian_times_a_covariance(policy: Policy, pools: list[ms.Pool]) -> None:
    law = JoiningLaw(ms.System(0.5, pools), policy, LEVELS)
    root = np.random.default_rng(12).normal(size=(3 * LEVELS, 3 * LEVELS))
    covariance = (root @ root.T).reshape(3, LEVELS, 3, LEVELS)
    tails = random_tails()
    expected = np.einsum("jkabcd,abcd->jk", law.hessian(tails), covariance)
    assert law.curvature(tails, covariance) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("pools", [POOLS, EQUAL], ids=["unequal", "equal"])
@pytest.mark.parametrize("policy", policies(), ids=str)
def test_size_correction_is_the_limit_of_finite_laws(policy: Policy, pools: list[ms.Pool]) -> None:
    """N (p_N - p) at N and 2N, extrapolated to infinity: what is left is of order 1 / N**2."""
    tails = random_tails()
    limit = JoiningLaw(ms.System(0.5, pools), policy, LEVELS)
    n = 4000

    def scaled(servers: int) -> np.ndarray:
        system = ms.System(0.5, pools, n_servers=servers)
        law = JoiningLaw(system, policy, LEVELS, finite=True)
        return np.asarray(servers * (law.probabilities(tails) - limit.probabilities(tails)))

    correction = limit.size_correction(tails)
    assert 2 * scaled(2 * n) - scaled(n) == pytest.approx(correction, abs=1e-5)
    assert correction.sum() == pytest.approx(0, abs=1e-14)
    one_server = all(sum(d.count for d in branch.draws) == 1 for branch in limit.branches)
    assert np.all(correction == 0) == (policy.replacement or one_server)
