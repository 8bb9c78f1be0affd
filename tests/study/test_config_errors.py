"""Each kind of mistake gets one line: the file, the key, the value, and what is allowed."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.study.conftest import mistakes

from manyserver import figures
from manyserver.__main__ import main
from manyserver.plan import Plan
from manyserver.study.models.dispatching.config import Config
from manyserver.study.storage.records import Record
from manyserver.study.storage.store import Store
from manyserver.study.study import read_study
from manyserver.validation import ConfigError

KINDS = figures.kinds("dispatching")
ROUNDED = [{"fraction": 0.5, "speed": 0.666667}, {"fraction": 0.5, "speed": "4/3"}]
SKEWED = [{"fraction": "1/2", "speed": "1/5"}, {"fraction": "1/2", "speed": "9/5"}]

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "typo at the top": (
        {"polices": []},
        "polices = []: unknown key; did you mean 'policies'? Allowed: "
        f"{', '.join(sorted(Config.model_fields))}",
    ),
    "typo inside": (
        {"systems.unequal.pools.0.sped": 1},
        "systems.unequal.pools[0].sped = 1: unknown key; did you mean 'speed'? "
        "Allowed: buffer, fraction, speed",
    ),
    "typo in a method's option": (
        {"methods": {"simulation": {"precison": 0.1}}},
        "methods.simulation.precison = 0.1: unknown key; did you mean 'precision'? "
        "Allowed: control_variates, horizon, max_events, moments, precision, replications",
    ),
    "two lengths of a simulation": (
        {"methods": {"simulation": {"precision": 0.1, "horizon": 100}}},
        "methods.simulation.horizon: cannot be given together with precision",
    ),
    "missing": ({"title": None}, "title: missing; this key is required"),
    "unknown method": (
        {"methods": {"mean_feild": {}}},
        "methods.mean_feild = {}: unknown key; did you mean 'mean_field'? "
        "Allowed: exact, mean_field, refined_mean_field, simulation",
    ),
    "no method": (
        {"methods": {}},
        "methods: must name at least one of exact, mean_field, refined_mean_field, simulation",
    ),
    "unknown system of a policy": (
        {"policies.0.systems": ["unequel"]},
        "policies[0].systems: there is no system 'unequel'; did you mean 'unequal'? "
        "Allowed: unequal",
    ),
    "no method applies": (
        {"methods": {"simulation": {}}},
        "methods: none of them applies to any of sweep.n_servers",
    ),
    "fractions": (
        {"systems.unequal.pools.0.fraction": 0.4},
        "systems.unequal: pools: the fractions 2/5, 1/2 sum to 0.9; must sum to 1",
    ),
    "no number": (
        {"systems.unequal.pools.0.speed": "fast"},
        "systems.unequal.pools[0]: speed = 'fast': must be a positive number, a ratio such as 2/3, "
        "or a formula of axes of the study's own",
    ),
    "too many servers": (
        {"sweep.n_servers": [10, 10**12], "methods": {"simulation": {}}},
        "sweep.n_servers: n_servers = 1000000000000: the method simulation needs 4e+04 GB of "
        "memory; must be at most 400000000 (system 'unequal')",
    ),
    "too many servers whose jobs are followed": (
        {"jobs": {"a": {}}, "sweep.n_servers": [10**8], "methods": {"simulation": {}}},
        "sweep.n_servers: n_servers = 100000000: the method simulation needs 70 GB of memory; "
        "must be at most 22857142 (system 'unequal')",
    ),
    "too many points": (
        {
            "policies": [{"name": "sq", "d": d} for d in range(1, 52)],
            "sweep.arrival_rate": {"start": 0.1, "stop": 0.9, "count": 20_000},
        },
        "sweep: makes 1020000 points; must be at most 1000000",
    ),
    "no room": (
        {"systems.unequal.pools.0.buffer": 0},
        "systems.unequal.pools[0].buffer = 0: must be an integer, at least 1",
    ),
    "unstable system": (
        {"sweep.arrival_rate": [0.5, 1.2]},
        "sweep.arrival_rate: arrival_rate = 1.2: load is 1.2; must be below the capacity of 1 jobs "
        "per unit of time and server (system 'unequal')",
    ),
    "load of one": (
        {"sweep": {"load": [0.5, 1], "n_servers": "limit"}},
        "sweep.load: load = 1.0: must be below 1 (system 'unequal')",
    ),
    "two rates": (
        {"sweep.load": [0.5]},
        "sweep: must have exactly one of the keys arrival_rate and load",
    ),
    "no range": (
        {"sweep.arrival_rate": {"start": 0.1, "stop": 0.5}},
        "sweep.arrival_rate = {'start': 0.1, 'stop': 0.5}: a range must have exactly the keys "
        "start, stop and step, or start, stop and count",
    ),
    "downwards": (
        {"sweep.arrival_rate": [0.5, 0.3]},
        "sweep.arrival_rate = [0.5, 0.3]: must hold at least one number, in increasing order",
    ),
    "broken servers": (
        {"sweep.n_servers": [15]},
        "sweep.n_servers: n_servers = 15: does not split into whole servers by the fractions "
        "1/2, 1/2; must be a multiple of 2 (system 'unequal')",
    ),
    "no server": (
        {"sweep.n_servers": [0]},
        "sweep.n_servers = 0: must be an integer, at least 1, or the word limit",
    ),
    "unit axis": (
        {"unit": ["polcy"]},
        "unit: 'polcy' is not an axis of this study; did you mean 'policy'? Allowed: arrival_rate, "
        "n_servers, policy, system",
    ),
    "unit axis of the other sweep": (
        {"unit": ["load"]},
        "unit: 'load' is not an axis of this study; Allowed: arrival_rate, n_servers, policy, "
        "system",
    ),
    "seed": ({"seed": -1}, "seed = -1: must be greater than or equal to 0"),
    "same label": (
        {"policies.1.label": "scheme1 d=(2,2)"},
        "policies[1].label: 'scheme1 d=(2,2)' occurs twice; must be unique",
    ),
    "unstable policy": (
        {"systems.unequal.pools": SKEWED, "policies": [{"name": "sq", "d": 2}]},
        "policies[0]: arrival_rate = 0.5: policy sq sends pool 0 at least 0.125 jobs per unit of "
        "time and server of the system; must be below their capacity of 0.1 (system 'unequal'); "
        "lower the rates, or say 'unstable: skip' to leave such points empty",
    ),
    "unknown figure": (
        {"figures.0.kind": "sojourn_agianst"},
        "figures[0]: kind = 'sojourn_agianst': unknown figure; did you mean "
        f"'sojourn_against'? Allowed: {', '.join(KINDS)}",
    ),
    "figure of a policy that is not there": (
        {"figures.0.policies": ["sq d=2"]},
        "figures[0].policies = 'sq d=2': is not in this study; did you mean 'hybrid_sq d=2'? "
        "Allowed: hybrid_sq d=2, scheme1 d=(2,2)",
    ),
    "figure of a rate that is not there": (
        {"figures.0.rates": [0.5, 0.6]},
        "figures[0].rates = 0.6: is not in this study; Allowed: 0.5, 0.7",
    ),
    "fit that lacks a method": (
        {"fits": [{"kind": "finite_size"}]},
        "fits[0]: finite_size needs points of the method simulation at finite n_servers",
    ),
    "fit of a method that is not there": (
        {"fits": [{"kind": "finite_size", "method": "simulation"}]},
        "fits[0].method = 'simulation': is not in this study; Allowed: mean_field",
    ),
    "figure twice": (
        {"figures": [{"kind": "sojourn_against"}] * 2},
        "figures[1].name: 'sojourn_against' occurs twice; must be unique",
    ),
    "figure outside its folder": (
        {"figures.0.name": "../x"},
        "figures[0].name = '../x': a name must begin with a letter or a digit (A-Z, a-z, 0-9), "
        "hold no others but _ . and -, have at most 100 characters, and not end in twenty "
        "repetitions",
    ),
}


def test_mistakes_in_several_figures(write_study: Any) -> None:
    figure = {"kind": "sojourn_against", "policies": ["none"]}
    figures = [{**figure, "name": name} for name in ("a", "b")]
    told = [line.split(" = ")[0] for line in mistakes(write_study({"figures": figures}))]
    assert told == ["figures[0].policies", "figures[1].policies"]


@pytest.mark.parametrize("changes,line", MISTAKES.values(), ids=MISTAKES)
def test_one_line_for_each_mistake(write_study: Any, changes: dict[str, Any], line: str) -> None:
    assert mistakes(write_study(changes)) == (line,)


POLICY_MISTAKES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown policy": ({"name": "shceme1", "d": [2, 2]}, ["'shceme1'", "scheme1"]),
    "wrong number of d's": ({"name": "scheme1", "d": [2, 2, 2]}, ["d = ", "2, 2, 2", "2"]),
    "unknown parameter": ({"name": "sq", "e": 2}, ["e = 2", "d"]),
    "missing parameter": ({"name": "sq"}, ["d"]),
    "d of zero": ({"name": "sq", "d": 0}, ["d = 0"]),
}


@pytest.mark.parametrize("policy,words", POLICY_MISTAKES.values(), ids=POLICY_MISTAKES)
def test_policy_mistakes(write_study: Any, policy: dict[str, Any], words: list[str]) -> None:
    (line,) = mistakes(write_study({"policies": [policy]}))
    assert line.startswith("policies[0]: ")
    assert [word for word in words if word not in line] == []


def test_more_choices_than_servers(write_study: Any) -> None:
    path = write_study(
        {
            "policies": [{"name": "scheme1", "d": [3, 2]}],
            "sweep.n_servers": [4],
            "methods": {"simulation": {}},
        }
    )
    assert mistakes(path) == (
        "policies[0]: d = 3: must be at most 2, the number of servers in pool 0, unless "
        "replacement is true (system 'unequal')",
    )


def test_all_mistakes_of_all_studies_at_once(write_study: Any) -> None:
    first = write_study({"seed": -1, "title": None}, name="a")
    second = write_study({"sweep.arrival_rate": [2]}, name="b")
    with pytest.raises(ConfigError) as caught:
        Plan(first.parents[1], {})
    files = [re.split(": |, ", line)[0] for line in caught.value.lines]
    assert files == [str(first), str(first), str(second)]


def test_unknown_study(write_study: Any) -> None:
    folder = write_study().parents[1]
    with pytest.raises(ConfigError) as caught:
        Plan(folder, {"studies": "smal"})
    assert caught.value.lines == (
        "command line: studies: there is no study 'smal'; did you mean 'small'? Allowed: small",
    )


def test_unknown_key_of_the_workflow(write_study: Any) -> None:
    folder = write_study().parents[1]
    with pytest.raises(ConfigError) as caught:
        Plan(folder, {"study": "small"})
    assert caught.value.lines == (
        "command line: study = 'small': unknown key; did you mean 'studies'? "
        "Allowed: allow_failures, on_request, studies",
    )


def test_studies_on_request_are_built_when_named(write_study: Any) -> None:
    folder = write_study().parents[1]
    write_study(name="large")
    on_request = ["large", "lost"]
    plan = Plan(folder, {"on_request": on_request})
    assert plan.names == ("small",)
    assert plan.notes == [f"{folder / 'config.yaml'}: on_request: there is no study 'lost'"]
    for studies, names in {"all": ("large", "small"), "large": ("large",)}.items():
        assert Plan(folder, {"on_request": on_request, "studies": studies}).names == names


def test_the_command_prints_the_lines_alone(write_study: Any) -> None:
    path = write_study({"seed": -1})
    result = CliRunner().invoke(main, ["--config", str(path.parents[1]), "check"])
    assert result.exit_code == 1
    assert result.output == f"{path}, line 52: seed = -1: must be greater than or equal to 0\n"


def test_the_command_tells_sizes_and_snapped_floats(write_study: Any) -> None:
    path = write_study({"systems.unequal.pools": ROUNDED})
    arguments = ["--config", str(path.parents[1]), "check", "small", "--results", str(path.parent)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    note, size = result.output.splitlines()
    assert note == f"{path}: speed = 0.666667 is read as 2/3"
    told = r"small: 4 points in 2 units; 4 to compute: some \d+ s of CPU time, 1 GB for each job"
    assert re.fullmatch(told, size)


def test_a_study_that_takes_years_is_told(write_study: Any, tmp_path: Path) -> None:
    path = write_study({"methods": {"mean_field": {}}})
    store = Store(tmp_path / "points")
    for point in read_study(path).points:
        store.append(point, Record({**point.parameters, "seed": 5}, "code", {}), seconds=1e9)
    arguments = ["--config", str(path.parents[1]), "check", "--results", str(tmp_path)]
    assert "some 1.3e+02 years of CPU time" in CliRunner().invoke(main, arguments).output
