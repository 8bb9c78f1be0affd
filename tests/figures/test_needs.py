"""Every kind of figure and fit on studies that lack something: refused at once, or it succeeds."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from manyserver import figures, fits
from manyserver.plan import Plan
from manyserver.study.cube import build_cube
from manyserver.study.running.compute import compute_unit
from manyserver.study.storage.store import Store
from manyserver.validation import ConfigError

ONE_POOL = {"one": {"pools": [{"fraction": 1, "speed": 1}]}}
SQ = [{"name": "sq", "d": 2}]
EXPONENTIAL: dict[str, Any] = {}
ERLANG = {"sizes": {"name": "erlang", "shape": 2}, "discipline": "fcfs"}
SIMULATION = {"simulation": {"horizon": 200}}
EXACT = {"exact": {"max_states": 1000, "tolerance": 0.001}}
SERVERS = [2, 3, 4]


def dispatching(methods: dict[str, Any], n_servers: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "systems": ONE_POOL,
        "policies": SQ,
        "sweep": {"load": [0.5, 0.6], "n_servers": n_servers},
        "methods": methods,
        **more,
    }


def regime(methods: dict[str, Any], n_servers: list[Any], **sweep: Any) -> dict[str, Any]:
    return {
        "model": "halfin_whitt",
        "sweep": {"beta": [1, 1.5], "n_servers": n_servers, **sweep},
        "methods": methods,
    }


MOMENTS = {"simulation": {"horizon": 200, "moments": True}, "exact": {"moments": True}}
STUDIES: dict[str, dict[str, Any]] = {
    "limit": dispatching({"mean_field": {}}, ["limit"]),
    "simulation": dispatching(SIMULATION, SERVERS),
    "one_size": dispatching(SIMULATION, [4]),
    "both": dispatching({"mean_field": {}, **SIMULATION}, [*SERVERS, "limit"]),
    "exact": dispatching(EXACT, SERVERS),
    "refined": dispatching({"refined_mean_field": {}}, SERVERS),
    "exact_and_limit": dispatching({"mean_field": {}, **EXACT}, [*SERVERS, "limit"]),
    "moments": dispatching(
        {**MOMENTS, "refined_mean_field": {}, "mean_field": {}}, [*SERVERS, "limit"]
    ),
    "no_d": dispatching(SIMULATION, [4], policies=[{"name": "jsq"}, {"name": "random"}]),
    "pull": dispatching(
        {**SIMULATION, "mean_field": {}}, [4, "limit"], policies=[{"name": "pull", "routers": 1}]
    ),
    "unstable": dispatching(
        {"mean_field": {}, **SIMULATION},
        [4, "limit"],
        systems={"two": {"pools": [{"fraction": "1/2", "speed": s} for s in ("1/5", "9/5")]}},
        policies=[{"name": "random", "probabilities": [0.9, 0.1]}],
        unstable="skip",
    ),
    "jobs": dispatching(
        {"mean_field": {}, **SIMULATION}, [4, "limit"], jobs={"exp": EXPONENTIAL, "erl": ERLANG}
    ),
    "jobs_simulated": dispatching(SIMULATION, SERVERS, jobs={"erl": ERLANG}),
    "jobs_in_limit": dispatching({"mean_field": {}}, ["limit"], jobs={"exp": EXPONENTIAL}),
    "jobs_without_law": dispatching(
        {"mean_field": {}}, ["limit"], jobs={"erl": {**ERLANG, "discipline": "ps"}}
    ),
    "chain": regime({"chain": {}}, [9, 16, 25]),
    "no_distances": regime({"chain": {"distances": False}}, [9, 16]),
    "diffusion": regime({"diffusion": {}}, ["limit"]),
    "chain_and_diffusion": regime(
        {"chain": {"joint": True}, "diffusion": {"joint": True}}, [9, 16, 25, "limit"]
    ),
    "chain_simulation": regime(
        {"chain_simulation": {"horizon": 2000}, "diffusion": {}}, [9, "limit"]
    ),
    "fluid": regime({"fluid": {}}, ["limit"]),
    "relaxation": regime({"relaxation": {}}, [400, "limit"]),
    "too_small": regime({"relaxation": {}}, [9]),
}
VARIANTS: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("figures", "sojourn_against"): [
        {"x": "n_servers", "curves": "load", "deviation": deviation} for deviation in (True, False)
    ],
    ("figures", "convergence"): [{"show": ["bias"]}, {"show": ["fluctuation"]}],
    ("figures", "decay"): [{"show": ["blocking_probability"]}, {"show": ["waiting_probability"]}],
    ("figures", "halfin_whitt_convergence"): [
        {"show": [p]} for p in ("mean", "idle", "third", "bound")
    ],
    ("fits", "finite_size"): [{"method": "exact"}, {"method": "mean_field"}],
    ("fits", "fluctuation"): [{"method": "exact"}],
    ("fits", "distance"): [{"limit": "simulation"}],
    ("fits", "propagation_of_chaos"): [{"method": "exact"}],
    ("fits", "decay"): [{"quantities": ["sojourn_mean"]}, {"methods": ["exact"]}],
    ("fits", "targets"): [{"method": "mean_field"}],
}
REGISTRIES = {"figures": figures, "fits": fits}
Check = Callable[[str, dict[str, Any]], Plan]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Return a function that checks a study with further keys."""
    folder = tmp_path_factory.mktemp("config")

    def checked(name: str, more: dict[str, Any]) -> Plan:
        path = folder / "studies" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        # JSON is YAML.
        path.write_text(json.dumps({"title": "Small", **STUDIES[name], **more}))
        return Plan(folder, {"studies": [name]})

    return checked


@pytest.fixture(scope="module", params=STUDIES)
def built(
    request: pytest.FixtureRequest, check: Check, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, xr.Dataset]:
    """Return every study with its cube."""
    folder = tmp_path_factory.mktemp("results")
    study = check(request.param, {}).study(request.param)
    files = [folder / name for name in study.units]
    for file, unit in zip(files, study.units.values(), strict=True):
        state = compute_unit(unit, Store(folder / "points"), file, say=lambda line: None)
        assert not state.failed
    return request.param, build_cube(study, files)


def asked(registry: str, study: str) -> Iterator[dict[str, Any]]:
    model = STUDIES[study].get("model", "dispatching")
    for kind in REGISTRIES[registry].kinds(model):
        for options in ({}, *VARIANTS.get((registry, kind), [])):
            yield {"kind": kind, **options}


def refusal(check: Check, study: str, registry: str, item: dict[str, Any]) -> str:
    try:
        check(study, {registry: [item]})
    except ConfigError as error:
        return str(error)
    return ""


def test_a_figure_is_refused_or_drawn(
    check: Check, built: tuple[str, xr.Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Layouts take three quarters of the time, and are tested for every kind elsewhere.
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)
    study, cube = built
    for item in asked("figures", study):
        told = refusal(check, study, "figures", item)
        if told:
            assert f"/{study}.yaml, line 1: figures[0]" in told
            continue
        options = {key: value for key, value in item.items() if key != "kind"}
        figure = figures.draw(item["kind"], cube, options)
        assert drawn(figure.axes), item
        plt.close(figure)


def drawn(all_axes: list[Any]) -> bool:
    """Whether there are any data, or cells of a table, in a figure."""
    return any(
        axes.patches or axes.collections or any(np.size(line.get_xdata()) for line in axes.lines)
        for axes in all_axes
    )


def test_a_fit_is_refused_or_has_rows(check: Check, built: tuple[str, xr.Dataset]) -> None:
    study, cube = built
    for item in asked("fits", study):
        told = refusal(check, study, "fits", item)
        if told:
            assert f"/{study}.yaml, line 1: fits[0]" in told
            continue
        options = {key: value for key, value in item.items() if key != "kind"}
        assert len(fits.compute(item["kind"], cube, options)), item


@pytest.mark.parametrize("registry", REGISTRIES)
def test_every_kind_is_refused_and_accepted_somewhere(check: Check, registry: str) -> None:
    answers: dict[str, set[bool]] = {}
    for study in STUDIES:
        for item in asked(registry, study):
            told = refusal(check, study, registry, item)
            answers.setdefault(item["kind"], set()).add(bool(told))
    assert answers == {kind: {True, False} for kind in REGISTRIES[registry].kinds()}


@pytest.mark.parametrize(
    ("study", "registry", "item", "message"),
    [
        ("both", "figures", {"kind": "percentiles"}, "percentiles needs the key jobs"),
        (
            "limit",
            "figures",
            {"kind": "convergence"},
            "convergence needs points of the method simulation or exact",
        ),
        (
            "simulation",
            "figures",
            {"kind": "sojourn_against", "x": "n_servers", "curves": "load", "deviation": True},
            "sojourn_against needs deviation: false, or points of the method mean_field",
        ),
        (
            "unstable",
            "figures",
            {"kind": "map"},
            "map needs points of the method mean_field or simulation; there are none but "
            "unstable ones",
        ),
        (
            "both",
            "fits",
            {"kind": "propagation_of_chaos"},
            "propagation_of_chaos needs points of the method simulation with moments: true "
            "at finite n_servers",
        ),
        (
            "both",
            "fits",
            {"kind": "finite_size", "method": "mean_field"},
            "finite_size needs points of the method mean_field at finite n_servers",
        ),
    ],
)
def test_the_reason_says_what_is_needed(
    check: Check, study: str, registry: str, item: dict[str, Any], message: str
) -> None:
    told = refusal(check, study, registry, item)
    assert told.endswith(f"/studies/{study}.yaml, line 1: {registry}[0]: {message}")


def test_all_that_a_study_lacks_is_told_at_once(check: Check) -> None:
    items = [{"kind": "percentiles"}, {"kind": "convergence"}]
    with pytest.raises(ConfigError) as caught:
        check("limit", {"figures": items})
    assert len(caught.value.lines) == 2
