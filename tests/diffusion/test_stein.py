import csv
import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from manyserver.diffusion.halfin_whitt.finite.law import chain
from manyserver.diffusion.halfin_whitt.fluid_model.bounds import (
    mean_waiting_bound,
    queue_bound,
    violation,
)
from manyserver.diffusion.halfin_whitt.fluid_model.flow import fluid, gamma_curve
from manyserver.diffusion.halfin_whitt.fluid_model.stein import SteinSolution, scaled_states

from .small_chain import stationary_law

CASES = [(0.25, 0.3), (0.25, 3.0), (1.0, 2.0), (1.0, 1.0 + math.sqrt(6)), (2.0, 2.1), (5.0, 9.0)]
BETAS = [0.25, 0.5, 1.0, 1.5, 2.0]
REFERENCE = Path(__file__).parents[1] / "data" / "halfin_whitt.csv"


def reference(quantity: str) -> list[tuple[float, int, float]]:
    """(beta, n, value) of the rows about queues."""
    rows = []
    with REFERENCE.open() as file:
        for row in csv.DictReader(file):
            if row["quantity"] == quantity:
                given = dict(item.split("=") for item in row["parameters"].split(";"))
                rows.append((float(given["beta"]), int(given["n"]), float(row["value"])))
    return rows


def grid(reach: float = 40.0) -> np.ndarray:
    side = np.concatenate([[0.0], np.geomspace(1e-5, reach, 250)])
    return np.stack(np.meshgrid(-side, side, indexing="ij"), axis=-1)


def smooth_points(solution: SteinSolution, count: int = 400) -> np.ndarray:
    """Random points away from the curves across which second derivatives jump."""
    rng = np.random.default_rng(2)
    x1, x2 = -rng.exponential(2, count), rng.exponential(8, count)
    curve = gamma_curve(x1, solution.kappa, solution.beta)
    clear = (np.abs(x2 - curve) > 0.02) & (np.abs(x2 - solution.kappa) > 0.02)
    clear &= (x1 < -0.02) & (x2 > 0.02)
    return np.stack([x1[clear], x2[clear]], axis=-1)


@pytest.mark.parametrize(("beta", "kappa"), CASES)
def test_equation_reflection_and_bounds(beta: float, kappa: float) -> None:
    worst = SteinSolution(beta, kappa).violations(grid())
    assert worst["equation"] < 1e-11
    assert worst["reflection"] < 1e-14
    assert worst["flat"] == 0.0
    assert max(worst["sign"], worst["d11"], worst["d22"]) <= 0


@pytest.mark.parametrize(("beta", "kappa"), CASES)
def test_largest_second_derivatives(beta: float, kappa: float) -> None:
    # At the axis, just above the level, d11 is kappa / (beta (kappa - beta)); far out, 2 / beta.
    far = np.stack([np.zeros(400), kappa + np.geomspace(1e-9, 1e6, 400)], axis=-1)
    largest = SteinSolution(beta, kappa).evaluate(far).d11.max()
    assert largest == pytest.approx(max(2, kappa / (kappa - beta)) / beta, rel=1e-4)


@pytest.mark.parametrize(("beta", "kappa"), CASES)
def test_derivatives_are_those_of_the_value(beta: float, kappa: float) -> None:
    solution = SteinSolution(beta, kappa)
    x = smooth_points(solution)
    step = 2e-4

    def centred(name: str, axis: int) -> np.ndarray:
        move = step * np.eye(2)[axis]

        def at(shift: float) -> np.ndarray:
            return np.asarray(getattr(solution.evaluate(x + shift * move), name))

        return np.asarray((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step))

    f = solution.evaluate(x)
    scale = 1 + np.abs(f.d22).max()
    assert np.abs(centred("value", 0) - f.d1).max() < 1e-8 * scale
    assert np.abs(centred("value", 1) - f.d2).max() < 1e-8 * scale
    assert np.abs(centred("d1", 0) - f.d11).max() < 1e-8 * scale
    assert np.abs(centred("d1", 1) - f.d12).max() < 1e-8 * scale
    assert np.abs(centred("d2", 0) - f.d12).max() < 1e-8 * scale
    assert np.abs(centred("d2", 1) - f.d22).max() < 1e-8 * scale


@pytest.mark.parametrize("x", [(-1.0, 9.0), (0.0, 4.0), (-3.0, 3.0), (-0.5, 2.5), (0.0, 1.0)])
def test_value_is_the_integral_along_the_fluid_path(x: tuple[float, float]) -> None:
    solution = SteinSolution(1.0, 2.0)

    def cost(t: float) -> float:
        return max(float(fluid(x, t, 1.0)[1]) - 2.0, 0.0)

    pieces = np.linspace(0, 12, 25)
    parts = [quad(cost, a, b, limit=200)[0] for a, b in itertools.pairwise(pieces)]
    assert float(solution.evaluate(x).value) == pytest.approx(sum(parts), abs=1e-7)


@pytest.mark.parametrize(("n", "levels"), [(4, 2), (9, 3), (9, 4), (36, 2), (100, 2)])
@pytest.mark.parametrize(("beta", "kappa"), CASES[:4])
def test_generator_has_mean_zero_under_the_exact_law(
    beta: float, kappa: float, n: int, levels: int
) -> None:
    states, law = stationary_law(beta, n, levels)
    third = states[:, 2] if levels > 2 else 0
    worst = SteinSolution(beta, kappa).violations_under_law(
        n, law, states[:, 0], states[:, 1], third
    )
    assert worst["generator"] < 1e-12
    assert worst["excess"] <= worst["sharper"] <= 0


def test_generator_is_the_fluid_one_with_a_small_remainder() -> None:
    """The expansion of Lemma 3, term by term."""
    solution, n, beta, kappa = SteinSolution(1.0, 2.0), 400, 1.0, 2.0
    h, rate = 1 / math.sqrt(n), n - beta * math.sqrt(n)

    def integral(
        name: str, start: float, weight: Callable[..., np.ndarray], fixed: float, axis: int
    ) -> float:
        u = h * (np.arange(2000) + 0.5) / 2000
        points = np.full((u.size, 2), fixed)
        points[:, axis] = start + u
        values = getattr(solution.evaluate(points), name)
        return float((weight(u) * values).mean() * h)

    for q1, q2, q3 in [(380, 100, 7), (400, 60, 3), (390, 45, 0), (400, 400, 30), (400, 300, 0)]:
        x1, x2 = (float(part) for part in scaled_states(n, q1, q2))
        f = solution.evaluate([x1, x2])
        remainder = q3 * integral("d2", x2 - h, np.ones_like, x1, 1)
        remainder += (q1 - q2) * integral("d11", x1 - h, lambda u: u, x2, 0)
        remainder += q2 * integral("d22", x2 - h, lambda u: u, x1, 1)
        if q1 < n:
            remainder += rate * integral("d11", x1, lambda u: h - u, x2, 0)
        elif q2 < n:
            remainder += rate * integral("d22", x2, lambda u: h - u, x1, 1)
        else:
            remainder -= rate * h * float(f.d2)
        # The lemma's term on the axis vanishes, as F_1 = F_2 there.
        expected = -max(x2 - kappa, 0.0) + remainder
        assert float(solution.generator(n, q1, q2, q3)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("beta", "n"), [(0.5, 36), (1.0, 25), (1.0, 100), (2.0, 36)])
@pytest.mark.parametrize("above", [0.05, 0.5, 2.0])
def test_excess_inequality_holds_under_the_exact_law(beta: float, n: int, above: float) -> None:
    states, law = stationary_law(beta, n, 2)
    excess = SteinSolution(beta, beta + above).excess(n, np.bincount(states[:, 1], law))
    assert 0 < excess.mean <= excess.sharper < excess.bound
    height = states[:, 1] / math.sqrt(n) - beta - above
    assert excess.mean == pytest.approx(law @ np.maximum(height, 0))
    tail = law[height >= -1 / math.sqrt(n) - 1e-12].sum() / beta
    ratio = (beta + above) / above
    assert excess.bound == pytest.approx((12 + 6 * ratio) * tail)
    assert excess.sharper == pytest.approx((4 + 3 * ratio) * tail)


@pytest.mark.parametrize(("beta", "n"), [(0.25, 6400), (1.0, 784), (1.0, 6400), (2.0, 1600)])
def test_excess_inequality_holds_for_many_servers(beta: float, n: int) -> None:
    law = chain(beta, n).q2_probability.values
    for above in (0.1, math.sqrt(6), 8.0):
        excess = SteinSolution(beta, beta + above).excess(n, law)
        assert 0 < 5 * excess.mean < excess.sharper < excess.bound


def test_constants_of_the_bound() -> None:
    bounds = [round(mean_waiting_bound(beta), 1) for beta in BETAS]
    sharper = [round(mean_waiting_bound(beta, sharper=True), 1) for beta in BETAS]
    assert bounds == [77.1, 41.4, 23.9, 18.4, 15.9]
    assert sharper == [31.7, 18.0, 11.5, 9.6, 9.0]


@pytest.mark.parametrize("beta", BETAS)
def test_bound_is_the_best_over_levels(beta: float) -> None:
    kappa = beta + np.geomspace(0.01, 100, 20_001)
    best = (kappa + (12 + 6 * kappa / (kappa - beta)) / beta).min()
    assert mean_waiting_bound(beta) == pytest.approx(best, rel=1e-6)


def test_bounds_hold_for_the_reference_values() -> None:
    second = reference("E Q2/sqrt n (JSQ)")
    third = reference("E Q3 (JSQ)")
    assert second
    assert third
    for beta, n, value in second:
        assert value * math.sqrt(n) < queue_bound(beta, n, 2)
        assert value < mean_waiting_bound(beta, sharper=True)
    for beta, n, value in third:
        assert value < queue_bound(beta, n, 3) == queue_bound(beta, n, 7)


def test_bounds_hold_for_an_exact_law() -> None:
    # The system that loses arrivals when it is full holds a little less.
    states, law = stationary_law(1.0, 9, 5)
    means = list(law @ states)
    assert means[0] == pytest.approx(6.0, rel=1e-3)
    assert violation(1.0, 9, [6.0, *means[1:]]) == 0.0
    assert violation(1.0, 9, [5.0, *means[1:]]) == 1.0


def test_queue_bounds() -> None:
    assert queue_bound(1.0, 100, 1) == 10.0
    assert queue_bound(1.0, 100, 2) == 10 * mean_waiting_bound(1.0)
    assert queue_bound(1.0, 10**6, 3) == pytest.approx(1722, abs=0.5)
    assert queue_bound(0.5, 1, 3) == math.inf


@pytest.mark.parametrize("beta", [0.1, 1.0, 3.0])
def test_third_queue_bound_is_the_least_over_levels(beta: float) -> None:
    n = 100
    level = np.linspace(beta / 10, 1, 200_003)[1:-1]
    factor = (12 + 6 * level / (level - beta / 10)) / beta
    bound = factor * mean_waiting_bound(beta) / ((1 - level) * (level - 1 / n))
    assert queue_bound(beta, n, 3) == pytest.approx(bound.min(), rel=1e-7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SteinSolution(-1.0, 2.0), "beta = -1.0: must be a finite number greater than 0"),
        (lambda: SteinSolution(1.0, 1.0), "kappa = 1.0: must be greater than beta = 1"),
        (lambda: SteinSolution(1.0, math.nan), "kappa = nan: must be a finite number"),
        (lambda: SteinSolution(1.0, 2.0).evaluate([1.0, 1.0]), "must be finite and at most 0"),
        (lambda: SteinSolution(3.0, 4.0).generator(9, 9, 0), r"n = 9: must be greater than beta"),
        (lambda: SteinSolution(1.0, 2.0).excess(9, [0.5, 0.4]), "q2_law sums to 0.9"),
        (lambda: SteinSolution(1.0, 2.0).excess(9, [[1.0]]), r"q2_law has shape \(1, 1\)"),
        (lambda: mean_waiting_bound(0.0), "beta = 0.0"),
        (lambda: queue_bound(1.0, 100, 0), "i = 0: must be an integer >= 1"),
        (lambda: queue_bound(1.0, 2.5, 3), "n = 2.5: must be an integer >= 1"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
