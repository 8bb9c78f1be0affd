"""Paths and simulations. Statistical tests fail by chance less than once in 10,000 runs."""

import math
import os
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import manyserver as ms
from manyserver.diffusion.halfin_whitt.convergence.coupling import poisson_and_brownian
from manyserver.diffusion.halfin_whitt.convergence.path import path
from manyserver.diffusion.halfin_whitt.finite.law import chain
from manyserver.methods.chain_simulation import relaxation_time

from .small_chain import stationary_law

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))
ERRORS = 4.0
"""Standard errors by which a mean may be off."""


def test_poisson_and_brownian_have_their_laws() -> None:
    rng = np.random.default_rng(SEED)
    counts, increments = poisson_and_brownian(rng, 40.0, 2.0, depth=4, replications=20_000)
    mean = 40.0 * 2.0 / 16
    assert counts.shape == increments.shape == (20_000, 16)
    expected = stats.poisson.pmf(np.arange(16), mean)
    expected[-1] += stats.poisson.sf(15, mean)
    seen = np.bincount(np.minimum(counts.ravel(), 15), minlength=16)
    assert stats.chisquare(seen, expected * counts.size).pvalue > 1e-4
    assert stats.kstest(increments.ravel() / math.sqrt(2 / 16), "norm").pvalue > 1e-4
    variance = (increments**2).mean() / (2 / 16)
    assert abs(variance - 1) < ERRORS * math.sqrt(2 / increments.size)
    for data in (counts - mean, increments):
        neighbours = (data[:, :-1] * data[:, 1:]).mean() / data.var()
        assert abs(neighbours) < ERRORS / math.sqrt(20_000 * 15)


def test_poisson_stays_close_to_brownian() -> None:
    rng = np.random.default_rng(SEED)
    rate = 1e5
    counts, increments = poisson_and_brownian(rng, rate, 1.0, depth=14, replications=10)
    poisson = counts.cumsum(axis=1) - rate * np.arange(1, 2**14 + 1) / 2**14
    distance = np.abs(poisson - math.sqrt(rate) * increments.cumsum(axis=1)).max()
    # The square root of the rate is 316; the distance is a few times its logarithm.
    assert distance < 4 * math.log(rate)


@pytest.fixture(scope="module")
def long_run() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means over time of y1, y2, and pushes per unit of time, per replication, at beta = 1."""
    result = path(1.0, 60.0, step=0.02, replications=1500, start=(-1.0, 0.8), seed=SEED)
    late = result.sel(time=slice(20, None))
    pushed = (late.local_time[:, -1] - late.local_time[:, 0]) / 40
    return late.y1.mean("time").values, late.y2.mean("time").values, pushed.values


def test_stationary_means_of_the_diffusion(long_run: tuple[np.ndarray, ...]) -> None:
    y1, y2, pushed = long_run
    exact, bias = 0.81405966348, 0.12 * 0.02
    for column, value in ((y1, -1.0), (y2, exact), (pushed, exact)):
        error = column.std() / math.sqrt(len(column))
        assert abs(column.mean() - value) < ERRORS * error + bias
    # The asymptotic variance of the time average of y1 is 2.
    assert y1.var() * 40 == pytest.approx(2.0, rel=0.2)


def test_reflection_is_exact_without_drift() -> None:
    # From (0, beta) the first step has no drift, and pushes as much as a Brownian motion rises.
    result = path(1.5, 0.1, step=0.1, replications=20_000, start=(0.0, 1.5), seed=SEED)
    pushed = result.local_time[:, 1].values / math.sqrt(2 * 0.1)
    below = -result.y1[:, 1].values / math.sqrt(2 * 0.1)
    assert stats.kstest(pushed, "halfnorm").pvalue > 1e-4
    assert stats.kstest(below, "halfnorm").pvalue > 1e-4
    # Twice the maximum minus the motion is a Bessel process of dimension three (Pitman).
    assert stats.kstest(pushed + below, "chi", args=(3,)).pvalue > 1e-4


def test_diffusion_stays_in_its_quadrant() -> None:
    result = path(0.5, 20.0, step=0.05, replications=50, start=(0.0, 3.0), seed=SEED)
    assert result.sizes == {"replication": 50, "time": 401}
    assert float(result.y1.max()) <= 0.0
    assert float(result.y2.min()) > 0.0
    assert float(result.local_time.diff("time").min()) >= 0.0
    assert result.time.values[[0, -1]].tolist() == [0.0, 20.0]
    assert result.y2[:, 0].values.tolist() == [3.0] * 50


def test_large_starts_follow_the_fluid_path() -> None:
    from manyserver.diffusion.halfin_whitt.fluid_model.flow import fluid

    result = path(1.0, 3.0, step=0.001, start=(-2e4, 5e4), seed=SEED)
    expected = fluid([-2e4, 5e4], result.time.values, 1.0)
    assert float(np.abs(result.y2[0] - expected[:, 1]).max()) < 0.002 * 5e4
    assert float(np.abs(result.y1[0] - expected[:, 0]).max()) < 0.002 * 5e4


@pytest.fixture(scope="module")
def coupled() -> dict[int, np.ndarray]:
    """Distances by number of servers."""
    return {
        n: path(1.0, 4.0, n=n, replications=24, start=(-1.0, 0.5), seed=SEED).distance.values
        for n in (100, 1600, 25_600)
    }


def test_queues_converge_to_the_diffusion_as_processes(coupled: dict[int, np.ndarray]) -> None:
    few, more, many = (coupled[n].mean() for n in (100, 1600, 25_600))
    # The distance falls like n**(-1/4): by 2 for 16 times the servers.
    assert 1.5 < few / more < 2.7
    assert 1.5 < more / many < 2.7
    assert many < 0.25


def test_coupled_queues_have_their_law() -> None:
    n, beta = 9, 1.0
    states, law = stationary_law(beta, n, 4)
    result = path(beta, 20.0, n=n, replications=600, step=20.0, seed=SEED)
    for name, values in (
        ("chain_y1", (states[:, 0] - n) / 3),
        ("chain_y2", states[:, 1] / 3),
    ):
        mean = law @ values
        error = math.sqrt(law @ (values - mean) ** 2 / 600)
        assert abs(float(result[name][:, -1].mean()) - mean) < ERRORS * error


def test_coupled_path_is_sampled_at_the_times_given() -> None:
    result = path(1.0, 2.0, step=0.3, n=64, replications=2, start=(-0.5, 0.25), seed=SEED)
    assert result.sizes == {"replication": 2, "time": 9}
    assert result.chain_y1[:, 0].values.tolist() == [-0.5, -0.5]
    assert result.chain_y2[:, 0].values.tolist() == [0.25, 0.25]
    difference = np.abs(result.chain_y1 - result.y1).max("time")
    assert (difference <= result.distance).all()


@pytest.mark.parametrize(
    ("beta", "n", "levels", "names"),
    [
        (0.5, 4, 8, ("q2_mean", "q3_mean")),
        (1.0, 9, 5, ("q2_mean",)),
        (1.0, 100, 2, ("q2_mean",)),
    ],
)
def test_simulated_means(beta: float, n: int, levels: int, names: tuple[str, ...]) -> None:
    states, law = stationary_law(beta, n, levels)
    values, half_widths = simulated(beta, n)
    for level, _ in enumerate(names, start=2):
        # The exact law has no longer queues; these matter less than one part in a thousand.
        exact = law @ states[:, level - 1]
        error = half_widths[level] / 1.96
        assert abs(values[level] - exact) < ERRORS * error + 1e-3 * exact


@pytest.mark.parametrize(("beta", "n"), [(0.5, 1600), (1.0, 1600)])
def test_simulation_agrees_with_the_exact_recursion(beta: float, n: int) -> None:
    values, half_widths = simulated(beta, n)
    error = abs(values[2] - float(chain(beta, n).q2_mean))
    assert error < ERRORS * half_widths[2] / 1.96


def simulated(beta: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of Q1, Q2, ... of the one simulator of all policies, and their half-widths."""
    system = ms.System(1 - beta / math.sqrt(n), [ms.Pool(1, 1)], n_servers=n)
    horizon = 320 * relaxation_time(beta)
    run = ms.simulate(system, ms.policy("jsq"), horizon=horizon, replications=4, seed=SEED)
    return n * run.queue_tail.values[0], n * run.queue_tail_half_width.values[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: path(0.0), "beta = 0.0: must be a finite number greater than 0"),
        (lambda: path(1.0, math.inf), "horizon = inf"),
        (lambda: path(1.0, step=0.0), "step = 0.0"),
        (lambda: path(1.0, replications=0), "replications = 0: must be an integer >= 1"),
        (lambda: path(1.0, start=(1.0, 0.0)), "must be finite and at most 0"),
        (lambda: path(1.0, start=((0.0, 0.0),)), r"start has shape \(1, 2\); must be \(2,\)"),
        (lambda: path(5.0, n=25), r"n = 25: must be greater than beta\*\*2 = 25"),
        (lambda: path(1.0, n=4, start=(-2.0, 5.0)), r"start = \[-2.0, 5.0\]: must be a state"),
        (lambda: path(1.0, 1e9), "step: the paths have 1e"),
    ],
)
def test_nonsense_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
