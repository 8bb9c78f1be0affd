import math

import numpy as np
import pytest
from tests.diffusion.reference import Row, chain, rows, stationary

import manyserver as ms
from manyserver.diffusion.halfin_whitt.limit.exponent import small_exponent
from manyserver.diffusion.halfin_whitt.limit.nodes import barycentric_matrix, chebyshev, radau

BETAS = (0.1, 0.25, 0.5, 1.0, 1.7, 2.5, 4.0)
SCALARS = {
    "E Y1": "y1_mean",
    "E Y2 =": "y2_mean",
    "Var Y1": "y1_variance",
    "Cov(": "y1_y2_covariance",
    "Var Y2": "y2_variance",
    "corr(": "y1_y2_correlation",
    "c0": "y2_small_constant",
}


@pytest.mark.parametrize("row", rows(*SCALARS), ids=str)
def test_moments_are_those_of_the_table(row: Row) -> None:
    name = next(name for start, name in SCALARS.items() if row.quantity.startswith(start))
    value = float(stationary(row.beta)[name])
    assert value == pytest.approx(row.value, abs=row.error + 1e-13, rel=0)


@pytest.mark.parametrize("row", rows("theta"), ids=str)
def test_the_exponent_is_that_of_the_table(row: Row) -> None:
    assert small_exponent(row.beta) == pytest.approx(row.value, abs=2e-13)


@pytest.mark.parametrize("row", rows("P(Y1<=", "P(Y2<="), ids=str)
def test_distribution_functions_are_those_of_the_table(row: Row) -> None:
    name, point = row.quantity[2:4].lower(), float(row.quantity[6:-1])
    law = ms.halfin_whitt.stationary(row.beta, **{name: [point]})
    assert float(law[f"{name}_cdf"][0]) == pytest.approx(row.value, abs=row.error, rel=0)


@pytest.mark.parametrize("beta", BETAS)
def test_identities_hold(beta: float) -> None:
    law = stationary(beta)
    assert float(abs(law.identity_residual).max()) < 1e-10
    assert float(law.y2_mean_error) < 1e-9 * float(law.y2_mean)
    assert float(law.y1_mean) == pytest.approx(-beta, rel=1e-10)
    # The density of Y1 at 0 is the mean of Y2.
    assert float(law.y1_density[-1]) == pytest.approx(float(law.y2_mean), rel=1e-10)


@pytest.mark.parametrize("beta", (0.5, 1.5))
def test_the_queues_tend_to_it(beta: float) -> None:
    roots = np.array([40, 56, 80, 113, 160])
    means = [float(chain(beta, int(r * r)).q2_mean) / r for r in roots]
    extrapolated = np.polyfit(1 / roots, means, 4)[-1]
    assert float(stationary(beta).y2_mean) == pytest.approx(extrapolated, rel=2e-5)


@pytest.mark.parametrize("beta", (0.25, 1.0, 2.5))
def test_densities_and_distribution_functions_agree(beta: float) -> None:
    y2 = np.geomspace(1e-12, 30 / beta, 1001)
    y1 = -np.append(np.geomspace(beta + 8, 1e-5, 501), 0.0)
    law = ms.halfin_whitt.stationary(beta, y1=y1, y2=y2)
    np.testing.assert_allclose(law.y2_cdf + law.y2_tail, 1.0, atol=1e-12)
    np.testing.assert_allclose(law.boundary_density, y2 * law.y2_density, rtol=1e-12)
    mass = np.trapezoid(law.y2_density * y2, np.log(y2))
    assert mass == pytest.approx(float(law.y2_cdf[-1] - law.y2_cdf[0]), rel=4e-4)
    mass = np.trapezoid(law.y1_density, y1)
    assert mass == pytest.approx(float(law.y1_cdf[-1] - law.y1_cdf[0]), rel=4e-4)
    over_y2 = np.trapezoid(law.joint_density * y2, np.log(y2), axis=1)
    below = float(law.y2_cdf[0])
    np.testing.assert_allclose(over_y2, law.y1_density, atol=4e-4 + below)
    over_y1 = np.trapezoid(law.joint_density, y1, axis=0)
    np.testing.assert_allclose(over_y1, law.y2_density, rtol=4e-3)


@pytest.mark.parametrize("beta", BETAS)
def test_tails_are_those_announced(beta: float) -> None:
    y2 = np.array([1e-9, 60 / beta, 70 / beta])
    law = ms.halfin_whitt.stationary(beta, y2=y2)
    small = float(law.y2_small_constant) * y2[0] ** float(law.y2_small_exponent)
    assert float(law.y2_cdf[0]) == pytest.approx(small, rel=1e-7)
    large = law.y2_tail.values[1:] / (y2[1:] * np.exp(-beta * y2[1:]))
    # The next term is of relative order 1 / y.
    extrapolated = (large[1] * y2[2] - large[0] * y2[1]) / (y2[2] - y2[1])
    assert extrapolated == pytest.approx(float(law.y2_tail_constant), rel=0.15)


def test_the_density_at_zero_is_infinite() -> None:
    law = ms.halfin_whitt.stationary(1.0, y1=[-1.0], y2=[0.0, 1.0])
    assert law.y2_cdf.values[0] == 0.0
    assert law.y2_density.values[0] == math.inf
    assert law.joint_density.values[0, 0] == math.inf
    assert law.boundary_density.values[0] == 0.0


def test_results_are_described() -> None:
    for name, variable in stationary(1.0).data_vars.items():
        assert {"units", "long_name"} <= variable.attrs.keys(), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": 0.0}, "beta = 0.0: must be"),
        ({"beta": math.nan}, "beta = nan: must be"),
        ({"beta": 40.0}, "beta = 40.0: must be from 0.01 to 6"),
        ({"beta": 1.0, "y1": [0.5]}, "y1 = 0.5: must be finite and at most 0"),
        ({"beta": 1.0, "y2": [-0.5]}, "y2 = -0.5: must be finite and at least 0"),
        ({"beta": 1.0, "y2": [[1.0]]}, r"y2 has shape \(1, 1\): must have one dimension"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ms.halfin_whitt.stationary(**arguments)  # type: ignore[arg-type]


def test_chebyshev_matrices_are_exact_for_polynomials() -> None:
    basis = chebyshev(12)
    x = basis.nodes
    np.testing.assert_allclose(basis.derivative @ x**7, 7 * x**6, atol=1e-12)
    np.testing.assert_allclose(basis.above @ x**7, (1 - x**8) / 8, atol=1e-14)
    assert basis.weights @ x**5 == pytest.approx(1 / 6)
    points = np.array([0.0, 0.3, 1.0])
    matrix = barycentric_matrix(basis.nodes, basis.barycentric, points)
    np.testing.assert_allclose(matrix @ x**9, points**9, atol=1e-14)


def test_radau_matrices_are_exact_for_polynomials() -> None:
    steps = radau(5)
    t = steps.points
    np.testing.assert_allclose(steps.derivative @ t**5, 5 * t[1:] ** 4, atol=1e-12)
    assert steps.weights @ t[1:] ** 8 == pytest.approx(2 / 9)
