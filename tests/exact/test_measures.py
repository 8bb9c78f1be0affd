"""Utilisation and the fullest server, against closed forms and against each other."""

import numpy as np
import pytest

import manyserver as ms

POOLS = [ms.Pool("1/2", "1/2"), ms.Pool("1/2", "3/2")]


def test_fullest_of_independent_servers() -> None:
    """The servers are M/M/1 queues, so that the law of the largest is a product."""
    result = ms.exact(ms.System(0.5, [ms.Pool(1, 1)], n_servers=2), ms.policy("random"))
    level = np.arange(20)
    tail = 1 - (1 - 0.5**level) ** 2
    assert result.longest_queue_tail.values[:20] == pytest.approx(tail, abs=1e-10)
    # The sum of 2 / 2^k - 1 / 4^k
    assert float(result.longest_queue_mean) == pytest.approx(5 / 3, rel=1e-9)


def test_busy_servers_do_the_work_of_their_pool() -> None:
    system = ms.System(0.6, POOLS, n_servers=4)
    result = ms.exact(system, ms.policy("sed"))
    work = result.pool_utilization.values @ [0.25, 0.75]
    assert work == pytest.approx(0.6, rel=1e-10)


def test_simulated_as_in_the_exact_chain() -> None:
    """4 standard errors of 2 utilisations (twice), a mean and 4 tails: a false alarm in 1500."""
    system = ms.System(0.6, POOLS, n_servers=4)
    policy = ms.policy("sq", d=2)
    exact = ms.exact(system, policy, tolerance=1e-8)
    plain = ms.simulate(system, policy, horizon=4000, seed=7)
    jobs = ms.simulate(system, policy, horizon=4000, seed=7, discipline="ps")
    for result in (plain, jobs):
        error = np.abs(result.pool_utilization - exact.pool_utilization)
        assert np.all(error <= 2 * result.pool_utilization_half_width)
    error = abs(jobs.longest_queue_mean - exact.longest_queue_mean)
    assert float(error) <= 2 * float(jobs.longest_queue_mean_half_width)
    error = np.abs(jobs.longest_queue_tail - exact.longest_queue_tail)[:5]
    assert np.all(error <= 2 * jobs.longest_queue_tail_half_width[:5])
