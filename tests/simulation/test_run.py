"""Simulated values against closed forms, exact chains and each other; bad input."""

import csv
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.special import stdtrit
from tests.registry import EQUAL, POOLS

import manyserver as ms
from manyserver.exact import stationary_law
from manyserver.simulate import simulate
from manyserver.simulation.replica import step_rate

DATA = Path(__file__).parents[1] / "data"
SQ2 = ms.policy("sq", d=2)
ONE_POOL = [ms.Pool(1, 1)]
TWO_POOLS = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]


def standard_error(result: xr.Dataset, name: str) -> np.ndarray:
    quantile = stdtrit(float(result.n_batches) - 1, 0.975)
    return np.asarray(result[name + "_half_width"].values / quantile)


def assert_close(result: xr.Dataset, name: str, expected: object, error: float = 0.0) -> None:
    """Within 4 standard errors: fails for right code with probability 6e-5 to 4e-4."""
    difference = np.abs(result[name].values - expected)
    assert (difference <= 4 * np.hypot(standard_error(result, name), error) + 1e-12).all()


def rows(file: str, quantity: str) -> list[dict[str, str]]:
    with (DATA / file).open() as lines:
        return [row for row in csv.DictReader(lines) if row["quantity"] == quantity]


def given(row: dict[str, str]) -> dict[str, str]:
    return dict(item.split("=", 1) for item in row["parameters"].split(";") if "=" in item)


def test_independent_queues(seed: int) -> None:
    """Random routing makes M/M/1 queues with known tails, waiting and joining rates."""
    system = ms.System(0.7, POOLS, n_servers=100)
    split = [0.15, 0.35, 0.5]
    result = simulate(
        system, ms.policy("random", probabilities=split), seed=(seed, 1), precision=0.005
    )
    assert bool(result.precision_met)
    rate = 0.7 * np.array(split) / system.fractions
    rho = rate / system.speeds
    assert_close(result, "queue_mean", rho / (1 - rho))
    assert_close(result, "sojourn_mean", (system.fractions * rho / (1 - rho)).sum() / 0.7)
    assert_close(result, "waiting_probability", (np.array(split) * rho).sum())
    level = np.arange(8)
    few = result.isel(level=level)
    assert_close(few, "queue_tail", rho[:, None] ** level)
    assert_close(few, "joining_rate", np.broadcast_to(rate[:, None], (3, 8)))
    assert result.queue_tail.values[:, 0].tolist() == [1.0] * 3
    assert result.queue_tail_half_width.values[:, 0].tolist() == [0.0] * 3
    assert float(result.blocking_probability) == 0.0


EXACT = [
    row
    for row in rows("sq_d.csv", "mean queue length per server L (exact CTMC)")
    if row["model"].startswith("SQ(2)") and float(given(row)["lambda"]) < 0.9
]


@pytest.mark.parametrize("row", EXACT, ids=lambda row: f"{row['model']} {row['parameters']}")
def test_exact_small_sq(row: dict[str, str], seed: int) -> None:
    values = given(row)
    system = ms.System(float(values["lambda"]), ONE_POOL, n_servers=int(values["N"]))
    policy = ms.policy("sq", d=2, replacement="WITH " in row["model"])
    result = simulate(system, policy, seed=(seed, 2), precision=0.005)
    assert bool(result.interval_reliable)
    assert_close(result, "jobs_per_server", float(row["value"]))


NAMES = {
    "scheme1": "scheme1",
    "scheme2(C/q before arrival; q=0 infinite)": "scheme2",
    "scheme2-alt SED(d) (C/(q+1))": "sed",
}
HETEROGENEOUS = [
    row
    for quantity in ("exact_finite_N", "N10", "N100", "N1000")
    for row in rows("heterogeneous.csv", f"mean_sojourn_{quantity}")
    if row["policy"] in NAMES and float(given(row)["lambda"]) < 0.9
]


@pytest.mark.parametrize(
    "row", HETEROGENEOUS, ids=lambda row: f"{row['quantity']} {row['policy']} {row['parameters']}"
)
def test_reference_values(row: dict[str, str], seed: int) -> None:
    values = given(row)
    speeds, d = values["C"].split("|"), [int(item) for item in values["d"].split("|")]
    exact = "counts" in values
    n = int(row["quantity"].rpartition("_N")[2]) if not exact else 0
    counts = [int(item) for item in values["counts"].split("|")] if exact else [n // 2, n // 2]
    total = sum(counts)
    pools = [ms.Pool(f"{c}/{total}", speed) for c, speed in zip(counts, speeds, strict=True)]
    system = ms.System(float(values["lambda"]), pools, n_servers=total)
    result = simulate(system, ms.policy(NAMES[row["policy"]], d=d), seed=(seed, 3), precision=0.005)
    error = 0.0 if exact else float(row["uncertainty"].split()[0]) / 2
    assert_close(result, "sojourn_mean", float(row["value"]), error)


def test_pools_of_equal_speed_are_one(seed: int) -> None:
    """Ties between equal pools are uniform, so all pools look the same."""
    policy = ms.policy("scheme1", d=[1, 1, 2])
    result = simulate(ms.System(0.8, EQUAL, n_servers=100), policy, seed=(seed, 4))
    swapped = ms.policy("scheme1", d=[2, 1, 1])
    pools = [EQUAL[2], EQUAL[0], EQUAL[1]]
    other = simulate(ms.System(0.8, pools, n_servers=100), swapped, seed=(seed, 5))
    moved = other.isel(pool=[1, 2, 0])
    error = standard_error(moved, "queue_mean")
    difference = np.abs(result.queue_mean.values - moved.queue_mean.values)
    assert (difference <= 4 * np.hypot(standard_error(result, "queue_mean"), error)).all()


def test_threads_change_nothing(seed: int) -> None:
    system = ms.System(0.9, TWO_POOLS, n_servers=20)
    policy = ms.policy("scheme1", d=[2, 2])
    one, three = (
        simulate(system, policy, seed=(seed, 6), horizon=200.0, threads=threads)
        for threads in (1, 3)
    )
    assert one.identical(three)
    other = simulate(system, policy, seed=(seed, 7), horizon=200.0)
    assert float(one.sojourn_mean) != float(other.sojourn_mean)


def test_horizon_is_kept(seed: int) -> None:
    system = ms.System(0.7, ONE_POOL, n_servers=100)
    result = simulate(system, SQ2, seed=(seed, 8), horizon=5000.0, replications=4)
    assert float(result.simulated_time) == pytest.approx(20_000, rel=1e-2)
    # Arrivals and departures are Poisson with mean and variance 0.7 per server, each; 4.5 sigma.
    mean = 2 * 0.7 * 100 * float(result.simulated_time)
    assert abs(float(result.n_events) - mean) < 4.5 * np.sqrt(2 * mean)
    assert bool(result.interval_reliable)
    assert "precision_met" not in result


def test_too_short_is_said(seed: int) -> None:
    system = ms.System(0.9, ONE_POOL, n_servers=50)
    assert not bool(simulate(system, SQ2, seed=(seed, 9), horizon=50.0).interval_reliable)
    assert not bool(simulate(system, SQ2, seed=(seed, 9), horizon=0.01).interval_reliable)
    stopped = simulate(system, SQ2, seed=(seed, 9), precision=1e-4, max_events=3e6)
    assert not bool(stopped.precision_met)
    assert float(stopped.n_events) < 3e6
    tiny = simulate(system, SQ2, seed=(seed, 9), precision=0.01, max_events=1e4)
    assert not bool(tiny.precision_met)
    assert not bool(tiny.interval_reliable)
    assert float(tiny.n_events) <= 1e4


@pytest.mark.parametrize("replications", [1, 3, 40])
def test_any_number_of_replications(replications: int, seed: int) -> None:
    system = ms.System(0.9, ONE_POOL, n_servers=4)
    result = simulate(system, SQ2, seed=(seed, 10), precision=0.02, replications=replications)
    assert bool(result.precision_met)
    assert int(result.n_batches) % replications == 0
    assert int(result.n_batches) >= 32


def test_start_is_forgotten(seed: int) -> None:
    system = ms.System(0.7, ONE_POOL, n_servers=100)
    full = np.ones((1, 4))
    near, far = (
        simulate(system, SQ2, seed=(seed, 11), start=start, precision=0.005)
        for start in (None, full)
    )
    error = standard_error(far, "sojourn_mean")
    assert_close(near, "sojourn_mean", float(far.sojourn_mean), float(error))


def test_stable_for_the_limit_only_in_the_policy_region() -> None:
    with pytest.raises(ms.UnstableSystem):
        simulate(ms.System(0.5, [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")], 10), SQ2)


def test_step_rate() -> None:
    assert step_rate(ms.System(0.7, TWO_POOLS, n_servers=10)) == pytest.approx(17.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"precision": 0.0},
            r"precision = 0\.0: must be a finite number greater than 0 and less than 1",
        ),
        ({"precision": 1.5}, r"precision = 1\.5: must"),
        ({"horizon": -1.0}, r"horizon = -1\.0: must be a finite number greater than 0"),
        ({"horizon": float("nan")}, r"horizon = nan: must"),
        ({"precision": 0.1, "horizon": 1.0}, "only one of them"),
        ({"replications": 0}, "replications = 0: must be an integer >= 1"),
        ({"replications": 2.5}, r"replications = 2\.5: must"),
        ({"threads": 0}, "threads = 0: must"),
        ({"seed": -1}, "seed = -1: must be an integer >= 0"),
        ({"seed": ()}, r"seed = \(\): must"),
        ({"seed": "a"}, "seed = 'a': must"),
        ({"seed": None}, "seed = None: must"),
        ({"seed": True}, "seed = True: must"),
        ({"control_variates": 1}, "control_variates = 1: must be true or false"),
        ({"moments": "yes"}, "moments = 'yes': must"),
        ({"max_events": 0}, "max_events = 0: must"),
        ({"start": np.ones((2, 3))}, r"start: has shape \(2, 3\); must have one row for each"),
        ({"start": np.array([[0.5, 0.2]])}, "start: must fall from 1"),
        ({"start": np.array([[1.0, 0.2, 0.4]])}, "start: must fall from 1"),
    ],
)
def test_bad_parameters(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(ms.System(0.5, ONE_POOL, n_servers=10), SQ2, **parameters)  # type: ignore[arg-type]


def test_bad_systems() -> None:
    with pytest.raises(ValueError, match="n_servers = None"):
        simulate(ms.System(0.5, ONE_POOL), SQ2)
    bounded = ms.System(0.5, [ms.Pool(1, 1, buffer=1)], n_servers=10)
    with pytest.raises(ValueError, match="start: has more than 1 jobs at servers of pool 0"):
        simulate(bounded, SQ2, start=np.array([[1.0, 0.5, 0.1]]))
    with pytest.raises(ValueError, match="d = 5"):
        simulate(ms.System(0.5, ONE_POOL, n_servers=4), ms.policy("sq", d=5))


@pytest.mark.parametrize(
    ("pools", "policy", "factor"),
    [
        (ONE_POOL, SQ2, 300),
        (TWO_POOLS, ms.policy("scheme1", d=[2, 2]), 200),
        (ONE_POOL, ms.policy("naive_split"), 100),
    ],
    ids=["sq", "scheme1", "random"],
)
def test_variance_is_reduced(
    pools: list[ms.Pool], policy: ms.policies.Policy, factor: float, seed: int
) -> None:
    """By several times `factor` in fact; an estimated variance is within a factor of 2."""
    system = ms.System(0.8, pools, n_servers=100)
    with_controls, plain = (
        simulate(system, policy, seed=(seed, 12), horizon=5000.0, control_variates=wanted)
        for wanted in (True, False)
    )
    assert int(with_controls.n_controls) > 2
    assert int(plain.n_controls) == 0
    for name in ("jobs_per_server", "waiting_probability"):
        difference = abs(float(with_controls[name] - plain[name]))
        assert difference <= 2.1 * float(plain[name + "_half_width"])
    ratio = plain.jobs_per_server_half_width / with_controls.jobs_per_server_half_width
    assert float(ratio) ** 2 > factor


def test_all_outputs_on_a_small_chain(seed: int) -> None:
    """Every output within 4 standard errors of the exact chain, variances included."""
    system = ms.System(0.7, TWO_POOLS, n_servers=4)
    policy = ms.policy("scheme1", d=[1, 2])
    law = stationary_law(system, policy, tolerance=1e-9)
    exact = ms.exact(system, policy, tolerance=1e-9)
    result = simulate(system, policy, seed=(seed, 13), precision=0.003, moments=True)
    few = result.isel(level=slice(4), other_level=slice(4))
    for name in ("jobs_per_server", "queue_mean", "waiting_probability"):
        assert_close(result, name, exact[name].values)
    for name in ("queue_tail", "joining_rate"):
        assert_close(few, name, exact[name].values[:, :4])
    tails = np.concatenate([law.tails(), np.zeros((len(law.jobs), 2, 1))], axis=2)
    held = -np.diff(tails, axis=2)
    jobs = law.jobs.mean(axis=1)

    def covariance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        p, n = law.probabilities, len(law.probabilities)
        one, other = (x - np.tensordot(p, x, 1) for x in (one, other))
        one, other = one.reshape(n, -1), other.reshape(n, -1)
        return np.asarray(4 * np.einsum("s,sa,sb->ab", p, one, other))

    assert_close(result, "jobs_per_server_variance", covariance(jobs, jobs)[0, 0])
    variance = np.diag(covariance(tails[:, :, :4], tails[:, :, :4])).reshape(2, 4)
    assert_close(few, "queue_tail_variance", variance)
    expected = covariance(held[:, :, :4], held[:, :, :4]).reshape(2, 4, 2, 4)
    assert_close(few, "occupancy_covariance", expected)


def test_precision_of_the_summary(seed: int) -> None:
    """The first replications tell how many more there must be; what follows decides."""
    told: list[str] = []
    system = ms.System(0.9, ONE_POOL, n_servers=100)
    result = simulate(system, SQ2, seed=(seed, 14), precision=0.00005, progress=told.append)
    assert bool(result.precision_met)
    assert float(result.sojourn_mean_half_width) <= 0.00005 * float(result.sojourn_mean)
    assert "steps to go" in told[0]
    assert "steps to go, about" in told[1]


def test_moments_are_optional(seed: int) -> None:
    system = ms.System(0.5, ONE_POOL, n_servers=10)
    result = simulate(system, SQ2, seed=(seed, 15), horizon=500.0)
    assert "occupancy_covariance" not in result
    assert float(result.queue_tail_variance[0, 0]) == pytest.approx(0.0, abs=1e-9)
    assert float(result.queue_tail_variance[0, 1]) > 0.1
