import math

import numpy as np
import pytest

from manyserver.diffusion.halfin_whitt.fluid_model.cutoff import Step
from manyserver.diffusion.halfin_whitt.fluid_model.flow import fluid
from manyserver.diffusion.halfin_whitt.fluid_model.lyapunov import Lyapunov, lyapunov

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
BETAS = [0.1, 0.25, 1.0, 2.0, 5.0]


def points(function: Lyapunov, count: int = 300) -> np.ndarray:
    rng = np.random.default_rng(3)
    reach = function.levels[1]
    return np.stack([-rng.exponential(reach, count), rng.exponential(reach, count)], axis=-1)


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 2.0), (13.0, 25.0), (5.0, 5.5)])
def test_step(lower: float, upper: float) -> None:
    step = Step(lower, upper)
    s = np.linspace(0.9 * lower, 1.2 * upper, 1001)
    h = 1e-5 * step.width
    value = step.value(s)
    assert ((value >= 0) & (value <= 1) & (np.diff(value, prepend=0) >= 0)).all()
    assert (value[s <= lower] == 0).all()
    assert (value[s >= upper] == 1).all()

    def slope_of(of: str) -> np.ndarray:
        function = getattr(step, of)
        return np.asarray((function(s + h) - function(s - h)) / (2 * h))

    assert step.slope(s) * step.width == pytest.approx(slope_of("value") * step.width, abs=1e-4)
    assert step.slope(s).max() * step.width == pytest.approx(4 / 3, rel=1e-4)
    assert value == pytest.approx(slope_of("integral"), abs=1e-8)
    assert value / s == pytest.approx(slope_of("weighted_integral"), abs=1e-8)
    jumps = np.array([lower, (lower + upper) / 2, upper])
    inside = np.abs(s[:, np.newaxis] - jumps).min(axis=1) > 2 * h
    assert step.curvature(s)[inside] == pytest.approx(
        slope_of("slope")[inside], abs=1e-3 / step.width**2
    )
    assert np.abs(step.curvature(s)).max() <= 8 / step.width**2
    assert max(step.violations().values()) < 0


@pytest.mark.parametrize("beta", BETAS)
def test_equations_bounds_and_drift(beta: float) -> None:
    worst = Lyapunov(beta).violations()
    assert max(worst["f1_equation"], worst["f2_equation"]) < 1e-10
    assert max(worst["f1_reflection"], worst["f2_reflection"]) < 1e-13
    for name in ("f1_d1", "f1_d11", "f2_d1", "f2_d11"):
        assert worst[name] < 1e-12
    assert worst["drift"] < 0


@pytest.mark.parametrize(("beta", "epsilon"), [(0.25, 48.0), (1.0, 12.0), (2.0, 40.0)])
def test_costs_are_integrals_along_the_fluid_path(beta: float, epsilon: float) -> None:
    function = Lyapunov(beta, epsilon)
    step = Step(*function.levels)
    x = points(function, 12)[:, np.newaxis]
    end = 60.0 + 2 * x[..., 1] / beta
    parts = (np.arange(4000)[:, np.newaxis] + (1 + NODES) / 2).ravel() / 4000
    # Cubes, as far up much happens early.
    weights = 3 * parts**2 * np.tile(WEIGHTS, 4000) / 8000
    v = fluid(x, end * parts**3, beta)
    for cost, exact in ((-v[..., 0], function.first(x)), (v[..., 1], function.second(x))):
        total = end[:, 0] * (step.value(cost) @ weights)
        assert exact.value[:, 0] == pytest.approx(total, abs=1e-6, rel=1e-8)


@pytest.mark.parametrize("name", ["first", "second"])
@pytest.mark.parametrize("beta", [0.25, 1.0, 2.0])
def test_derivatives_are_those_of_the_value(beta: float, name: str) -> None:
    function = Lyapunov(beta)
    evaluate = getattr(function, name)
    x = points(function)
    x = x[(x[:, 0] < -0.1) & (x[:, 1] > 0.1)]
    step = 1e-3

    def centred(of: str, axis: int) -> np.ndarray:
        move = step * np.eye(2)[axis]
        ahead, behind = evaluate(x + move), evaluate(x - move)
        return np.asarray((getattr(ahead, of) - getattr(behind, of)) / (2 * step))

    f = evaluate(x)
    scale = 1 + np.abs(f.d22).max() + np.abs(f.d2).max()
    for of, axis, derivative in (
        ("value", 0, f.d1),
        ("value", 1, f.d2),
        ("d1", 0, f.d11),
        ("d1", 1, f.d12),
        ("d2", 0, f.d12),
        ("d2", 1, f.d22),
    ):
        # The second derivatives are continuous but for kinks, near which few points lie.
        error = np.abs(centred(of, axis) - derivative)
        assert np.quantile(error, 0.98) < 1e-6 * scale
        assert error.max() < 2e-2 * scale


def test_constants_of_the_notes() -> None:
    function = Lyapunov(1.0, 12.0)
    assert function.alpha == pytest.approx(0.164, abs=5e-4)
    assert function.rate == pytest.approx(0.0409, abs=5e-5)
    x = function.grid()
    outside = (x[..., 0] < -25) | (x[..., 1] > 25)
    assert -function.relative_drift(x)[outside].max() == pytest.approx(0.128, abs=2e-3)


@pytest.mark.parametrize("beta", [0.25, 1.0])
def test_rate_tends_to_the_essential_spectrum_bottom(beta: float) -> None:
    rates = [Lyapunov(beta, epsilon).rate for epsilon in (1e2, 1e4, 1e6)]
    assert (np.diff(rates) > 0).all()
    assert rates[-1] == pytest.approx(beta**2 / 4, rel=1e-4)


def test_drift_condition_needs_its_constant() -> None:
    """Without d the inequality fails near the corner, where V is flat."""
    function = Lyapunov(1.0)
    near = function.relative_drift([[-1.0, 0.0], [0.0, 1.0]])
    assert near.tolist() == [0.0, 0.0]
    assert function.constant > function.rate


def test_far_out_nothing_overflows() -> None:
    function = Lyapunov(1.0)
    x = [[-1e8, 0.0], [0.0, 1e8], [-1e8, 1e-290], [-1e8, 1e8]]
    assert np.isfinite(function.log_value(x)).all()
    assert (function.relative_drift(x)[:3] < -function.rate).all()


def test_dataset() -> None:
    result = lyapunov(1.0, x1=np.linspace(-30, 0, 7), x2=np.linspace(0, 40, 9))
    function = Lyapunov(1.0)
    assert dict(result.sizes) == {"x1": 7, "x2": 9, "check": 9}
    expected = function.log_value([result.x1[2], result.x2[5]])
    assert float(result.log_lyapunov[2, 5]) == pytest.approx(float(expected), rel=1e-12)
    assert float(result.drift_rate) == function.rate
    assert float(result.violation.max()) < 1e-10
    assert all("units" in result[name].attrs for name in result.data_vars)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "beta = 0.0: must be a finite number greater than 0"),
        ((1.0, -1.0), "epsilon = -1.0: must be a finite number greater than 0"),
        ((1.0, 1.0), "epsilon = 1.0: too small for a drift condition at beta = 1; 12 is enough"),
        ((1.0, 12.0, 5.0), r"alpha = 5.0: must be a finite number greater than 0 and less than"),
        ((1.0, math.inf), "epsilon = inf"),
    ],
)
def test_nonsense_is_refused(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lyapunov(*arguments)
