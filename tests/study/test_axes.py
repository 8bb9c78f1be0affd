"""Axes of a study's own: values that stand for names in systems, policies and job sizes."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from tests.study.conftest import mistakes
from tests.study.test_cube import built

import manyserver as ms
from manyserver.study.config.formulas import Number, evaluated, is_formula
from manyserver.study.cube import write_cube
from manyserver.study.study import read_study

POOLS = [{"fraction": "1 - f", "speed": 1}, {"fraction": "f", "speed": "speed_ratio"}]
SWEPT: dict[str, Any] = {
    "systems": {"fleet": {"pools": POOLS, "capacity": 1}},
    "policies": [{"name": "scheme1", "d": ["d", "d"]}, {"name": "jsq", "label": "JSQ"}],
    "sweep": {
        "load": [0.7, 0.9],
        "n_servers": "limit",
        "speed_ratio": {"values": [1, "3/2", 3], "symbol": "r", "title": "ratio of the speeds"},
        "f": ["1/3", "1/2"],
        "d": {"start": 1, "stop": 2},
    },
    "figures": [],
    "fits": [],
}


def ratio_system(load: float, ratio: Fraction, fraction: Fraction) -> ms.System:
    capacity = 1 - fraction + fraction * ratio
    pools = [ms.Pool(1 - fraction, 1 / capacity), ms.Pool(fraction, ratio / capacity)]
    return ms.System(load, pools)


def test_every_cell_is_what_its_numbers_say(write_study: Any, tmp_path: Path) -> None:
    cube = built(read_study(write_study(SWEPT)), tmp_path)
    assert cube.sojourn_mean.dims == (
        *("method_name", "system", "policy", "speed_ratio", "f", "d", "n_servers", "load"),
    )
    assert set(cube.status.values.flat) == {"ok"}
    for ratio in (Fraction(1), Fraction(3, 2), Fraction(3)):
        for fraction in (Fraction(1, 3), Fraction(1, 2)):
            for d in (1, 2):
                system = ratio_system(0.9, ratio, fraction)
                alone = ms.fixed_point(system, ms.policy("scheme1", d=(d, d)))
                where: Any = {
                    "speed_ratio": float(ratio),
                    "f": float(fraction),
                    "d": d,
                    "load": 0.9,
                }
                here = cube.sel(policy="scheme1 d=(d,d)", **where).squeeze()
                assert here.sojourn_mean.item() == pytest.approx(alone.sojourn_mean.item(), 1e-12)
                assert here.pool_speed.values == pytest.approx(system.speeds, 1e-15)
                assert f'"d":[{d},{d}]' in here.policy_parameters.item()
    assert cube.speed_ratio.attrs == {
        "units": "1",
        "symbol": "r",
        "long_name": "ratio of the speeds",
        "exact": "1, 3/2, 3",
    }
    write_cube(cube, tmp_path / "cube.nc")
    with xr.open_dataset(tmp_path / "cube.nc") as read:
        wanted = cube.sojourn_mean.sel(speed_ratio=3, d=2).values
        assert read.sojourn_mean.sel(speed_ratio=3, d=2).values.tolist() == wanted.tolist()


def test_what_does_not_depend_on_an_axis_is_computed_once(write_study: Any, tmp_path: Path) -> None:
    study = read_study(write_study(SWEPT))
    # At ratio 1 the two fractions are two systems, as their pools are.
    assert len(study.layout.points) == 2 * 3 * 2 * 2 * 2
    assert len(study.points) == 3 * 2 * 2 * 2 + 3 * 2 * 2
    cube = built(study, tmp_path)
    jsq = cube.sojourn_mean.sel(policy="JSQ")
    assert (jsq.sel(d=1) == jsq.sel(d=2)).all()
    plain = {
        "systems": {"a": {"pools": [{"fraction": 1, "speed": 1}]}},
        "policies": [{"name": "jsq"}],
    }
    other = {**SWEPT, **plain, "sweep": {"load": [0.7], "n_servers": "limit"}}
    (point,) = read_study(write_study(other, "other")).points
    with_f = {"systems": {"b": {"pools": [{"fraction": "f", "speed": "d"}], "capacity": 1}}}
    swept = {**other, **with_f, "sweep": {**other["sweep"], "f": 1, "d": [1, 2]}}
    assert {p.id for p in read_study(write_study(swept, "third")).points} == {point.id}


def test_axes_that_go_together(write_study: Any, tmp_path: Path) -> None:
    changes = {
        "policies": [{"name": "sq", "d": "d"}],
        "sweep": {
            "load": [0.3],
            "n_servers": [2, 4, "limit"],
            "d": {"values": [1, 2, 3], "along": "n_servers"},
        },
        "methods": {"exact": {}, "mean_field": {}},
        "figures": [],
        "fits": [],
    }
    cube = built(read_study(write_study(changes)), tmp_path)
    assert cube.d.dims == ("n_servers",)
    assert "d" not in cube.sojourn_mean.dims
    for n, d in ((2, 1), (4, 2)):
        system = ms.System(0.3, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")], n)
        alone = ms.exact(system, ms.policy("sq", d=d)).sojourn_mean.item()
        here = cube.sojourn_mean.sel(method_name="exact", n_servers=n).item()
        assert here == pytest.approx(alone, 1e-12)
    limit = cube.sel(method_name="mean_field", n_servers=math.inf)
    assert limit.d.item() == 3
    assert '"d":3' in limit.policy_parameters.item()


def test_what_cannot_be_has_a_status(write_study: Any, tmp_path: Path) -> None:
    sweep = {**SWEPT["sweep"], "n_servers": [4, "limit"], "d": [1, 3], "load": [0.4]}
    changes = {**SWEPT, "sweep": sweep, "methods": {"mean_field": {}, "exact": {}}}
    cube = built(read_study(write_study(changes)), tmp_path)
    here = cube.sel(method_name="exact", n_servers=4, speed_ratio=3, policy="scheme1 d=(d,d)")
    assert here.status.sel(f=1 / 3).values.flatten().tolist() == ["impossible"] * 2
    assert "must be a multiple of 3" in here.reason.sel(f=1 / 3).values.flat[0]
    assert here.status.sel(f=0.5).values.flatten().tolist() == ["ok", "impossible"]
    assert "must be at most 2" in here.reason.sel(f=0.5, d=3).item()
    in_limit = cube.sel(method_name="mean_field", n_servers=math.inf)
    assert set(in_limit.status.values.flat) == {"ok"}


def test_sizes_buffers_and_flags_are_axes(write_study: Any, tmp_path: Path) -> None:
    changes = {
        "systems": {"one": {"pools": [{"fraction": 1, "speed": 1, "buffer": "room + 1"}]}},
        "policies": [{"name": "sq", "d": 2, "replacement": "again"}],
        "sweep": {"load": [0.5], "n_servers": [2], "room": [1, 2], "again": [False, True]},
        "methods": {"exact": {}},
        "figures": [],
        "fits": [],
    }
    cube = built(read_study(write_study(changes)), tmp_path).squeeze()
    assert cube.pool_buffer.values.tolist() == [2, 3]
    assert cube.again.values.tolist() == [0, 1]
    for room in (1, 2):
        for again in (False, True):
            policy = ms.policy("sq", d=2, replacement=again)
            alone = ms.exact(ms.System(0.5, [ms.Pool(1, 1, room + 1)], 2), policy)
            here = cube.sojourn_mean.sel(room=room, again=float(again)).item()
            assert here == pytest.approx(alone.sojourn_mean.item(), 1e-12)
    laws = {
        **changes,
        "jobs": {"x": {"sizes": {"name": "hyperexponential", "scv": "c/2"}, "discipline": "fcfs"}},
        "systems": {"one": {"pools": [{"fraction": 1, "speed": 1}]}},
        "policies": [{"name": "random"}],
        "sweep": {"load": [0.5], "n_servers": "limit", "c": [4, 8]},
        "methods": {"mean_field": {}},
    }
    cube = built(read_study(write_study(laws, "laws")), tmp_path / "laws").squeeze()
    assert cube.size_scv.values == pytest.approx([2, 4])
    # Pollaczek-Khinchine.
    assert cube.sojourn_mean.values == pytest.approx([2.5, 3.5], rel=1e-9)


def test_formulas_are_arithmetic_and_nothing_else() -> None:
    at: dict[str, Number] = {"d": Fraction(3), "r": Fraction(3, 2), "yes": True}
    assert evaluated("-(d - 1)*2/r + 0.1", at) == Fraction(-8, 3) + Fraction(1, 10)
    assert evaluated("yes", at) is True
    for text in (
        "__import__('os')",
        "d.real",
        "d if r else 1",
        "d**9",
        "[d]",
        "1e999*d",
        "d and r",
    ):
        assert not is_formula(text)
        assert evaluated(text, at) == text
    with pytest.raises(ValueError, match=r"divides by zero \(d = 3\)"):
        evaluated("1/(d - 3)", at)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "used nowhere": (
        {"sweep.laod": [0.5]},
        "sweep.laod: is no key of sweep, and an axis that no system, policy or jobs use; did you "
        "mean 'load'? Allowed: arrival_rate, load, n_servers",
    ),
    "name of a variable": (
        {"sweep.sojourn_mean": [1, 2]},
        "sweep.sojourn_mean: is a name of the cube's own; choose another name for this axis",
    ),
    "no number": (
        {"sweep.d": ["x"], "policies.1.d": "d"},
        "sweep.d.values = 'x': must be a number greater than zero, or a ratio such as 2/3",
    ),
    "twice": (
        {"sweep.d": [1, 1.0], "policies.1.d": "d"},
        "sweep.d.values = [1, 1]: must hold at least one number, each once",
    ),
    "unknown key": (
        {"sweep.d": {"values": [1], "symbl": "d"}, "policies.1.d": "d"},
        "sweep.d.symbl = 'd': unknown key; did you mean 'symbol'? Allowed: along, symbol, title, "
        "values",
    ),
    "along nothing": (
        {"sweep.d": {"values": [1], "along": "N"}, "policies.1.d": "d"},
        "sweep.d.along: there is no axis 'N'; Allowed: arrival_rate, n_servers",
    ),
    "along another length": (
        {"sweep.d": {"values": [1], "along": "arrival_rate"}, "policies.1.d": "d"},
        "sweep.d.values: has 1 values; must have 2, as arrival_rate has",
    ),
    "other name in a formula": (
        {"sweep.d": [1, 2], "policies.1.d": "d + g"},
        "policies[1]: 'd + g': there is no axis 'g'; Allowed: d (d = 1)",
    ),
    "out of range": (
        {"sweep.f": ["1/2", 1], "systems.unequal.pools.0.fraction": "1 - f"},
        "systems.unequal.pools[0]: fraction = 0: must be a positive number or a ratio such as "
        "'2/3' (f = 1)",
    ),
    "no whole number": (
        {"sweep.d": [1, 1.5], "policies.1.d": "d"},
        "policies[1]: d = 1.5: must be an integer >= 1 and <= 100000 (d = 3/2)",
    ),
    "possible nowhere": (
        {
            "sweep": {"load": [0.5], "n_servers": [3], "d": [1, 2]},
            "systems.unequal.pools.0.speed": "d",
        },
        "sweep.n_servers: n_servers = 3: does not split into whole servers by the fractions 1/2, "
        "1/2; must be a multiple of 2 (system 'unequal')",
    ),
}


@pytest.mark.parametrize("changes,line", WRONG.values(), ids=WRONG)
def test_one_line_for_each_mistake(write_study: Any, changes: dict[str, Any], line: str) -> None:
    assert mistakes(write_study(changes)) == (line,)


def test_the_cube_tells_which_loads_are_stable(write_study: Any, tmp_path: Path) -> None:
    changes = {
        "systems": {"fleet": {"pools": POOLS, "capacity": 1}},
        "policies": [{"name": "sq", "d": "d"}, {"name": "jsq"}, {"name": "jiq"}],
        "sweep": {
            "load": [0.1],
            "n_servers": "limit",
            "speed_ratio": [1, 9],
            "f": ["1/2"],
            "d": [1, 2, 3],
        },
        "figures": [],
        "fits": [],
    }
    cube = built(read_study(write_study(changes)), tmp_path)
    limit = cube.stability_limit.squeeze()
    assert limit.dims == ("policy", "speed_ratio", "d")
    # Slow servers have the speed 1/5: an arrival looks at d of them with probability 2**-d.
    assert limit.sel(policy="sq d=d", speed_ratio=9).values == pytest.approx([0.2, 0.4, 0.8])
    assert (limit.sel(policy="sq d=d", speed_ratio=1) == 1).all()
    assert (limit.sel(policy="jsq") == 1).all()
    assert limit.sel(policy="jiq").isnull().all()
