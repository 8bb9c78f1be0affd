"""Studies of the Halfin-Whitt regime: their points, cubes and fits, and the published numbers."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from tests.diffusion.reference import Row, rows
from tests.study.conftest import mistakes

import manyserver as ms
from manyserver import fits, methods
from manyserver.fits.row import columns
from manyserver.methods.halfin_whitt import HalfinWhittMethod, HalfinWhittProblem
from manyserver.study.cube import build_cube, write_cube
from manyserver.study.models.halfin_whitt import Config
from manyserver.study.running.compute import compute_unit
from manyserver.study.storage.store import Store
from manyserver.study.study import Study, read_study

STUDY: dict[str, Any] = {
    "title": "Regime",
    "model": "halfin_whitt",
    "sweep": {"beta": [1, 2], "n_servers": [25, 100, "limit"]},
    "methods": {"chain": {"third_customers": 25}, "diffusion": {}},
}
WriteRegime = Callable[..., Path]


@pytest.fixture
def write_regime(tmp_path: Path) -> WriteRegime:
    """Write the study with some keys replaced."""

    def write(**changes: Any) -> Path:
        path = tmp_path / "config" / "studies" / "regime.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {key: value for key, value in {**STUDY, **changes}.items() if value is not None}
        path.write_text(json.dumps(content, indent=2))
        return path

    return write


def built(study: Study, folder: Path) -> xr.Dataset:
    files = []
    for name, unit in study.units.items():
        files.append(folder / f"{name}.jsonl")
        compute_unit(unit, Store(folder / "points"), files[-1], say=lambda line: None)
    return build_cube(study, files)


def test_the_identity_of_a_point_is_pinned(write_regime: WriteRegime) -> None:
    # A change here makes every stored point worthless; it must be wanted.
    study = read_study(write_regime(methods={"chain_simulation": {"replications": 2}}))
    point = study.points[1]
    assert point.parameters == {
        "method": "chain_simulation",
        "halfin_whitt": {"beta": 1.0, "n_servers": 100},
        "options": {"replications": 2},
        "seed": point.seed,
    }
    assert (point.id, point.seed) == ("3ed541d3ee2aa013", 6835818731424733873)


def test_a_study_is_the_product_of_its_axes(write_regime: WriteRegime) -> None:
    study = read_study(write_regime())
    labels = [(p.method, p.labels["beta"], p.labels["n_servers"]) for p in study.points]
    assert labels[:4] == [("chain", beta, n) for beta in (1.0, 2.0) for n in (25, 100)]
    assert labels[4:] == [("diffusion", beta, None) for beta in (1.0, 2.0)]
    assert list(study.units) == [
        f"{method}/beta{beta}" for method in ("chain", "diffusion") for beta in (1, 2)
    ]
    whole = read_study(write_regime(unit=[]))
    assert list(whole.units) == ["chain/all", "diffusion/all"]
    assert [point.id for point in whole.points] == [point.id for point in study.points]


def test_chain_and_diffusion_stand_side_by_side(write_regime: WriteRegime, tmp_path: Path) -> None:
    chosen = {"chain": {"third_customers": 25}, "diffusion": {"fluctuations": True}}
    sweep = {"beta": 1, "n_servers": [25, 100, "limit"]}
    study = read_study(write_regime(sweep=sweep, methods=chosen))
    cube = built(study, tmp_path)
    assert cube.scaled_waiting_mean.dims == ("method_name", "beta", "n_servers")
    assert cube.attrs["model"] == "halfin_whitt"
    assert cube.beta.attrs["symbol"] == r"\beta"
    at = cube.sel({"method_name": "chain", "beta": 1.0, "n_servers": 25.0})
    alone = ms.halfin_whitt.chain(1.0, 25)
    assert float(at.scaled_waiting_mean) == pytest.approx(float(alone.q2_mean) / 5, rel=1e-14)
    assert float(at.q3_mean) == pytest.approx(float(alone.q3_mean), rel=1e-12)
    distances = ms.halfin_whitt.distances(1.0, 25)
    assert float(at.q2_kolmogorov) == pytest.approx(float(distances.q2_kolmogorov), rel=1e-12)
    limit = cube.sel({"method_name": "diffusion", "beta": 1.0, "n_servers": math.inf})
    assert float(limit.scaled_waiting_mean) == pytest.approx(0.81405966348, abs=1e-10)
    assert float(limit.y1_asymptotic_variance) == pytest.approx(2, abs=1e-8)
    assert limit.status.item() == "ok"
    # With two customers at most, of 100 servers.
    cut = cube.truncation_error.sel({"method_name": "chain", "n_servers": 100.0})
    assert cut.item() < 1e-3
    write_cube(cube, tmp_path / "cube.nc")
    with xr.open_dataset(tmp_path / "cube.nc") as opened:
        xr.testing.assert_identical(opened.load(), cube)


def test_a_simulation_covers_the_exact_value(write_regime: WriteRegime, tmp_path: Path) -> None:
    """At 4 standard errors, the false-alarm rate is 6e-5."""
    chosen = {"chain": {"distances": False}, "chain_simulation": {"largest": 25}}
    sweep = {"beta": 1, "n_servers": [25, 100]}
    cube = built(read_study(write_regime(sweep=sweep, methods=chosen)), tmp_path).squeeze("beta")
    simulated = cube.sel({"method_name": "chain_simulation", "n_servers": 25.0})
    exact = cube.sel({"method_name": "chain", "n_servers": 25.0})
    for name in ("scaled_waiting_mean", "scaled_waiting_probability"):
        error = float(simulated[f"{name}_half_width"]) / 1.96
        assert abs(float(simulated[name]) - float(exact[name])) < 4 * error
    assert cube.status.sel(method_name="chain_simulation").values.tolist() == [
        "ok",
        "too large",
    ]


def test_a_law_that_is_cut_too_early_says_so(write_regime: WriteRegime, tmp_path: Path) -> None:
    """With a small spare capacity servers often have four customers."""
    sweep = {"beta": [0.25, 1], "n_servers": 25}
    study = write_regime(sweep=sweep, methods={"chain": {"distances": False}}, figures=[])
    cube = built(read_study(study), tmp_path).squeeze()
    assert cube.status.values.tolist() == ["precision not met", "ok"]
    assert cube.truncation_error.values[0] > 0.1


def test_joint_laws_have_their_marginals(write_regime: WriteRegime, tmp_path: Path) -> None:
    chosen = {"chain": {"distances": False, "joint": True}, "diffusion": {"joint": True}}
    sweep = {"beta": 1, "n_servers": [400, "limit"]}
    cube = built(read_study(write_regime(sweep=sweep, methods=chosen)), tmp_path).squeeze("beta")
    chain = cube.sel({"method_name": "chain", "n_servers": 400.0})
    y1, y2 = (chain[name].values for name in ("y1_grid", "y2_grid"))
    cell = (y1[1] - y1[0]) * (y2[1] - y2[0])
    density = chain.joint_density.transpose("x1", "x2").values
    # Within the cells, the law is as if at their centres; what is cut off is beyond y2 = 4.7.
    assert density.sum() * cell == pytest.approx(1, abs=0.02)
    law = ms.halfin_whitt.chain(1.0, 400, method="levels")
    few = int((law.q2 < 2).sum())
    lowest = float(law.q2_probability[:few].sum())
    assert density[:, 0].sum() * cell == pytest.approx(lowest, abs=1e-4)
    limit = cube.sel({"method_name": "diffusion", "n_servers": math.inf})
    there = limit.joint_density.sel(x1=slice(0, None)).transpose("x1", "x2").values
    exact = ms.halfin_whitt.stationary(1.0, y1=limit.y1_grid.values, y2=limit.y2_grid.values)
    np.testing.assert_allclose(there, exact.joint_density.values, rtol=1e-12)


def test_gaps_of_queues_and_diffusion(write_regime: WriteRegime, tmp_path: Path) -> None:
    sweep = {"beta": 2, "n_servers": [25, 100, 6400, "limit"]}
    study = read_study(write_regime(sweep=sweep, methods={"relaxation": {}}))
    cube = built(study, tmp_path).squeeze()
    assert cube.status.values.tolist() == ["too small", "ok", "too large", "ok"]
    gaps = [math.nan, 0.6862, math.nan, 0.612924]
    assert cube.spectral_gap.values == pytest.approx(gaps, abs=6e-5, nan_ok=True)
    assert cube.essential_spectrum_bottom.values[-1] == 1.0


def test_the_portrait_is_that_of_the_fluid_model(write_regime: WriteRegime, tmp_path: Path) -> None:
    study = read_study(
        write_regime(sweep={"beta": 1, "n_servers": "limit"}, methods={"fluid": {"levels": [2]}})
    )
    cube = built(study, tmp_path).squeeze()
    assert float(cube.excess_level) == 2.0
    x = [float(cube.y1_grid[40]), float(cube.y2_grid[120])]
    value = ms.halfin_whitt.SteinSolution(1.0, 2.0).evaluate(x).value
    assert float(cube.excess_cost[40, 120]) == pytest.approx(float(value), rel=1e-12)
    assert float(cube.gamma_curve[-1]) == 2.0
    np.testing.assert_allclose(cube.fluid_y1[:, -1], -1, atol=0.03)


def test_fits_find_the_exponents_and_the_slower_one_of_the_atom() -> None:
    cube = invented()
    table = fits.compute("halfin_whitt_rates", cube)
    assert list(table.columns) == columns("beta")
    assert set(table["beta"]) == {1.0}
    exponents = table[table["parameter"] == "exponent"]
    slow = exponents["quantity"] == "Kolmogorov distance of Q2/sqrt(n)"
    # The Wasserstein distance of Q2 is taken to have slower terms than it was given here.
    assert list(exponents[~slow]["estimate"]) == pytest.approx([-0.5] * 4, abs=5e-3)
    assert list(exponents[slow]["expected"]) == [-0.15]
    assert list(exponents[slow]["estimate"]) == pytest.approx([-0.15], abs=1e-3)
    coefficient = table[table["parameter"] == "coefficient of n^(-1/2)"]
    assert list(coefficient["estimate"]) == pytest.approx([3.0], abs=1e-3)
    assert list(coefficient["second_term"]) == pytest.approx([-4.0 / 3], rel=0.02)
    # The cut of the chain is felt at 25 servers.
    assert set(exponents["excluded"]) == {"25"}
    assert set(exponents["window"]) == {"100 to 25600"}
    assert all(note.startswith("some n left out") for note in exponents["note"])
    identity = table[table["parameter"] == "worst value"].iloc[0]
    assert (identity["estimate"], identity["expected"]) == (1.0, 1.0)
    agreement = table[table["parameter"] == "chi-square per point"].iloc[0]
    assert agreement["estimate"] == pytest.approx(1.0)
    simulated = fits.compute("halfin_whitt_rates", cube, {"method": "chain_simulation"})
    assert set(simulated["parameter"]) >= {"exponent"}
    with pytest.raises(ValueError, match=r"beta = 3\.0.*must be one of 1\.0"):
        fits.compute("halfin_whitt_rates", cube, {"betas": [3.0]})


def invented() -> xr.Dataset:
    """Deviations with exponents of exactly -1/2, and -0.15 of the atom."""
    servers = np.array([25.0, 100, 400, 1600, 6400, 25600, np.inf])
    root = np.sqrt(servers[:-1])
    data = {
        name: np.full((3, 1, 7), np.nan)
        for name in (
            "scaled_waiting_mean",
            "scaled_waiting_mean_half_width",
            "scaled_idle_mean",
            "truncation_error",
            "q1_wasserstein",
            "q1_kolmogorov",
            "q2_wasserstein",
            "q2_kolmogorov",
            "y2_small_exponent",
        )
    }
    data["scaled_waiting_mean"][0, 0, -1] = 9.0
    data["y2_small_exponent"][0, 0, -1] = 0.3
    exact = 9 - 3 / root + 4 / root**2
    data["scaled_waiting_mean"][1, 0, :-1] = exact
    data["scaled_idle_mean"][1, 0, :-1] = 1.0
    data["truncation_error"][1, 0, :-1] = [0.5, 0, 0, 0, 0, 0]
    for name in ("q1_wasserstein", "q1_kolmogorov", "q2_wasserstein"):
        data[name][1, 0, :-1] = 2 / root
    data["q2_kolmogorov"][1, 0, :-1] = root**-0.3
    data["scaled_waiting_mean"][2, 0, :-1] = exact + 0.01 * (-1) ** np.arange(6)
    data["scaled_waiting_mean_half_width"][2, 0, :-1] = 0.01 * 1.959963984540054
    dims = ("method_name", "beta", "n_servers")
    return xr.Dataset(
        {name: (dims, values) for name, values in data.items()},
        coords={
            "method_name": ["diffusion", "chain", "chain_simulation"],
            "beta": [1.0],
            "n_servers": servers,
        },
    )


@pytest.fixture(scope="module")
def convergence(tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    """Exact values at beta = 1."""
    folder = tmp_path_factory.mktemp("convergence")
    path = folder / "convergence.yaml"
    sweep = {"beta": 1, "n_servers": [100, 400, 1600, 6400, 25600, "limit"]}
    chosen: dict[str, Any] = {"chain": {}, "diffusion": {}}
    path.write_text(json.dumps({**STUDY, "sweep": sweep, "methods": chosen, "unit": []}))
    return built(read_study(path), folder)


def test_the_mean_converges_like_the_root_of_n(convergence: xr.Dataset) -> None:
    """E Q2/sqrt(n) at beta = 1, as published, and the exponents of its deviation."""
    chain = convergence.sel({"method_name": "chain"}).squeeze("beta").isel(n_servers=slice(-1))
    published = [0.599961, 0.699305, 0.754588, 0.783778, 0.798779]
    assert chain.scaled_waiting_mean.values == pytest.approx(published, abs=6e-7)
    whole = fits.compute("halfin_whitt_rates", convergence)
    corrected = whole[whole["parameter"] == "exponent"].set_index("quantity")
    for quantity, row in corrected.iterrows():
        within = 3 * row["standard_error"]
        assert row["estimate"] == pytest.approx(row["expected"], abs=within), quantity
        assert within < 0.25, quantity
    coefficient = whole[whole["parameter"] == "coefficient of n^(-1/2)"].iloc[0]
    assert coefficient["estimate"] == pytest.approx(2.46747, abs=2 * coefficient["standard_error"])


@pytest.mark.parametrize("row", rows("W1(", sizes=(1600, 25600)), ids=str)
def test_wasserstein_distances_are_those_of_the_table(row: Row, convergence: xr.Dataset) -> None:
    if row.beta != 1.0:
        found = ms.halfin_whitt.distances(row.beta, row.n)
    else:
        found = convergence.sel({"method_name": "chain", "beta": 1.0, "n_servers": float(row.n)})
    name = "q1_wasserstein" if "Q1" in row.quantity else "q2_wasserstein"
    # For large beta the table's integrals miss some of the first cell, where Y2 has most mass.
    assert found[name].item() == pytest.approx(row.value, abs=1e-5, rel=3e-3)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown model": (
        {"model": "halfin_whit"},
        "model = 'halfin_whit': unknown model; did you mean 'halfin_whitt'? "
        "Allowed: dispatching, halfin_whitt",
    ),
    "no model": (
        {"model": None},
        "systems: missing; this key is required",
    ),
    "key of another model": (
        {"policies": []},
        f"policies = []: unknown key; Allowed: {', '.join(sorted(Config.model_fields))}",
    ),
    "method of another model": (
        {"methods": {"mean_field": {}}},
        "methods.mean_field = {}: unknown key; Allowed: chain, chain_simulation, diffusion, "
        "fluid, relaxation",
    ),
    "no method": (
        {"methods": {}},
        "methods: must name at least one of chain, chain_simulation, diffusion, fluid, relaxation",
    ),
    "too few servers": (
        {"sweep": {"beta": [1, 5], "n_servers": [25, 100]}},
        "sweep.n_servers: n_servers = 25: must be greater than beta**2 = 25, so that the arrival "
        "rate is positive",
    ),
    "beta too large": (
        {"sweep": {"beta": [1, 7], "n_servers": [100]}, "methods": {"chain": {}}},
        "methods.chain: beta must be from 0.01 to 6 (beta = 7)",
    ),
    "horizon too short": (
        {
            "sweep": {"beta": [1, 2], "n_servers": 10},
            "methods": {"chain_simulation": {"horizon": 100}},
        },
        "methods.chain_simulation: horizon = 100.0: must be at least 1632, which is 320 "
        "relaxation times (beta = 1)",
    ),
    "no method applies": (
        {"sweep": {"beta": 1, "n_servers": "limit"}, "methods": {"chain": {}}},
        "methods: none of them applies to any of sweep.n_servers",
    ),
    "unit axis": ({"unit": ["policy"]}, "unit[0] = 'policy': must be 'beta' or 'n_servers'"),
    "figure of another model": (
        {"figures": [{"kind": "queue_tails"}]},
        "figures[0]: kind = 'queue_tails': is a figure of the model dispatching; Allowed: "
        "halfin_whitt_convergence, joint_density, phase_portrait, spectral_gap",
    ),
    "unknown figure": (
        {"figures": [{"kind": "joint_densty"}]},
        "figures[0]: kind = 'joint_densty': unknown figure; did you mean 'joint_density'? "
        "Allowed: halfin_whitt_convergence, joint_density, phase_portrait, spectral_gap",
    ),
    "beta that is not there": (
        {"figures": [{"kind": "joint_density", "betas": [3.0]}]},
        "figures[0].betas = 3.0: is not in this study; Allowed: 1.0, 2.0",
    ),
    "fit of a method that is not there": (
        {"fits": [{"kind": "halfin_whitt_rates", "method": "chain_simulation"}]},
        "fits[0].method = 'chain_simulation': is not in this study; Allowed: chain, diffusion",
    ),
}


@pytest.mark.parametrize("changes,line", MISTAKES.values(), ids=MISTAKES)
def test_one_line_for_each_mistake(
    write_regime: WriteRegime, changes: dict[str, Any], line: str
) -> None:
    assert line in mistakes(write_regime(**changes))


@pytest.mark.parametrize("name", ["diffusion", "relaxation"])
def test_the_range_of_beta_is_that_of_the_computation(name: str) -> None:
    method = methods.load(name)
    assert isinstance(method, HalfinWhittMethod)
    lowest, highest = method.betas
    n = None if method.applies(HalfinWhittProblem(1.0, None)) else 100
    message = f"beta = .*must be from {lowest:g} to {highest:g}"
    for beta in (0.9 * lowest, 1.1 * highest):
        with pytest.raises(ValueError, match=message):
            method.compute(HalfinWhittProblem(beta, n), method.options_class(), methods.Draws())
