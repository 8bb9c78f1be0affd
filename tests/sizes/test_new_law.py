"""A law written as the documentation says works with every method, unchanged."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import manyserver as ms
from manyserver.sizes import SizeLaw

PAGE = Path(__file__).parents[2] / "docs" / "adding.md"
SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))


@pytest.fixture
def uniform() -> SizeLaw:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, type[SizeLaw]] = {"__name__": "uniform"}  # type: ignore[dict-item]
    exec(next(block for block in blocks if "class Uniform" in block), names)
    return names["Uniform"]()


def test_the_example_of_the_documentation(uniform: SizeLaw) -> None:
    """M/G/1 queues under both disciplines, within 5 standard errors (false alarm 2e-5)."""
    system = ms.System(0.6, [ms.Pool(1, 1)], n_servers=100)
    for discipline, wait in {"fcfs": 0.6 * (1 + 1 / 3) / 0.8, "ps": 1.5}.items():
        result = ms.simulate(
            system,
            ms.policy("random"),
            sizes=uniform,
            discipline=discipline,
            seed=SEED,
            horizon=300.0,
        )
        error = float(result.sojourn_mean_half_width) / 2
        assert abs(float(result.sojourn_mean) - 1 - wait) < 5 * error


def test_what_follows_from_its_distribution(uniform: SizeLaw) -> None:
    part = np.array([0.0, 0.25, 0.9])
    assert uniform.quantile(part) == pytest.approx(2 * part)
    assert uniform.residual_cdf([0.5, 1.0]) == pytest.approx([7 / 16, 3 / 4])
    assert uniform.variance == pytest.approx(1 / 3)
