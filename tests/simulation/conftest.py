import os
from typing import Any

import pytest

from manyserver import defaults
from manyserver.model import System
from manyserver.simulation import checked_settings
from manyserver.simulation.settings import Settings


def settings_of(system: System, **given: Any) -> Settings:
    """Settings of a simulation, as by default but for what is given."""
    usual: dict[str, Any] = {
        **dict.fromkeys(("precision", "horizon", "threads")),
        "seed": 1,
        "replications": defaults.REPLICATIONS,
        "max_events": defaults.MAX_EVENTS,
        "control_variates": defaults.CONTROL_VARIATES,
        "moments": defaults.MOMENTS,
        "follows_jobs": False,
    }
    return checked_settings(system, **usual | given)


@pytest.fixture(scope="session")
def seed() -> int:
    """Seed of the stochastic tests; another one must pass as well."""
    return int(os.environ.get("MANYSERVER_TEST_SEED", "1"))
