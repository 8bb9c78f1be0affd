"""The 1/N correction and the covariance: published values, conservation laws, symmetries."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from tests.registry import EQUAL, POOLS, policies

import manyserver as ms
from manyserver.mean_field.drift import Drift
from manyserver.mean_field.refinement import refine
from manyserver.mean_field.smooth import expansion
from manyserver.policies import Policy, Sampling
from manyserver.policies.base import whole_system

DATA = Path(__file__).parents[1] / "data"
ONE = [ms.Pool(1, 1)]
PAIR = [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")]
PREFERENCES = {"scheme1": "scheme1", "scheme2(C": "scheme2", "scheme2-alt SED(d)": "sed"}


def rows(name: str) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """The rows of a reference table, each with its parameters taken apart."""
    with (DATA / name).open(newline="") as lines:
        for row in csv.DictReader(lines):
            pairs = (part.split("=") for part in row["parameters"].split(";") if "=" in part)
            yield row, {pair[0]: pair[1] for pair in pairs}


def of_equal_servers(quantity: str) -> list[tuple[int, float, int, float, float]]:
    """Choices d, load, number of servers (0: the limit), value and error of SQ(d)."""
    return [
        (
            int(given["d"]),
            float(given["lambda"]),
            int(given.get("N", 0)),
            float(row["value"]),
            float(row["uncertainty"].split()[0]),
        )
        for row, given in rows("sq_d.csv")
        if quantity in row["quantity"] and row["model"].startswith("SQ(d)")
    ]


def of_unequal_servers() -> list[tuple[ms.System, Policy, float]]:
    cases = []
    for row, given in rows("heterogeneous.csv"):
        if row["quantity"] != "coef_1_over_N":
            continue
        name = next(value for key, value in PREFERENCES.items() if row["policy"].startswith(key))
        pools = [
            ms.Pool(fraction, speed)
            for fraction, speed in zip(
                given["gamma"].split("|"), given["C"].split("|"), strict=True
            )
        ]
        d = [int(count) for count in given["d"].split("|")]
        policy = ms.policy(name, d=d, replacement="sampling" in given)
        cases.append((ms.System(float(given["lambda"]), pools), policy, float(row["value"])))
    return cases


def test_published_constants_of_equal_servers() -> None:
    """V of Gast and Van Houdt: d = 2, 3, 4, loads 0.5, 0.7, 0.9, with replacement."""
    cases = of_equal_servers("1/N constant V")
    assert len(cases) == 9
    for d, load, _, value, error in cases:
        result = refine(ms.System(load, ONE), ms.policy("sq", d=d, replacement=True))
        assert float(result.jobs_per_server_correction) == pytest.approx(value, abs=error)


def test_published_table_of_equal_servers() -> None:
    cases = of_equal_servers("(1/N expansion)")
    assert len(cases) == 8
    for d, load, n, value, rounding in cases:
        result = refine(ms.System(load, ONE, n), ms.policy("sq", d=d, replacement=True))
        assert float(result.jobs_per_server_refined) == pytest.approx(value, abs=rounding)


def test_published_simulations_of_equal_servers() -> None:
    """The correction is all but 5 % of the bias from 100 servers on (4 standard errors)."""
    cases = [case for case in of_equal_servers("(simulation, control") if case[2] >= 100]
    assert {case[0] for case in cases} == {2, 3, 4}
    for d, load, n, value, error in cases:
        result = refine(ms.System(load, ONE, n), ms.policy("sq", d=d, replacement=True))
        bias = float(result.jobs_per_server_correction) / n
        refined = float(result.jobs_per_server_refined)
        assert value == pytest.approx(refined, abs=0.05 * bias + 4 * error)


def test_reference_coefficients_of_unequal_servers() -> None:
    cases = of_unequal_servers()
    assert len(cases) == 36
    for system, policy, value in cases:
        assert float(refine(system, policy).sojourn_mean_correction) == pytest.approx(
            value, rel=1e-8
        )


def textbook(load: float, d: int, replacement: bool) -> tuple[float, np.ndarray]:
    """Correction of the jobs per server and covariance of SQ(d), for levels 1 to n."""
    n = 12
    u = load ** np.array([float((d**k - 1) // (d - 1)) for k in range(n + 2)])
    slope = d * load * u[: n + 1] ** (d - 1)
    jacobian = np.diag(-slope[1:] - 1) + np.diag(slope[1:-1], -1) + np.diag(np.ones(n - 1), 1)
    noise = np.diag(2 * (u[1:-1] - u[2:]))
    identity = np.eye(n)
    both = np.kron(jacobian, identity) + np.kron(identity, jacobian)
    covariance = np.linalg.solve(both, -noise.ravel()).reshape(n, n)
    powers = d * (d - 1) / 2 * load * u[: n + 1] ** (d - 2)
    change = powers * np.append(0, np.diagonal(covariance))
    if not replacement:
        change -= powers * u[: n + 1] * (1 - u[: n + 1])
    return float(np.linalg.solve(jacobian, np.diff(change)).sum()), covariance


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("load", [0.7, 0.9, 0.95])
def test_equal_servers_have_the_textbook_expansion(load: float, d: int, replacement: bool) -> None:
    correction, covariance = textbook(load, d, replacement)
    result = refine(ms.System(load, ONE), ms.policy("sq", d=d, replacement=replacement))
    assert float(result.jobs_per_server_correction) == pytest.approx(correction, rel=1e-11)
    inner = result.sizes["level"] - 1
    actual = result.queue_tail_covariance.values[0, 1:, 0, 1:]
    assert actual == pytest.approx(covariance[:inner, :inner], abs=1e-11)
    assert float(result.jobs_per_server_variance) == pytest.approx(covariance.sum(), rel=1e-11)


@pytest.mark.parametrize("policy", policies(), ids=str)
@pytest.mark.parametrize("pools", [POOLS, EQUAL], ids=["unequal", "equal"])
def test_conservation_laws(policy: Policy, pools: list[ms.Pool]) -> None:
    """The busy servers' work rate S and the jobs T: v(S) = 0 and N Cov(S, T) = arrival rate."""
    system = ms.System(0.6, pools)
    result = refine(system, policy)
    work = system.fractions * system.speeds
    assert work @ result.queue_tail_correction.values[:, 1] == pytest.approx(0, abs=1e-11)
    covariance = result.queue_tail_covariance
    spread = covariance.sel(level=1).sum("other_level").values
    assert work @ spread @ system.fractions == pytest.approx(system.arrival_rate, rel=1e-11)
    assert float(result.refinement_residual) < 1e-11
    size = result.sizes["pool"] * result.sizes["level"]
    matrix = covariance.values.reshape(size, size)
    assert np.array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-12
    assert np.all(covariance.sel(level=0) == 0)


@pytest.mark.parametrize("policy", policies(), ids=str)
def test_waiting_is_corrected_as_the_joining_law_is(policy: Policy) -> None:
    system = ms.System(0.7, POOLS)
    result = refine(system, policy)
    law = Drift(system, policy, result.sizes["level"]).law
    tails = result.queue_tail.values
    slope = np.tensordot(law.jacobian(tails), result.queue_tail_correction.values, axes=2)
    bend = law.curvature(tails, result.queue_tail_covariance.values) / 2
    change = slope + bend + law.size_correction(tails)
    waiting = float(result.waiting_probability_correction)
    assert change[:, 1:].sum() == pytest.approx(waiting, abs=1e-10)


def test_random_routing_makes_servers_independent() -> None:
    """Cov(u_k, u_l) = (u_max(k, l) - u_k u_l) / (fraction N), also by the general solver."""
    system, policy = ms.System(0.5, PAIR), ms.policy("random", probabilities=[0.1, 0.9])
    result = refine(system, policy)
    for name in ("queue_tail", "queue_mean", "sojourn_mean", "waiting_probability"):
        assert np.all(result[f"{name}_correction"].values == 0)
    tails = result.queue_tail.values
    general = expansion.expand(system, policy, tails)
    assert general.correction == pytest.approx(np.zeros(general.correction.shape), abs=1e-12)
    kept = general.correction.shape[1]
    exact = np.zeros((2, kept, 2, kept))
    larger = np.maximum.outer(np.arange(kept), np.arange(kept))
    for pool, u in enumerate(tails[:, :kept]):
        exact[pool, :, pool] = 2 * (u[larger] - np.outer(u, u))
    assert result.queue_tail_covariance.values[:, :kept, :, :kept] == pytest.approx(exact, abs=0)
    assert general.covariance == pytest.approx(exact, abs=1e-13)
    assert general.jobs_variance == pytest.approx(float(result.jobs_per_server_variance), rel=1e-11)


@pytest.mark.parametrize("replacement", [False, True])
def test_pools_apart_expand_as_they_do_together(replacement: bool) -> None:
    system = ms.System(0.6, PAIR)
    policy = ms.policy("hybrid_sq", d=[3, 2], split="naive", replacement=replacement)
    result = refine(system, policy)
    general = expansion.expand(system, policy, result.queue_tail.values)
    kept = general.correction.shape[1]
    assert kept == result.sizes["level"]
    assert result.queue_tail_correction.values == pytest.approx(general.correction, abs=1e-13)
    assert result.queue_tail_covariance.values == pytest.approx(general.covariance, abs=1e-13)
    assert float(result.jobs_per_server_variance) == pytest.approx(general.jobs_variance, rel=1e-12)


@pytest.mark.parametrize(
    "name, d", [("scheme1", [1, 2, 3]), ("scheme2", [3, 1, 2]), ("sed", [2, 2, 1])]
)
def test_the_order_of_the_pools_makes_no_difference(name: str, d: list[int]) -> None:
    order = [2, 0, 1]
    result = refine(ms.System(0.8, POOLS), ms.policy(name, d=d))
    permuted = refine(
        ms.System(0.8, [POOLS[i] for i in order]), ms.policy(name, d=[d[i] for i in order])
    )
    correction = result.queue_tail_correction.values[order]
    assert permuted.queue_tail_correction.values == pytest.approx(correction, abs=1e-11)
    covariance = result.queue_tail_covariance.values[order][:, :, order]
    assert permuted.queue_tail_covariance.values == pytest.approx(covariance, abs=1e-11)


@pytest.mark.parametrize("replacement", [False, True])
def test_one_pool_cut_into_three_is_still_one(replacement: bool) -> None:
    """Ties across pools: with equal speeds SQ(d) does not see the pools."""
    policy = ms.policy("sq", d=3, replacement=replacement)
    whole, cut = refine(ms.System(0.8, ONE), policy), refine(ms.System(0.8, EQUAL), policy)
    expected = float(whole.sojourn_mean_correction)
    assert float(cut.sojourn_mean_correction) == pytest.approx(expected, rel=1e-12)
    for pool in range(3):
        actual = cut.queue_tail_correction.values[pool]
        assert actual == pytest.approx(whole.queue_tail_correction.values[0], abs=1e-12)
    share = np.array([float(pool.fraction) for pool in EQUAL])
    joint = np.einsum("jkil,j,i->kl", cut.queue_tail_covariance.values, share, share)
    assert joint == pytest.approx(whole.queue_tail_covariance.values[0, :, 0], abs=1e-12)


@pytest.mark.parametrize("name", ["scheme1", "scheme2", "sed"])
def test_equations_hold_with_differences_for_derivatives(name: str) -> None:
    system, policy = ms.System(0.9, PAIR), ms.policy(name, d=[2, 3], replacement=True)
    result = refine(system, policy)
    drift = Drift(system, policy, result.sizes["level"])
    state = drift.state(result.queue_tail.values)
    inner = result.queue_tail_covariance.values[:, 1:, :, 1:].reshape(2 * (len(state),))
    values, vectors = np.linalg.eigh(inner)
    step = 1e-4
    bend = sum(
        value * (drift(state + step * v) - 2 * drift(state) + drift(state - step * v)) / step**2
        for value, v in zip(values, vectors.T, strict=True)
    )
    v = result.queue_tail_correction.values[:, 1:].ravel()
    scale = 1e-4 / np.linalg.norm(v)
    slope = (drift(state + scale * v) - drift(state - scale * v)) / (2 * scale)
    assert slope + bend / 2 == pytest.approx(
        np.zeros(len(v)), abs=1e-5 * float(np.linalg.norm(bend))
    )


def test_known_variances_of_two_choices() -> None:
    for load, jobs, busy in [(0.7, 2.25693, 0.31321), (0.9, 10.37518, 0.14515)]:
        result = refine(ms.System(load, ONE), ms.policy("sq", d=2))
        assert float(result.jobs_per_server_variance) == pytest.approx(jobs, abs=5e-6)
        actual = float(result.queue_tail_covariance[0, 1, 0, 1])
        assert actual == pytest.approx(busy, abs=5e-6)


@pytest.mark.parametrize("name", ["scheme1", "scheme2", "sed"])
@pytest.mark.parametrize("load", [0.5, 0.99])
def test_more_levels_change_nothing(
    name: str, load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, policy = ms.System(load, PAIR), ms.policy(name, d=[2, 1])
    usual = refine(system, policy)
    monkeypatch.setattr(expansion, "TOP_TAIL", 1e-200)
    more = refine(system, policy)
    assert more.sizes["level"] > usual.sizes["level"] + 1
    for name in ("sojourn_mean_correction", "jobs_per_server_variance"):
        assert float(more[name]) == pytest.approx(float(usual[name]), rel=1e-11)


def test_refined_values_are_for_the_servers_asked_for() -> None:
    policy = ms.policy("scheme1", d=[2, 2])
    limit, finite = refine(ms.System(0.9, PAIR), policy), refine(ms.System(0.9, PAIR, 50), policy)
    names = ["queue_tail", "queue_mean", "jobs_per_server", "sojourn_mean", "waiting_probability"]
    assert not any(f"{name}_refined" in limit for name in names)
    for name in names:
        np.testing.assert_allclose(finite[name], limit[name], rtol=1e-12)
        expected = limit[name].values + limit[f"{name}_correction"].values / 50
        np.testing.assert_allclose(finite[f"{name}_refined"], expected, rtol=1e-12)
        assert finite[f"{name}_refined"].attrs["units"] == limit[name].attrs["units"]
    jobs = float(finite.jobs_per_server_refined)
    assert float(finite.sojourn_mean_refined) == pytest.approx(jobs / 0.9, rel=1e-14)
    assert finite.queue_mean_refined.values.mean() == pytest.approx(jobs, rel=1e-14)
    covariance = finite.queue_tail_covariance
    assert covariance.dims == ("pool", "level", "other_pool", "other_level")
    assert np.array_equal(covariance.other_level, covariance.level)


def test_a_pool_that_gets_no_jobs_stays_empty() -> None:
    for policy in (ms.policy("scheme1", d=[0, 2]), ms.policy("random", probabilities=[0, 1])):
        result = refine(ms.System(0.5, PAIR), policy)
        assert np.all(result.queue_tail_covariance.sel(pool=0) == 0)
        assert np.all(result.queue_tail_correction.sel(pool=0) == 0)
        assert float(result.jobs_per_server_variance) > 0


def test_single_choices_give_a_bounded_number_of_levels() -> None:
    result = refine(ms.System(0.99, ONE), ms.policy("sq", d=1))
    assert result.sizes["level"] == 512
    assert float(result.jobs_per_server_variance) == pytest.approx(0.99 / 0.01**2, rel=1e-12)


@dataclass(frozen=True)
class LookAtAll(Policy):
    """Join the shortest of all queues."""

    name: ClassVar[str] = "look_at_all"
    title: ClassVar[str] = "Look at all"
    replacement: bool = False

    def sampling(self, system: ms.System) -> Sampling:
        assert system.n_servers is not None
        return whole_system(system.n_servers, len(system.pools))

    def preference(self, level: int, speed: Fraction) -> Fraction:
        return Fraction(level)


def test_looking_at_all_servers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"look_at_all: .* not smooth"):
        refine(ms.System(0.5, ONE), LookAtAll())


def test_what_has_no_fixed_point_is_refused() -> None:
    with pytest.raises(ms.UnstableSystem):
        refine(ms.System(0.45, PAIR), ms.policy("sq", d=2))


def test_an_unstable_fixed_point_is_refused() -> None:
    jacobian = np.array([[-1.0, 2.0], [2.0, -1.0]])
    with pytest.raises(RuntimeError, match="not stable"):
        expansion._covariance(jacobian, np.ones(2))
