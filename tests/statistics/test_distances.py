import numpy as np
import pytest

from manyserver.statistics.distances import kolmogorov, total_variation, wasserstein


def tail(load: float, levels: int = 400) -> np.ndarray:
    return np.asarray(load ** np.arange(levels))


def test_geometric_laws() -> None:
    """Means 1 and 3 in the same order, so that Wasserstein-1 is the difference of the means."""
    assert wasserstein(tail(0.5), tail(0.75))[0] == pytest.approx(2.0)
    assert kolmogorov(tail(0.5), tail(0.75))[0] == pytest.approx(0.75**2 - 0.5**2)


def test_laws_of_different_length_and_the_other_way_round() -> None:
    for distance in (wasserstein, kolmogorov):
        assert distance([1, 0.5], [1, 0.5, 0.25])[0] == 0.25
        assert distance([1, 0.5, 0.25], [1, 0.5])[0] == 0.25
        assert distance([1, 0.5], [1, 0.5])[0] == 0.0


def test_errors_are_the_largest_that_could_be() -> None:
    errors = [0.0, 0.01, 0.03]
    assert wasserstein([1, 0.5, 0.25], [1], errors)[1] == pytest.approx(0.04)
    assert kolmogorov([1, 0.5, 0.25], [1], errors)[1] == 0.03
    assert total_variation([[0.1, -0.1]], [[0.02, 0.04]]) == pytest.approx((0.1, 0.03))
