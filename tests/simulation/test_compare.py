"""Runs with common random numbers: the same difference, with a smaller error."""

import numpy as np
import pytest

import manyserver as ms
from manyserver.compare import compare
from manyserver.disciplines import discipline as make_discipline
from manyserver.simulation.jobs.replica import JobReplica
from manyserver.simulation.server_replica import ServerReplica

ONE_POOL = [ms.Pool(1, 1)]
TWO_POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
SQ2, SQ3 = ms.policy("sq", d=2), ms.policy("sq", d=3)


def test_policies_see_the_same_arrivals_and_departures(seed: int) -> None:
    system = ms.System(0.8, ONE_POOL, n_servers=100)
    runs = [
        ServerReplica(system, ms.policy("sq", d=d), np.ones((1, 2)), (seed, 31))
        for d in (2, 3, 5, 30)
    ]
    for replica in runs:
        replica.advance(3, 1000)
    for replica in runs[1:]:
        assert (replica.block.event == runs[0].block.event).all()
        assert (replica.block.drawn[:128] == runs[0].block.drawn[:128]).all()


def test_difference_of_policies(seed: int) -> None:
    """Against the exact chain, within 4 standard errors, and better than independent runs."""
    system = ms.System(0.7, TWO_POOLS, n_servers=4)
    pair = [ms.policy("scheme1", d=[1, 1]), ms.policy("scheme2", d=[1, 1])]
    truth = [float(ms.exact(system, policy, tolerance=1e-6).sojourn_mean) for policy in pair]
    result = compare(system, pair, seed=(seed, 32), precision=0.002)
    difference = result.sojourn_mean_difference.values
    half_width = result.sojourn_mean_difference_half_width.values
    assert difference[0] == half_width[0] == 0.0
    assert abs(difference[1] - (truth[1] - truth[0])) <= 2 * half_width[1]
    assert result.variance_ratio[1] > 1.5
    assert result.variance_ratio_plain[1] > 50
    assert np.isnan(result.variance_ratio[0])
    assert result.policy.values.tolist() == [str(policy) for policy in pair]
    jobs = result.jobs_per_server_difference.values
    assert jobs == pytest.approx(0.7 * difference, rel=1e-9)


def test_grid_of_arrival_rates(seed: int) -> None:
    systems = [ms.System(rate, ONE_POOL, n_servers=100) for rate in (0.7, 0.71, 0.72)]
    result = compare(systems, SQ2, against="previous", seed=(seed, 33), horizon=2000.0)
    assert (result.variance_ratio.values[1:] > 3).all()
    slope = [float(ms.refine(system, SQ2).sojourn_mean_refined) for system in systems]
    assert result.sojourn_mean_difference.values[1:] == pytest.approx(np.diff(slope), abs=2e-3)
    assert result.arrival_rate.values.tolist() == [0.7, 0.71, 0.72]
    assert "precision_met" not in result


def test_without_control_variates(seed: int) -> None:
    system = ms.System(0.7, ONE_POOL, n_servers=100)
    result = compare(system, [SQ2, SQ3], seed=(seed, 34), horizon=2000.0, control_variates=False)
    assert result.n_controls.values.tolist() == [0, 0]
    plain = float(result.variance_ratio_plain[1])
    assert float(result.variance_ratio[1]) == pytest.approx(plain, rel=1e-12)
    assert result.variance_ratio[1] > 3


def test_threads_change_nothing(seed: int) -> None:
    system = ms.System(0.7, ONE_POOL, n_servers=20)
    one, two = (
        compare(system, [SQ2, SQ3], seed=(seed, 35), precision=0.01, threads=threads)
        for threads in (1, 2)
    )
    assert one.identical(two)


@pytest.mark.parametrize(
    ("systems", "policies", "options", "message"),
    [
        ([0.7], [SQ2], {}, "1 systems and 1 policies"),
        ([0.7, 0.8], [SQ2] * 3, {}, "2 systems and 3 policies"),
        ([0.7, 0.8], [SQ2], {"against": "last"}, "against = 'last'"),
    ],
)
def test_bad_input(
    systems: list[float], policies: list[ms.policies.Policy], options: dict[str, str], message: str
) -> None:
    some = [ms.System(rate, ONE_POOL, n_servers=10) for rate in systems]
    with pytest.raises(ValueError, match=message):
        compare(some, policies, **options)  # type: ignore[arg-type]


def test_pools_must_match() -> None:
    systems = [ms.System(0.5, pools, n_servers=10) for pools in (ONE_POOL, TWO_POOLS)]
    with pytest.raises(ValueError, match=r"have \[1, 2\] pools"):
        compare(systems, SQ2)


@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
def test_policies_see_the_same_jobs(discipline: str, seed: int) -> None:
    """The times of arrivals, the sizes and the first servers looked at, also after a warm-up."""
    system = ms.System(0.8, TWO_POOLS, n_servers=100)
    sizes = ms.size_law("hyperexponential", scv=4)
    starts, service = [np.ones((2, 2)), np.ones((2, 12))], make_discipline(discipline)
    replicas = [
        JobReplica(system, ms.policy("sq", d=d), sizes, service, start, (seed, 37))
        for d, start in zip((2, 5), starts, strict=True)
    ]
    for replica in replicas:
        replica.warm_up(100_000)
    one, other = replicas
    assert (one.stream.gap == other.stream.gap).all()
    assert (one.stream.size == other.stream.size).all()
    assert (one.step, one.item) == (other.step, other.item)
    assert (one.block.drawn[:128] == other.block.drawn[:128]).all()


@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
def test_difference_where_jobs_are_followed(discipline: str, seed: int) -> None:
    """Random routing makes M/G/1 queues; within 4 standard errors, which fails once in 10,000."""
    system = ms.System(0.6, TWO_POOLS, n_servers=20)
    parts = np.array([[0.3, 0.7], [0.35, 0.65]])
    pair = [ms.policy("random", probabilities=row.tolist()) for row in parts]
    sizes = ms.size_law("hyperexponential", scv=4)
    rates, speeds = 0.6 * parts / system.fractions, system.speeds
    waits = rates * (1 + sizes.scv) / speeds**2 / (2 * (1 - rates / speeds))
    sojourns = 1 / (speeds - rates) if discipline == "ps" else 1 / speeds + waits
    truth = {"sojourn_mean": (parts * sojourns).sum(axis=1)}
    truth["jobs_per_server"] = 0.6 * truth["sojourn_mean"]
    if discipline == "fcfs":
        truth["waiting_mean"] = (parts * waits).sum(axis=1)
    result = compare(
        system, pair, sizes=sizes, discipline=discipline, seed=(seed, 38), precision=0.02
    )
    assert {str(name) for name in result if str(name).endswith("_difference")} == {
        f"{name}_difference" for name in truth
    }
    for name, values in truth.items():
        difference, half_width = (
            float(result[f"{name}_difference{suffix}"][1]) for suffix in ("", "_half_width")
        )
        assert abs(difference - np.diff(values)[0]) <= 2 * half_width
    assert result.variance_ratio_plain[1] > 3
    assert result.variance_ratio[1] > 1.3
    assert result.attrs["discipline"] == discipline
