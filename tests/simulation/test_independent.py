"""Short independent replications: when there are, how long, what they cost, whether settled."""

import math

import numpy as np
import pytest

import manyserver as ms
from manyserver.simulate import simulate
from manyserver.simulation import Run, checked_settings
from manyserver.simulation.lengths import (
    FEWEST_INDEPENDENT,
    LARGEST_CORRECTION,
    independent_lengths,
    starts_close,
)
from manyserver.simulation.occupancy_estimator import OccupancyEstimator
from manyserver.start import limit_start

ONE_POOL = [ms.Pool(1, 1)]
TWO_POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
SQ2 = ms.policy("sq", d=2)


def test_start_has_the_correction_of_finite_systems() -> None:
    system = ms.System(0.7, TWO_POOLS, n_servers=100)
    policy = ms.policy("scheme1", d=[2, 2])
    start, refined = limit_start(system, policy), ms.refine(system, policy)
    levels = refined.level.size
    assert start.tails[:, :levels] == pytest.approx(refined.queue_tail_refined.values, abs=1e-12)
    relative = float(refined.sojourn_mean_correction / refined.sojourn_mean) / 100
    assert start.correction == pytest.approx(abs(relative))


@pytest.mark.parametrize("n_servers", [2, 3, 10])
@pytest.mark.parametrize("load", [0.5, 0.97])
def test_start_is_possible(n_servers: int, load: float) -> None:
    """The correction of a small system is larger than what it corrects."""
    tails = limit_start(ms.System(load, ONE_POOL, n_servers), SQ2).tails
    assert (tails[:, 0] == 1).all()
    assert (np.diff(tails) <= 0).all()
    assert (tails >= 0).all()


@pytest.mark.parametrize("policy", [ms.policy("jsq"), ms.policy("pull", routers=2)])
def test_where_the_limit_has_no_correction_replications_are_long(
    policy: ms.policies.Policy,
) -> None:
    start = limit_start(ms.System(0.7, ONE_POOL, 1000), policy)
    assert start.correction == math.inf
    assert not starts_close(start.correction)


def test_the_larger_the_correction_the_longer() -> None:
    lengths = [
        independent_lengths(correction, 1e6, 50)
        for correction in np.geomspace(1e-9, LARGEST_CORRECTION, 30)
    ]
    assert (np.diff([length.warm_up for length in lengths]) >= 0).all()
    assert lengths[0].warm_up == 2e6
    assert lengths[-1].warm_up == pytest.approx((2 + math.log(1000)) * 1e6)


@pytest.mark.parametrize("precision", [0.01, 0.001])
def test_events_of_a_large_system(precision: float, seed: int) -> None:
    """32 replications of 5 relaxation times; three fifths of the steps are measured."""
    system = ms.System(0.9, ONE_POOL, n_servers=10_000)
    result = simulate(system, SQ2, seed=(seed, 71), precision=precision)
    assert bool(result.precision_met)
    settling = float(ms.relaxation_time(system, SQ2))
    most = 5 * settling * FEWEST_INDEPENDENT
    assert float(result.simulated_time) <= 0.61 * most
    assert int(result.n_replications) == FEWEST_INDEPENDENT
    assert math.isnan(float(result.autocorrelation_time))


@pytest.mark.parametrize("precision", [1e-5, 3e-6])
def test_no_more_events_than_twice_what_the_precision_takes(precision: float, seed: int) -> None:
    """Of the half-width at twice the events, by the central limit, up to its own error.

    That of a half-width from 32 batches or more is 15 %; fails with probability 1e-4 or less.
    """
    system = ms.System(0.9, ONE_POOL, n_servers=1000)
    result = simulate(system, SQ2, seed=(seed, 72), precision=precision)
    assert bool(result.precision_met)
    got = float(result.sojourn_mean_half_width / result.sojourn_mean)
    assert precision / math.sqrt(2) / 1.6 <= got <= precision


@pytest.mark.parametrize(
    ("load", "policy", "pools"),
    [
        (0.5, SQ2, ONE_POOL),
        (0.5, ms.policy("sq", d=2, replacement=True), ONE_POOL),
        (0.5, ms.policy("scheme1", d=[1, 1]), TWO_POOLS),
    ],
    ids=["SQ(2)", "with replacement", "Scheme 1"],
)
def test_intervals_cover_what_they_say(
    load: float, policy: ms.policies.Policy, pools: list[ms.Pool], seed: int
) -> None:
    """Of 60 intervals at least 50 contain the exact value.

    If each does with probability 0.95, fewer do in one of 3,000 sessions; with 0.8, in six of ten.
    """
    system = ms.System(load, pools, n_servers=6)
    assert starts_close(limit_start(system, policy).correction)
    truth = float(ms.exact(system, policy).jobs_per_server)
    inside = 0
    for number in range(60):
        result = simulate(system, policy, seed=(seed, 73, number), precision=0.5, max_events=1e12)
        error = abs(float(result.jobs_per_server) - truth)
        inside += error <= float(result.jobs_per_server_half_width)
    assert inside >= 50


def test_a_drift_is_told(seed: int) -> None:
    """A system that is not settled makes its interval unreliable."""
    system = ms.System(0.9, ONE_POOL, n_servers=20_000)
    settings = checked_settings(system, seed=(seed, 74), precision=0.01)
    settled, drifting = (
        Run(OccupancyEstimator(system, SQ2, tails, 1.0, 0.001, settings))
        for tails in (limit_start(system, SQ2).tails, np.ones((1, 1)))
    )
    for run in (settled, drifting):
        run.simulate(lambda _: None)
    assert settled.reliable
    assert settled.precise
    assert not drifting.reliable
    assert not drifting.precise


def test_few_events_make_them_shorter(seed: int) -> None:
    system = ms.System(0.9, ONE_POOL, n_servers=1000)
    result = simulate(system, SQ2, seed=(seed, 75), precision=0.001, max_events=1e6)
    assert int(result.n_events) <= 1e6
    assert not bool(result.interval_reliable)
