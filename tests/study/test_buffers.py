"""Finite buffers and announced servers in a study."""

import numpy as np
import pytest
from tests.study.conftest import WriteStudy

import manyserver as ms
from manyserver import methods
from manyserver.methods.dispatching import DispatchingProblem
from manyserver.study.cube import build_cube
from manyserver.study.running.compute import compute_unit
from manyserver.study.storage.store import Store
from manyserver.study.study import read_study

POOLS = [
    {"fraction": "1/2", "speed": "2/3", "buffer": 2},
    {"fraction": "1/2", "speed": "4/3", "buffer": 3},
]


def test_a_load_above_one_is_allowed_with_a_buffer(write_study: WriteStudy) -> None:
    changes = {
        "systems.unequal.pools": POOLS,
        "policies": [{"name": "jsq"}, {"name": "jiq", "d": 2}],
        "sweep": {"load": [0.5, 1.5], "n_servers": [4]},
        "methods": {"exact": {}},
        "figures": None,
        "fits": None,
    }
    path = write_study(changes)
    study = read_study(path)
    assert len(study.points) == 4
    units = []
    for name, unit in study.units.items():
        units.append(path.parent / f"{name}.unit")
        compute_unit(unit, Store(path.parent / "points"), units[-1])
    cube = build_cube(study, units)
    assert (cube.status == "ok").all()
    pools = [ms.Pool("1/2", "2/3", 2), ms.Pool("1/2", "4/3", 3)]
    expected = ms.exact(ms.System(1.5, pools, 4), ms.policy("jsq"))
    actual = cube.sel(policy="jsq", load=1.5).squeeze()
    blocked = float(expected.blocking_probability)
    assert float(actual.blocking_probability) == pytest.approx(blocked, rel=1e-12)
    assert float(actual.blocking_probability) > 1 - 1 / 1.5
    assert np.isfinite(cube.messages_per_job).all()


@pytest.mark.parametrize("method", ["exact", "simulation"])
def test_what_turns_out_to_be_unstable_is_a_status(method: str) -> None:
    system = ms.System(0.5, [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")], n_servers=2)
    known, problem = methods.load(method), DispatchingProblem(system, ms.policy("jiq"))
    result = known.compute(problem, known.options_class(), methods.Draws(1))
    assert result.attrs["status"] == "unstable"
    assert "sends pool 0" in result.attrs["reason"]
    assert not result.variables
