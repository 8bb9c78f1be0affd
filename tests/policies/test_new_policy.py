"""A policy written as the documentation says works with every method, unchanged."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

import manyserver as ms

PAGE = Path(__file__).parents[2] / "docs" / "adding.md"
SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))


@pytest.fixture
def example() -> Any:
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {"__name__": "fast_first"}
    exec(block[1], names)
    return names["FastFirst"]


def test_the_example_of_the_documentation(example: Any) -> None:
    """Simulation against the refined mean field, within 4 standard errors (false alarm 6e-5)."""
    policy = example(d=3, threshold=2)
    pools = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
    system = ms.System(0.7, pools, n_servers=200)
    refined = ms.refine(system, policy)
    simulated = ms.simulate(system, policy, seed=SEED, precision=0.005)
    error = float(simulated.sojourn_mean - refined.sojourn_mean_refined)
    # What the refinement leaves out is of the order of the square of its correction.
    left_out = float(refined.sojourn_mean_correction / 200) ** 2
    assert abs(error) < 2 * float(simulated.sojourn_mean_half_width) + left_out


def test_its_special_case_is_known(example: Any) -> None:
    """Without a threshold it is SQ(d) with ties to the fastest."""
    system = ms.System(0.7, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
    here = ms.fixed_point(system, example(d=3, threshold=1))
    there = ms.fixed_point(system, ms.policy("sq", d=3, ties="fastest"))
    assert here.sojourn_mean == there.sojourn_mean
