import numpy as np
import pytest
from tests.diffusion.reference import Row, rows

import manyserver as ms
from manyserver.diffusion.halfin_whitt.convergence.rates import chain_rate
from manyserver.diffusion.halfin_whitt.finite.enumeration import count_generator


@pytest.mark.parametrize("row", rows("spectral gap"), ids=str)
def test_the_gap_is_that_of_the_table(row: Row) -> None:
    result = ms.halfin_whitt.gap(row.beta)
    assert float(result.spectral_gap) == pytest.approx(row.value, abs=row.error, rel=0)
    assert float(result.spectral_gap_error) < 1e-8
    assert float(result.essential_spectrum_bottom) == row.beta**2 / 4


@pytest.mark.parametrize(("beta", "n"), [(0.3, 6), (1.0, 12), (2.0, 25), (4.0, 25)])
def test_the_gap_of_the_queues_is_the_smallest_eigenvalue(beta: float, n: int) -> None:
    transposed, _ = count_generator(n, beta, 2)
    values = -np.linalg.eigvals(transposed.toarray())
    values = values[np.argsort(values.real)]
    assert abs(values[0]) < 1e-10
    assert abs(values[1].imag) < 1e-10
    assert chain_rate(beta, n) == pytest.approx(float(values[1].real), rel=1e-8)


@pytest.mark.parametrize(
    ("beta", "n", "value"),
    [(2.0, 100, 0.6862), (2.0, 1600, 0.6311), (1.5, 400, 0.4427), (1.0, 1600, 0.2161)],
)
def test_the_gap_of_many_queues(beta: float, n: int, value: float) -> None:
    """Against another method: inverse iteration on the whole generator."""
    assert chain_rate(beta, n) == pytest.approx(value, abs=6e-5)


def test_the_gap_of_the_queues_tends_to_that_of_the_diffusion() -> None:
    beta = 2.0
    roots = np.array([16, 23, 32, 45])
    gaps = [chain_rate(beta, int(r * r)) for r in roots]
    extrapolated = np.polyfit(1 / roots, gaps, 3)[-1]
    assert float(ms.halfin_whitt.gap(beta).spectral_gap) == pytest.approx(extrapolated, rel=2e-3)


def test_the_gap_for_small_and_large_beta() -> None:
    assert float(ms.halfin_whitt.gap(0.1).spectral_gap) == pytest.approx(0.01 * 2 / 9, rel=3e-3)
    result = ms.halfin_whitt.gap(5.0, 100)
    assert 0.99 < float(result.spectral_gap) < 1.0
    assert float(result.stopped_rate) < 1e-5
    assert float(result.chain_edge) > float(result.essential_spectrum_bottom)
    assert float(result.chain_gap) > 0


@pytest.mark.parametrize(
    ("beta", "n", "message"),
    [
        (0.0, None, "beta = 0.0: must be"),
        (50.0, None, "beta = 50: must be from 0.1 to 5"),
        (2.0, 4, "n = 4: must be greater than"),
    ],
)
def test_bad_input_is_named(beta: float, n: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ms.halfin_whitt.gap(beta, n)
