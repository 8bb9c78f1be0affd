"""Job sizes and disciplines as an axis of a study."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from tests.study.conftest import WriteStudy, mistakes

import manyserver as ms
from manyserver import figures, fits
from manyserver.__main__ import main
from manyserver.study.cube import build_cube
from manyserver.study.running.compute import compute_unit
from manyserver.study.storage.store import Store
from manyserver.study.study import Study, read_study

SIZES = "seconds,user\n1,a\n2,b\n9,c\n"
MEASURED = {"name": "empirical", "file": "../data/sizes.csv", "column": "seconds", "mean": 1}
JOBS = {
    "shared": {},
    "in order": {"discipline": "fcfs"},
    "mixed": {"sizes": {"name": "hyperexponential", "scv": 4}, "discipline": "fcfs"},
    "measured": {"sizes": MEASURED, "discipline": "fcfs"},
}
STUDY: dict[str, Any] = {
    "jobs": JOBS,
    "sweep": {"load": [0.5], "n_servers": [4, "limit"]},
    "methods": {"mean_field": {}, "simulation": {"horizon": 20, "replications": 2}},
    "policies": [{"name": "scheme1", "d": [2, 2]}],
    "figures": None,
    "fits": None,
}
SWEEP = {"load": [0.5], "n_servers": [4]}


@pytest.fixture
def write(write_study: WriteStudy, tmp_path: Path) -> WriteStudy:
    """Write the study, with a file of measured sizes beside it."""
    data = tmp_path / "config" / "data"
    data.mkdir(parents=True)
    (data / "sizes.csv").write_text(SIZES)

    def one(changes: dict[str, Any] | None = None, name: str = "small") -> Path:
        content = {**deepcopy(STUDY), **(changes or {})}
        if content["jobs"] is None:
            del content["jobs"]
        return write_study(content, name)

    return one


def built(study: Study, folder: Path) -> xr.Dataset:
    files = []
    for name, unit in study.units.items():
        files.append(folder / f"{name}.jsonl")
        compute_unit(unit, Store(folder / "points"), files[-1], say=lambda line: None)
    return build_cube(study, files)


def ids(study: Study) -> dict[tuple[Any, ...], str]:
    return {(p.method, p.labels.get("jobs"), p.labels["n_servers"]): p.id for p in study.points}


def test_replications_are_reused(write: WriteStudy, tmp_path: Path) -> None:
    """More replications of every point need only those that are not there, and change nothing."""

    def computed(replications: int, folder: Path) -> tuple[bytes, str]:
        options = {"horizon": 20, "replications": replications}
        study = read_study(write({"sweep": SWEEP, "methods": {"simulation": options}}))
        unit = next(iter(study.units.values()))
        told: list[str] = []
        file = folder / "unit.jsonl"
        compute_unit(unit, Store(folder / "points"), file, say=told.append)
        return file.read_bytes(), told[-1]

    computed(2, tmp_path / "kept")
    more, told = computed(5, tmp_path / "kept")
    assert "(8 of 20 replications reused)" in told
    assert more == computed(5, tmp_path / "fresh")[0]


def test_the_cube_has_an_axis_of_jobs(write: WriteStudy, tmp_path: Path) -> None:
    study = read_study(write({"unit": ["jobs", "n_servers"]}))
    assert "simulation/in-order_n4" in study.units
    cube = built(study, tmp_path)
    assert cube.sojourn_mean.dims == (
        "method_name",
        "system",
        "policy",
        "jobs",
        "n_servers",
        "load",
    )
    assert cube.jobs.values.tolist() == list(JOBS)
    assert cube["quantile"].values.tolist() == [0.5, 0.9, 0.99, 0.999]
    assert cube["size_decile"].values.tolist() == list(range(1, 11))
    assert cube.size_law.values.tolist() == [
        "exponential",
        "exponential",
        "hyperexponential",
        "empirical",
    ]
    assert cube.discipline.values.tolist() == ["ps", "fcfs", "fcfs", "fcfs"]
    np.testing.assert_allclose(cube.measured_mean.values, [np.nan, np.nan, np.nan, 4.0])

    pools = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
    policy = ms.policy("scheme1", d=[2, 2])
    point = next(p for p in study.points if p.labels["jobs"] == "measured" and p.seed)
    sizes = ms.size_law("empirical", values=[9, 1, 2], mean=1)
    alone = ms.simulate(
        ms.System(0.5, pools, 4),
        policy,
        sizes=sizes,
        discipline="fcfs",
        seed=point.seed or 0,
        horizon=20,
        replications=2,
    )
    here = cube.squeeze().sel({"method_name": "simulation", "jobs": "measured", "n_servers": 4.0})
    np.testing.assert_allclose(here.sojourn_quantile, alone.sojourn_quantile, rtol=1e-12)

    limit = cube.squeeze().sel({"method_name": "mean_field", "n_servers": np.inf})
    assert limit.status.values.tolist() == ["ok", "ok", "ok", "not known"]
    assert "must be of phase type" in limit.reason.sel(jobs="measured").item()
    system = ms.System(0.5, pools)
    for label, discipline in (("shared", "ps"), ("in order", "fcfs")):
        law = ms.sojourn_law(system, policy, discipline=discipline)
        there = limit.sojourn_quantile.sel(jobs=label)
        np.testing.assert_allclose(there, law.sojourn_quantile, rtol=1e-12)
    mixed = ms.fixed_point(
        system, policy, sizes=ms.size_law("hyperexponential", scv=4), discipline="fcfs"
    )
    mean = limit.sojourn_mean.sel(jobs="mixed").item()
    assert mean == pytest.approx(mixed.sojourn_mean.item(), rel=1e-12)
    assert np.isnan(limit.sojourn_quantile.sel(jobs="mixed")).all()

    # A figure that knows no jobs has a panel for each, a table a row.
    figure = figures.draw("sojourn_against", cube, {"jobs": ["mixed", "shared"]})
    assert [axes.get_title() for axes in figure.axes] == ["mixed", "shared"]
    table = fits.compute("tail_growth", cube, {"jobs": ["mixed", "shared"]})
    assert set(table["jobs"]) == {"mixed", "shared"}
    with pytest.raises(ValueError, match="jobs = 'mix': is not in the cube"):
        fits.compute("tail_growth", cube, {"jobs": ["mix"]})


def test_points_are_known_by_the_sizes_and_not_by_their_file(
    write: WriteStudy, tmp_path: Path
) -> None:
    plain = ids(read_study(write()))
    data = tmp_path / "config" / "data"
    (data / "moved.csv").write_text("seconds\n9\n1\n2\n")
    moved = {**MEASURED, "file": str(data / "moved.csv")}
    assert ids(read_study(write({"jobs.measured.sizes": moved}))) == plain
    (data / "sizes.csv").write_text(SIZES.replace("9", "8"))
    changed = ids(read_study(write()))
    assert {key[:2] for key in plain if changed[key] != plain[key]} == {
        ("mean_field", "measured"),
        ("simulation", "measured"),
    }


def test_check_tells_what_is_wrong_with_a_file(write: WriteStudy, tmp_path: Path) -> None:
    study = write()
    sizes = tmp_path / "config" / "data" / "sizes.csv"
    sizes.write_text("seconds;user\n1,5;a\n12 ms;b\n")
    result = CliRunner().invoke(main, ["--config", str(study.parents[1]), "check"])
    assert result.exit_code == 1
    assert result.output == (
        f"{study}, line 54: jobs.measured: {sizes}, line 3, seconds = '12 ms': must be a "
        "number >= 0, without unit or thousands separator\n"
    )
    sizes.write_text("1,5\n2,5\n")
    told = {**MEASURED, "column": 1, "decimal": ","}
    assert ids(read_study(write({"jobs.measured.sizes": told})))


def test_without_jobs_points_are_what_they_were(write: WriteStudy) -> None:
    with_jobs = read_study(write())
    plain = read_study(write({"jobs": None}))
    assert all("jobs" not in point.labels for point in plain.points)
    assert all("jobs" not in point.parameters for point in plain.points)
    assert not set(ids(plain).values()) & set(ids(with_jobs).values())


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown law": (
        {"jobs.shared.sizes": {"name": "parteo"}},
        "jobs.shared: name = 'parteo': unknown law; did you mean 'pareto'? Allowed: ",
    ),
    "bad parameter": (
        {"jobs.shared.sizes": {"name": "pareto", "shape": 0.5}},
        "jobs.shared: shape = 0.5: must be a number from 1.1 to 1e+06",
    ),
    "unknown parameter": (
        {"jobs.shared.sizes": {"name": "pareto", "shap": 3}},
        "jobs.shared: shap = 3: unknown parameter of law 'pareto'; did you mean 'shape'? ",
    ),
    "other mean": (
        {"jobs.shared.sizes": {"name": "exponential", "mean": 2}},
        "jobs.shared: sizes: have mean 2; must have mean 1",
    ),
    "missing file": (
        {"jobs.measured.sizes.file": "../data/size.csv"},
        "jobs.measured: file = '{folder}/data/size.csv': there is no such file",
    ),
    "missing column": (
        {"jobs.measured.sizes.column": "minutes"},
        "jobs.measured: column = 'minutes': must be one of those of {folder}/data/sizes.csv: "
        "seconds, user",
    ),
    "unknown discipline": (
        {"jobs.shared.discipline": "lifo"},
        "jobs.shared.discipline = 'lifo': must be 'fcfs' or 'ps'",
    ),
    "typo": (
        {"jobs.shared.size": {"name": "pareto"}},
        "jobs.shared.size = {'name': 'pareto'}: unknown key; did you mean 'sizes'? "
        "Allowed: discipline, sizes",
    ),
    "method that does not follow jobs": (
        {"methods": {"exact": {}, "mean_field": {}}},
        "methods.exact: does not follow jobs; with the key jobs, must be mean_field or simulation",
    ),
    "moments": (
        {"methods": {"simulation": {"moments": True}}},
        "methods.simulation.moments: True: must be false with the key jobs",
    ),
    "unit of jobs without jobs": (
        {"jobs": None, "unit": ["jobs"]},
        "unit: 'jobs' is not an axis of this study; Allowed: ",
    ),
    "figure of jobs that are not there": (
        {"figures": [{"kind": "percentiles", "jobs": ["share"]}]},
        "figures[0].jobs = 'share': is not in this study; did you mean 'shared'? "
        "Allowed: in order, measured, mixed, shared",
    ),
    "figure of jobs without jobs": (
        {"jobs": None, "figures": [{"kind": "queue_tails", "jobs": ["shared"]}]},
        "figures[0].jobs = 'shared': is not in this study; Allowed: none",
    ),
    "quantile that is not there": (
        {"fits": [{"kind": "targets", "quantile": 0.95}]},
        "fits[0].quantile = 0.95: is not in this study; Allowed: 0.5, 0.9, 0.99, 0.999",
    ),
    "reference that is not there": (
        {"fits": [{"kind": "insensitivity", "reference": "mixd"}]},
        "fits[0].reference = 'mixd': is not in this study; did you mean 'mixed'? "
        "Allowed: in order, measured, mixed, shared",
    ),
    "units of a file without one": (
        {
            "jobs": {"shared": {}},
            "fits": [{"kind": "targets", "unit": "measured"}],
        },
        "fits[0].unit = 'measured': is not in this study; Allowed: mean",
    ),
}


@pytest.mark.parametrize("changes,start", MISTAKES.values(), ids=MISTAKES)
def test_one_line_for_each_mistake(write: WriteStudy, changes: dict[str, Any], start: str) -> None:
    path = write(changes)
    (line,) = mistakes(path)
    assert line.startswith(start.replace("{folder}", str(path.parents[1])))
