"""The methods, against the functions that they call, and what they refuse."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyserver as ms
from manyserver import methods
from manyserver.exact import stationary_law
from manyserver.methods.dispatching import DispatchingProblem
from manyserver.methods.exact import fewest_states
from manyserver.origin import ORIGIN
from manyserver.study.cube import build_cube
from manyserver.study.running.compute import compute_unit
from manyserver.study.storage.records import record_of
from manyserver.study.storage.store import Store
from manyserver.study.study import read_study

UNEQUAL = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
EQUAL = [ms.Pool(1, 1)]
SQ2 = ms.policy("sq", d=2)


def computed(name: str, system: ms.System, policy: Any, **options: Any) -> Any:
    method, problem = methods.load(name), DispatchingProblem(system, policy)
    chosen = method.options_class(**options)
    assert method.skip_reason(problem, chosen) == ""
    return method.compute(problem, chosen, methods.Draws(1))


def test_refined_values_have_the_names_of_the_others() -> None:
    system = ms.System(0.7, EQUAL, n_servers=10)
    result = computed("refined_mean_field", system, SQ2, moments=True)
    refined = ms.refine(system, SQ2)
    jobs = refined.jobs_per_server_refined.item()
    assert result.jobs_per_server.item() == pytest.approx(jobs, rel=1e-12)
    assert result.jobs_per_server_correction.item() == pytest.approx(0.39066, abs=1e-5)
    covariance = refined.queue_tail_covariance.values[0, :, 0]
    variances = result.queue_tail_variance.values[0]
    np.testing.assert_allclose(variances, np.diag(covariance), rtol=1e-12)
    # Of the tails' covariances, those of the numbers of servers with exactly k jobs.
    held = result.occupancy_covariance.values[0, :12, 0, :12]
    assert held[1, 2] == pytest.approx(
        covariance[1, 2] - covariance[1, 3] - covariance[2, 2] + covariance[2, 3]
    )


@pytest.mark.parametrize(
    ("pools", "policy"),
    [(EQUAL, SQ2), (UNEQUAL, ms.policy("scheme1", d=[2, 2])), (UNEQUAL, SQ2)],
    ids=["equal", "scheme1", "unequal"],
)
def test_exact_moments_are_those_of_the_law(pools: list[ms.Pool], policy: Any) -> None:
    system = ms.System(0.6, pools, n_servers=4)
    result = computed("exact", system, policy, tolerance=1e-6, moments=True)
    law = stationary_law(system, policy, tolerance=1e-6)
    tails = law.tails()
    mean = np.tensordot(law.probabilities, tails, 1)
    variance = 4 * np.tensordot(law.probabilities, (tails - mean) ** 2, 1)
    np.testing.assert_allclose(result.queue_tail_variance.values, variance, atol=1e-12)
    jobs = tails[:, :, 1:].sum(axis=2) @ system.fractions
    spread = 4 * law.probabilities @ (jobs - law.probabilities @ jobs) ** 2
    assert result.jobs_per_server_variance.item() == pytest.approx(spread)
    held = -np.diff(tails, axis=2, append=0.0)
    for (j, k), (i, m) in itertools.product([(0, 0), (0, 2), (-1, 1)], repeat=2):
        product = law.probabilities @ (held[:, j, k] * held[:, i, m])
        means = [law.probabilities @ held[:, pool, level] for pool, level in ((j, k), (i, m))]
        here = result.occupancy_covariance.values[j, k, i, m]
        assert here == pytest.approx(4 * (product - means[0] * means[1]), abs=1e-12)


@pytest.mark.parametrize(
    ("pools", "n_servers", "load", "policy"),
    [
        (EQUAL, 2, 0.5, SQ2),
        (EQUAL, 2, 0.9, SQ2),
        (EQUAL, 6, 0.5, SQ2),
        (UNEQUAL, 4, 0.5, SQ2),
        (UNEQUAL, 6, 0.5, SQ2),
        (UNEQUAL, 4, 0.7, ms.policy("scheme2", d=[2, 2])),
        (UNEQUAL, 2, 0.8, ms.policy("optimal_split")),
        (UNEQUAL, 4, 0.5, ms.policy("optimal_split")),
    ],
)
def test_no_chain_that_is_small_enough_is_refused(
    pools: list[ms.Pool], n_servers: int, load: float, policy: Any
) -> None:
    system = ms.System(load, pools, n_servers=n_servers)
    result = ms.exact(system, policy, tolerance=1e-4, max_states=100_000)
    assert fewest_states(system, 1e-4) <= max(result.n_states.item(), 5000)


def test_what_is_too_large_is_a_status_in_the_cube(write_study: Any, tmp_path: Path) -> None:
    """Of 4 servers at load 0.7 more states are needed than can be told before; of 100, at once."""
    study = read_study(
        write_study(
            {
                "policies": [{"name": "scheme1", "d": [2, 2]}],
                "sweep": {"load": [0.3, 0.7], "n_servers": [4, 100]},
                "methods": {"exact": {"max_states": 5000, "tolerance": 1e-6}},
                "unit": [],
            }
        )
    )
    told = [(point.labels["n_servers"], point.left_out) for point in study.points]
    assert told == [(4, ""), (4, ""), (100, "too large"), (100, "too large")]
    (unit,) = study.units.values()
    said: list[str] = []
    file = tmp_path / "unit.jsonl"
    for expected in (
        "points: 2 computed, 0 reused, 0 failed, 2 left out",
        "points: 0 computed, 2 reused, 0 failed, 2 left out",
    ):
        compute_unit(unit, Store(tmp_path / "points"), file, say=said.append)
        assert said[-1] == expected
    cube = build_cube(study, [file]).squeeze()
    assert cube.status.values.tolist() == [["ok", "too large"], ["too large", "too large"]]
    assert np.isfinite(cube.sojourn_mean.values).tolist() == [[True, False], [False, False]]


def test_only_a_result_with_a_status_may_be_empty(write_study: Any) -> None:
    import xarray as xr

    (point, *_) = read_study(write_study()).points
    assert record_of(point, xr.Dataset(attrs={"status": "too large"}), {}).values == {}
    with pytest.raises(ArithmeticError, match="no finite sojourn_mean"):
        record_of(point, xr.Dataset(), {})


def test_what_the_parameters_say_is_not_noted_again(write_study: Any) -> None:
    (point, *_) = read_study(write_study()).points
    problem: Any = point.subject.problem
    result = ms.fixed_point(problem.system, problem.policy)
    assert set(ORIGIN) & set(result.attrs)
    assert record_of(point, result, {}).notes == {"method": result.attrs["method"]}


def test_levels_of_which_nothing_is_known_are_not_stored(write_study: Any) -> None:
    import xarray as xr

    (point, *_) = read_study(write_study()).points
    rates = [[1.0, np.nan, 2.0, np.nan], [np.nan] * 4]
    result = xr.Dataset({"sojourn_mean": 1.0, "joining_rate": (("pool", "level"), rates)})
    stored = np.array(record_of(point, result, {}).values["joining_rate"])
    np.testing.assert_array_equal(stored, [[1.0, np.nan, 2.0]])


def test_a_policy_is_computed_for_its_own_systems(write_study: Any, tmp_path: Path) -> None:
    one = {"pools": [{"fraction": 1, "speed": 1}]}
    path = write_study(
        {
            "systems.one": one,
            "policies": [
                {"name": "scheme1", "d": [2, 2], "systems": ["unequal"]},
                {"name": "sq", "d": 2},
            ],
        }
    )
    study = read_study(path)
    served = {(point.labels["policy"], point.labels["system"]) for point in study.points}
    assert served == {("scheme1 d=(2,2)", "unequal"), ("sq d=2", "unequal"), ("sq d=2", "one")}
    files = []
    for name, unit in study.units.items():
        files.append(tmp_path / f"{name}.jsonl")
        compute_unit(unit, Store(tmp_path / "points"), files[-1], say=lambda line: None)
    cube = build_cube(study, files)
    left_out = cube.status.sel(system="one", policy="scheme1 d=(2,2)")
    assert set(left_out.values.ravel().tolist()) == {"not asked for"}
