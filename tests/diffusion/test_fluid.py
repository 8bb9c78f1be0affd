import numpy as np
import pytest

from manyserver.diffusion.halfin_whitt.fluid_model.flow import (
    fluid,
    gamma_curve,
    hitting_time,
    time_below,
)

BETAS = [0.01, 0.25, 1.0, 2.0, 30.0]


def points(beta: float) -> np.ndarray:
    """Starts near the axes, near the tangent path, and far out."""
    left = -np.concatenate([[0.0], np.geomspace(1e-9, 1e6, 40)])
    up = np.concatenate([[0.0], beta * (1 + np.geomspace(1e-9, 1e6, 40)), np.geomspace(1e-9, 1, 9)])
    return np.stack(np.meshgrid(left, up, indexing="ij"), axis=-1)


def tangent_depth(x2: np.ndarray, beta: float) -> np.ndarray:
    """Largest distance from the axis for which the fluid path still gets there."""
    height = np.maximum(x2, beta)
    return np.asarray(height * np.log1p((height - beta) / beta) - (height - beta))


@pytest.mark.parametrize("beta", BETAS)
def test_hitting_time_solves_its_equation(beta: float) -> None:
    x = points(beta)
    time = hitting_time(x, beta)
    hit = np.isfinite(time)
    x1, x2, tau = x[hit][:, 0], x[hit][:, 1], time[hit]
    residual = beta * np.expm1(tau) - x1 - tau * x2
    assert np.abs(residual / (beta + x2 - x1)).max() < 1e-14
    assert (tau <= np.log(x2 / beta) * (1 + 1e-14)).all()
    assert (tau[x1 == 0] == 0).all()


@pytest.mark.parametrize("beta", BETAS)
def test_fluid_hits_if_it_starts_near_enough(beta: float) -> None:
    x = points(beta)
    depth = tangent_depth(x[..., 1], beta)
    clear = np.abs(x[..., 0] + depth) > 1e-12 * (beta + x[..., 1])
    expected = (x[..., 1] >= beta) & (-x[..., 0] <= depth)
    assert (np.isfinite(hitting_time(x, beta)) == expected)[clear].all()


def test_small_hitting_times_are_relatively_exact() -> None:
    x1 = -np.geomspace(1e-14, 1e-9, 6)
    time = hitting_time(np.stack([x1, np.full(6, 3.0)], axis=-1), 1.0)
    assert time == pytest.approx(-x1 / 2 * (1 - x1 / 8), rel=1e-14)


def test_no_argument_overflows() -> None:
    x = [[-1e300, 0.0], [-1e300, 1e-300], [-1.0, 1e-320], [0.0, 1e300], [-1e300, 1e300]]
    assert hitting_time(x, 1.0)[:3].tolist() == [np.inf] * 3
    assert hitting_time(x, 1.0)[3] == 0.0
    assert hitting_time(x, 1.0)[4] == 1.0
    assert np.isfinite(fluid(x, 1e3, 1.0)).all()
    assert np.isfinite(gamma_curve([-1e300, -1.0], 1e-3, 1e-4)).all()


@pytest.mark.parametrize("beta", BETAS)
def test_fluid_is_a_flow(beta: float) -> None:
    rng = np.random.default_rng(1)
    x = np.stack([-rng.exponential(3, 500), rng.exponential(6 + beta, 500)], axis=-1)
    first, second = rng.exponential(2, (2, 500))
    there = fluid(fluid(x, first, beta), second, beta)
    # Rounding on the axis is amplified where the path leaves it, like its square root.
    assert there == pytest.approx(fluid(x, first + second, beta), abs=2e-7 * (1 + beta))
    assert np.median(np.abs(there - fluid(x, first + second, beta))) < 1e-14 * (1 + beta)


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_fluid_agrees_with_small_projected_steps(beta: float) -> None:
    starts = np.array([[-1.0, 8.0], [-3.0, 1.0], [0.0, 5.0], [0.0, 0.2], [-0.1, 3.0], [0.0, 0.0]])
    step = 2e-4
    v1, v2 = starts.T.copy()
    worst = 0.0
    for count in range(1, 40_001):
        free = v1 + step * (v2 - v1 - beta)
        v1, v2 = np.minimum(free, 0.0), v2 - step * v2 + np.maximum(free, 0.0)
        if count % 2000 == 0:
            exact = fluid(starts, step * count, beta)
            worst = max(worst, float(np.abs(exact - np.stack([v1, v2], axis=-1)).max()))
    assert worst < 5 * step


def test_fluid_takes_arrays_of_times() -> None:
    times = np.linspace(0, 9, 50)
    x = np.array([-1.0, 4.0])
    alone = np.stack([fluid(x, t, 1.0) for t in times])
    assert fluid(x, times, 1.0).shape == (50, 2)
    assert (fluid(x, times, 1.0) == alone).all()
    assert fluid([x, x], times[:, np.newaxis], 1.0).shape == (50, 2, 2)


def test_fluid_ends_where_the_spare_servers_are_idle() -> None:
    assert fluid([-2.0, 50.0], 200.0, 1.5).tolist() == pytest.approx([-1.5, 0.0])


@pytest.mark.parametrize(("kappa", "beta"), [(1.0001, 1.0), (2.0, 1.0), (50.0, 0.1), (3.0, 2.5)])
def test_gamma_curve_leads_to_its_level(kappa: float, beta: float) -> None:
    x1 = -np.concatenate([[0.0], np.geomspace(1e-8, 1e4, 60)])
    x = np.stack([x1, gamma_curve(x1, kappa, beta)], axis=-1)
    assert x[0, 1] == pytest.approx(kappa, rel=1e-14)
    assert (np.diff(x[:, 1]) > 0).all()
    time = np.log(x[:, 1] / kappa)
    residual = kappa * time - beta + (x1 + beta) * np.exp(-time)
    assert np.abs(residual / (kappa * (1 + time))).max() < 1e-14
    # Next to the tangent path hitting times have fewer digits.
    assert hitting_time(x, beta)[1:] == pytest.approx(time[1:], rel=1e-8)
    on_axis = fluid(x, hitting_time(x, beta), beta)
    assert on_axis[:, 1] == pytest.approx(kappa, rel=1e-9)


@pytest.mark.parametrize("level", [1.001, 3.0, 100.0])
def test_time_below_is_when_the_path_gets_there(level: float) -> None:
    x1, x2 = np.meshgrid(-np.geomspace(1e-3, 1e6, 50), [0.0, *np.geomspace(1e-30, 1e6, 50)])
    time = time_below(x1, x2, level, 1.0)
    late = time > 0
    assert (late == (x1 < -level)).all()
    decay = np.exp(-time)
    residual = level - 1 + (x1 + 1) * decay + time * x2 * decay
    assert np.abs(residual / (level - x1 + time * x2))[late].max() < 1e-14


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0, 1.0], 1.0, 0.0), "beta = 0.0: must be a finite number greater than 0"),
        (([-1.0, 1.0], 1.0, float("nan")), "beta = nan"),
        (([-1.0, 1.0], 1.0, "1"), "beta = '1'"),
        (([0.5, 1.0], 1.0, 1.0), r"x\[..., 0\] = 0.5: must be finite and at most 0"),
        (([-0.5, -1.0], 1.0, 1.0), r"x\[..., 1\] = -1.0: must be finite and at least 0"),
        (([-0.5, float("inf")], 1.0, 1.0), r"x\[..., 1\] = inf"),
        (([-0.5, 1.0, 2.0], 1.0, 1.0), r"x has shape \(3,\); must be \(..., 2\)"),
        (([-0.5, 1.0], -1.0, 1.0), "t = -1.0: must be finite and at least 0"),
    ],
)
def test_fluid_refuses_nonsense(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fluid(*arguments)


@pytest.mark.parametrize("beta", [0.1, 1.0, 3.0])
def test_separatrix_parts_the_paths_that_reach_the_axis(beta: float) -> None:
    x1 = -np.geomspace(1e-3, 1e3, 30)
    height = gamma_curve(x1, beta, beta)
    assert gamma_curve(0.0, beta, beta) == beta
    for factor, reaches in ((1 + 1e-9, True), (1 - 1e-9, False)):
        times = hitting_time(np.stack([x1, factor * height], axis=-1), beta)
        assert (np.isfinite(times) == reaches).all()


def test_gamma_curve_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match=r"kappa = 0.9: must be at least beta = 1"):
        gamma_curve(-1.0, 0.9, 1.0)
    with pytest.raises(ValueError, match=r"x1 = 1.0: must be finite and at most 0"):
        gamma_curve(1.0, 2.0, 1.0)
