import math
from functools import cache

import numpy as np
import pytest
from tests.diffusion.reference import Row, chain, rows

import manyserver as ms

distances = cache(ms.halfin_whitt.distances)
NAMES = {"KS(Q1)": "q1_kolmogorov", "KS(Q2)": "q2_kolmogorov"}


@pytest.mark.parametrize("row", rows("KS(", sizes=(100, 1600)), ids=str)
def test_kolmogorov_distances_are_those_of_the_table(row: Row) -> None:
    distance = float(distances(row.beta, row.n)[NAMES[row.quantity]])
    assert distance == pytest.approx(row.value, abs=row.error, rel=0)


@pytest.mark.parametrize(("beta", "n"), [(1.0, 49), (0.5, 900)])
def test_wasserstein_distances_are_areas(beta: float, n: int) -> None:
    law, queues = ms.halfin_whitt.distances(beta, n), chain(beta, n)
    root = math.sqrt(n)
    points = np.linspace(-beta - 8, 0, 40_001)
    middle = (points[1:] + points[:-1]) / 2
    limit = ms.halfin_whitt.stationary(beta, y1=points[::20])
    cdf = np.interp(middle, points[::20], limit.y1_cdf)
    below = np.append(0.0, np.cumsum(queues.q1_probability))
    at = np.searchsorted((queues.q1 - n) / root, middle, side="right")
    area = float(np.abs(below[at] - cdf).sum() * (points[1] - points[0]))
    assert float(law.q1_wasserstein) == pytest.approx(area, rel=2e-3)
    # No smaller than the difference of the means, and about that.
    means = float(limit.y2_mean - queues.q2_mean / root)
    assert means - 1e-9 <= float(law.q2_wasserstein) <= 1.01 * means
