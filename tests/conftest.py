"""What all tests share."""

import gc
import os
from pathlib import Path

import pytest

from manyserver.study.running.compute import KERNELS, kernel_cache

ROOT = Path(__file__).parents[1]
LONGEST = ("tests/workflow/", "tests/figures/", "tests/simulation/", "tests/study/")
"""Where the files are that take longest."""

# Where the runs of the workflow that tests start keep their kernels, which are compiled once so.
# numba reads it when it is imported.
os.environ.setdefault("NUMBA_CACHE_DIR", str(kernel_cache("simulation", ROOT / KERNELS)))
# As the commands do.
gc.set_threshold(50_000, 20, 100)


def pytest_configure(config: pytest.Config) -> None:
    """Let xdist take the files as they come, not first those with most tests."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no core waits for the last of them."""

    def place(item: pytest.Item) -> int:
        found = [i for i, name in enumerate(LONGEST) if item.nodeid.startswith(name)]
        return found[0] if found else len(LONGEST)

    items.sort(key=place)
