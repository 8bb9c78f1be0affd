import os

import pytest


@pytest.fixture(scope="session")
def seed() -> int:
    """Seed of the stochastic tests; another one must pass as well."""
    return int(os.environ.get("MANYSERVER_TEST_SEED", "1"))
