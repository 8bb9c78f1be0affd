import math

import numpy as np
import pytest
from scipy.special import gammaln
from tests.diffusion.reference import Row, chain, rows, stationary

import manyserver as ms
from manyserver.diffusion.halfin_whitt.finite.enumeration import count_law
from manyserver.diffusion.halfin_whitt.finite.law import METHODS, marginals
from manyserver.diffusion.halfin_whitt.finite.three_levels import plane_law
from manyserver.diffusion.halfin_whitt.finite.two_levels import Levels, level_law

RELATIVE = 2e-12
"""Of the digits that the table prints."""


@pytest.mark.parametrize("row", rows("E Q2/sqrt n"), ids=str)
def test_the_mean_of_q2_is_that_of_the_table(row: Row) -> None:
    assert float(chain(row.beta, row.n).q2_mean) / math.sqrt(row.n) == pytest.approx(
        row.value, rel=RELATIVE, abs=0
    )


@pytest.mark.parametrize("row", rows("P(Q1=n)"), ids=str)
def test_the_probability_of_waiting_is_that_of_the_table(row: Row) -> None:
    assert float(chain(row.beta, row.n).waiting_probability) == pytest.approx(
        row.value, rel=RELATIVE, abs=0
    )


@pytest.mark.parametrize("row", rows("E Q3"), ids=str)
def test_the_mean_of_q3_is_that_of_the_table(row: Row) -> None:
    assert float(chain(row.beta, row.n).q3_mean) == pytest.approx(row.value, rel=RELATIVE, abs=0)


@pytest.mark.parametrize(("beta", "n"), [(0.3, 1), (0.9, 1), (0.5, 3), (1.5, 8), (2.0, 15)])
def test_two_customers_per_server_by_levels_and_by_counts(beta: float, n: int) -> None:
    exact = count_law(n, beta, 2)
    law = level_law(Levels.choose(n, beta))
    first, second = exact.counts.T
    expected = np.bincount(first, exact.probability, n + 1)
    np.testing.assert_allclose(law.q1, expected[n + 1 - len(law.q1) :], rtol=1e-10)
    expected = np.bincount(second, exact.probability, n + 1)
    np.testing.assert_allclose(law.q2, expected[: len(law.q2)], rtol=1e-10)
    full = first == n
    expected = np.bincount(second[full], exact.probability[full], n + 1)
    np.testing.assert_allclose(law.full, expected[: len(law.full)], rtol=1e-10)
    idle_q2 = float(exact.probability @ ((n - first) * second))
    assert law.idle_q2_mean == pytest.approx(idle_q2, rel=1e-10)


@pytest.mark.parametrize(("beta", "n"), [(0.3, 1), (0.9, 1), (0.5, 3), (1.5, 8), (1.0, 12)])
def test_three_customers_per_server_by_planes_and_by_counts(beta: float, n: int) -> None:
    exact = count_law(n, beta, 3)
    law = plane_law(n, beta)
    for column, found in enumerate((law.q1, law.q2, law.q3)):
        expected = np.bincount(exact.counts[:, column], exact.probability, n + 1)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    corner = (exact.counts == n).all(axis=1)
    assert law.overflow == pytest.approx(float(exact.probability[corner][0]), rel=1e-9)
    q1, q2, q3 = exact.counts.T
    balance = exact.probability @ (2 * (n - q1) * q2 - (n + 1 - q2 + n - q1) * q3)
    assert law.balance == pytest.approx(float(balance), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("beta", "n"), [(1.0, 5), (0.7, 10), (1.0, 10), (2.0, 10), (0.3, 1)])
def test_the_errors_stated_by_planes_cover_the_truth(beta: float, n: int) -> None:
    truth, planes = chain(beta, n), ms.halfin_whitt.chain(beta, n, method="planes")
    for name in ("q2_mean", "q3_mean"):
        off = abs(float(planes[name] - truth[name]))
        assert off <= float(planes[f"{name}_error"]) + float(truth[f"{name}_error"])


@pytest.mark.parametrize(("beta", "n"), [(0.5, 100), (0.2, 100), (1.0, 100), (2.0, 64)])
def test_the_errors_stated_by_levels_cover_the_truth(beta: float, n: int) -> None:
    truth, levels = chain(beta, n), ms.halfin_whitt.chain(beta, n, method="levels")
    for name in ("q2_mean", "q3_mean"):
        off = abs(float(levels[name] - truth[name]))
        assert off <= float(levels[f"{name}_error"]) + float(truth[f"{name}_error"])


def test_one_server_is_the_mm1_queue() -> None:
    arrivals = 0.7
    law = chain(0.3, 1)
    assert float(law.q2_mean) == pytest.approx(arrivals**2, rel=1e-11)
    assert float(law.q3_mean) == pytest.approx(arrivals**3, rel=1e-11)
    assert float(law.waiting_probability) == pytest.approx(arrivals, rel=1e-11)


@pytest.mark.parametrize(("beta", "n"), [(7.0, 100), (10.0, 300), (10.0, 900)])
def test_very_light_traffic_is_a_pool_without_waiting(beta: float, n: int) -> None:
    law = chain(beta, n)
    arrivals = n - beta * math.sqrt(n)
    count = law.q1.values.astype(float)
    poisson = np.exp(count * math.log(arrivals) - arrivals - gammaln(count + 1))
    np.testing.assert_allclose(law.q1_probability, poisson, rtol=1e-3, atol=1e-12)
    assert 0 < float(law.q2_mean) < 1e-3


@pytest.mark.parametrize(("beta", "n"), [(1.0, 9), (1.0, 225), (0.5, 2500), (3.0, 900)])
def test_identities_hold_where_the_cut_does_not_matter(beta: float, n: int) -> None:
    law = chain(beta, n)
    allowed = 1e-9 + 10 * float(law.truncation_error)
    assert float(abs(law.identity_residual).max()) < allowed
    for name in ("q1", "q2", "q3"):
        assert float(law[f"{name}_probability"].sum()) == pytest.approx(1.0, abs=1e-12)
        assert {"units", "long_name"} <= law[f"{name}_probability"].attrs.keys()
    assert float((law.q1 * law.q1_probability).sum()) == pytest.approx(float(law.q1_mean))


def test_the_error_of_the_limit_falls_like_one_over_sqrt_n() -> None:
    limit = float(stationary(1.0).y2_mean)
    sizes = np.array([1600, 3249, 6400, 12769, 25600, 51076, 102400])
    off = np.array([limit - float(chain(1.0, n).q2_mean) / math.sqrt(n) for n in sizes])
    slope = np.polyfit(np.log(sizes), np.log(off), 1)[0]
    assert slope == pytest.approx(-0.49, abs=0.01)


@pytest.mark.parametrize("row", rows("c1: u-u_n"), ids=str)
def test_the_first_coefficient_of_the_expansion(row: Row) -> None:
    limit = float(stationary(row.beta).y2_mean)
    roots = np.sqrt([3249, 6400, 12769, 25600, 51076, 102400])
    off = [r * limit - float(chain(row.beta, round(r * r)).q2_mean) for r in roots]
    assert np.polyfit(1 / roots, off, 4)[-1] == pytest.approx(row.value, abs=row.error)


def test_the_method_is_chosen_by_the_number_of_servers() -> None:
    assert list(METHODS) == ["counts", "planes", "levels"]
    assert "Cov(Q1, Q1 + Q2 + ...) = n lambda" in marginals(1.0, 10).residuals
    assert len(marginals(1.0, 11).q3) == 12
    assert len(marginals(1.0, 401).q3) == 1


@pytest.mark.parametrize(
    ("beta", "n", "method", "message"),
    [
        (0.0, 100, None, "beta = 0.0: must be a finite number greater than 0"),
        (math.nan, 100, None, "beta = nan: must be"),
        (math.inf, 100, None, "beta = inf: must be"),
        (-1.0, 100, None, "beta = -1.0: must be"),
        (1.0, 0, None, "n = 0: must be an integer >= 1"),
        (1.0, 2.5, None, "n = 2.5: must be an integer"),
        (10.0, 100, None, "n = 100: must be greater than"),
        (19.9, 400, None, "beta = 19.9: must be smaller for n = 400"),
        (1.0, 100, "guess", "method = 'guess': must be one of counts, planes, levels"),
    ],
)
def test_bad_input_is_named(beta: float, n: int, method: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        ms.halfin_whitt.chain(beta, n, method=method)
