"""The limit of PULL: a simplex of fixed points, sliding trajectories, terms of order 1/n."""

import math
from fractions import Fraction

import numpy as np
import pytest
import xarray as xr

import manyserver as ms
from manyserver.mean_field.pull.flow import RoutedFlow
from manyserver.policies import Policy

UNEQUAL = [ms.Pool("1/2", "1/2"), ms.Pool("1/2", "3/2")]
BOUNDED = [ms.Pool("1/2", "1/2", buffer=3), ms.Pool("1/2", "3/2", buffer=2)]


def pull(routers: int) -> Policy:
    return ms.policy("pull", routers=routers)


def start_from(tails: np.ndarray, system: ms.System, split: list[float]) -> xr.Dataset:
    idle = system.fractions * (1 - tails[:, 1])
    return xr.Dataset(
        {
            "queue_tail": (("pool", "level"), tails),
            "router_idle": (("pool", "router"), idle[:, None] * np.array(split)),
        }
    )


def test_every_split_of_the_idle_servers_is_fixed() -> None:
    """``y_jr / y_r = C_j x_j1 / lambda`` at every router, and nothing moves."""
    system = ms.System(0.5, UNEQUAL)
    split = [0.7, 0.3, 0.0]
    point = ms.pull_fixed_point(system, pull(3), split)
    idle = point.router_idle.values
    assert idle.sum(axis=0) / idle.sum() == pytest.approx(split)
    served = system.fractions * system.speeds * point.queue_tail.values[:, 1]
    for router in (0, 1):
        mix = idle[:, router] / idle[:, router].sum()
        assert mix == pytest.approx(served / 0.5, rel=1e-12)
    path = ms.mean_field(system, pull(3), [0, 1, 100], start=point)
    assert path.router_idle.values == pytest.approx(np.stack([idle] * 3), abs=1e-9)
    assert float(point.idle_concentration) == pytest.approx(0.58)
    assert float(point.messages_per_job) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("routers", [1, 4])
@pytest.mark.parametrize(
    ("rate", "pools"), [(0.5, UNEQUAL), (1.3, BOUNDED)], ids=["idle", "overloaded"]
)
def test_the_symmetric_fixed_point_is_that_of_jiq(
    routers: int, rate: float, pools: list[ms.Pool]
) -> None:
    system = ms.System(rate, pools)
    point, jiq = ms.fixed_point(system, pull(routers)), ms.fixed_point(system, ms.policy("jiq"))
    for name in jiq.data_vars:
        assert point[name].values == pytest.approx(jiq[name].values, nan_ok=True)
    parts = point.router_idle.values
    assert parts == pytest.approx(np.tile(parts[:, :1], routers))
    lost = float(point.blocking_probability + point.waiting_probability)
    assert float(point.empty_router_probability) == pytest.approx(lost, abs=1e-12)


@pytest.mark.parametrize("routers", [1, 3])
def test_alike_routers_are_jiq(routers: int) -> None:
    """From more work than the idle servers can take: empty, a slide, and filling again."""
    system = ms.System(0.8, BOUNDED)
    tails = np.array([[1, 1, 1, 0.8], [1, 0.95, 0.9, 0]])
    times = np.linspace(0, 15, 31)
    path = ms.mean_field(system, pull(routers), times, start=tails)
    jiq = ms.mean_field(system, ms.policy("jiq"), times, start=tails)
    for name in ("queue_tail", "waiting_probability", "blocking_probability"):
        assert path[name].values == pytest.approx(jiq[name].values, abs=1e-9)
    assert path.empty_router_probability.values[1] > 0.1
    assert path.empty_router_probability.values[-1] == 0


def test_differences_of_routers_are_conserved_inside() -> None:
    """While the smaller router is empty, random arrivals take messages from the other one."""
    system = ms.System(0.6, [ms.Pool(1, 1)])
    start = start_from(np.array([[1, 0.5, 0.45]]), system, [0.8, 0.2])
    path = ms.mean_field(system, pull(2), np.linspace(0, 4, 41), start=start)
    known = path.router_idle.values[:, 0]
    difference = known[:, 0] - known[:, 1]
    slides = np.flatnonzero(known[:, 1] == 0)
    before, after = slice(slides[0]), slice(slides[-1] + 1, None)
    assert slides[0] > 3
    assert slides[-1] < 37
    assert difference[before] == pytest.approx(0.3, abs=1e-9)
    assert difference[after] == pytest.approx(difference[-1], abs=1e-9)
    assert difference[-1] < 0.29
    empty = path.empty_router_probability.values
    assert np.all(empty[slides] > 0)
    assert empty[before] == pytest.approx(0, abs=1e-15)
    assert empty[after] == pytest.approx(0, abs=1e-15)
    idle = 1 - path.queue_tail.values[:, 0, 1]
    assert known.sum(axis=1) == pytest.approx(idle, abs=1e-12)


@pytest.mark.parametrize("empty", [(), (0, 2), (0, 1, 2)])
def test_jacobian_is_the_derivative(empty: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    flow = RoutedFlow(ms.System(0.9, [BOUNDED[0], UNEQUAL[1]]), 3, 6)
    flow.empty[list(empty)] = True
    messages = rng.uniform(0.01, 0.05, (2, 3))
    messages[:, flow.empty] = 0
    tails = np.ones((2, 6))
    tails[:, 2:] = -np.sort(-rng.uniform(0, 0.6, (2, 4)))
    tails[0, 4:] = 0
    state = flow.state(tails, messages)
    steps = 1e-7 * np.eye(len(state))
    slopes = [(flow(0, state + step) - flow(0, state - step)) / 2e-7 for step in steps]
    assert flow.jacobian(0, state) == pytest.approx(np.array(slopes).T, abs=1e-6)


def test_bad_starts_and_splits_are_refused() -> None:
    system = ms.System(0.5, UNEQUAL)
    with pytest.raises(ValueError, match=r"split = \[0.5, 0.6\]: must be 2 numbers .* sum to 1"):
        ms.pull_fixed_point(system, pull(2), [0.5, 0.6])
    with pytest.raises(ValueError, match="must be a policy 'pull'"):
        ms.pull_fixed_point(system, ms.policy("jiq"))
    with pytest.raises(ValueError, match="must be a policy 'pull'"):
        ms.pull_asymptotics(system, ms.policy("jiq"))
    start = start_from(np.array([[1, 0.5], [1, 0.5]]), system, [0.5, 0.4])
    with pytest.raises(ValueError, match=r"start: router_idle .* sum to the idle servers"):
        ms.mean_field(system, pull(2), [0, 1], start=start)
    with pytest.raises(ValueError, match=r"arrival_rate = 1.3: load is 1.3; must be below 1"):
        ms.pull_asymptotics(ms.System(1.3, BOUNDED), pull(2))


def test_coefficients_of_the_rate_at_which_waiting_vanishes() -> None:
    """``kappa (R - 1) / i``, kappa = 1 / (1 + i); (1 - i) of these find a busy server."""
    system = ms.System(0.7, [ms.Pool(1, 1)], n_servers=50)
    result = ms.pull_asymptotics(system, pull(3))
    assert float(result.empty_router_probability_correction) == pytest.approx(2 / 0.3 / 1.3)
    waits = float(result.waiting_probability_correction)
    assert waits == pytest.approx(0.7 * 2 / 0.3 / 1.3)
    assert float(result.sojourn_mean_refined) == pytest.approx(1 + waits / 50)
    lossy = ms.System(0.7, [ms.Pool("1/2", 1, buffer=1), ms.Pool("1/2", 1)])
    result = ms.pull_asymptotics(lossy, pull(3))
    assert float(result.blocking_probability_correction) == pytest.approx(waits / 2)
    assert float(result.waiting_probability_correction) == pytest.approx(waits / 2)


def test_decay_with_one_router_is_that_of_the_loss_formula() -> None:
    """``rho - 1 - log rho`` for equal speeds, of the law in detailed balance for others."""
    decay = float(ms.pull_asymptotics(ms.System(0.7, [ms.Pool(1, 1)]), pull(1)).empty_router_decay)
    assert decay == pytest.approx(0.7 - 1 - math.log(0.7))
    decay = float(ms.pull_asymptotics(ms.System(0.7, UNEQUAL), pull(1)).empty_router_decay)
    # The ratio of two sizes has an error of log(2) / 400 from powers of n.
    slope = (_log_all_busy(400) - _log_all_busy(800)) / 400
    assert slope == pytest.approx(decay, abs=math.log(2) / 400)


def _log_all_busy(n: int) -> float:
    half = n // 2
    ways = [math.lgamma(half + 1) - math.lgamma(k + 1) - math.lgamma(half - k + 1)
            for k in range(half + 1)]  # fmt: skip
    busy = np.arange(half + 1)
    order = np.array([math.lgamma(k + 1) for k in range(n + 1)])
    total = busy[:, None] + busy
    weights = order[n - total] + total * math.log(0.7 * n) + np.add.outer(ways, ways)
    weights -= np.add.outer(busy * math.log(0.5), busy * math.log(1.5))
    return float(weights[-1, -1] - np.logaddexp.reduce(weights, axis=None))


def test_the_split_relaxes_in_a_time_of_order_n() -> None:
    """``4 n i**2 / (pi**2 lambda)`` for two routers, forever in the limit; one has no split."""
    system = ms.System(0.7, [ms.Pool(1, 1)], n_servers=10_000)
    two = ms.relaxation_time(system, pull(2))
    assert two == pytest.approx(4 * 10_000 * 0.09 / (math.pi**2 * 0.7), rel=1e-12)
    assert ms.relaxation_time(ms.System(0.7, [ms.Pool(1, 1)]), pull(2)) == math.inf
    one = ms.relaxation_time(system, pull(1))
    assert one == pytest.approx(ms.relaxation_time(system, ms.policy("jiq")))
    assert one < 5


@pytest.mark.parametrize("routers", [2, 3, 4, 6, 10, 30])
def test_relaxation_of_brownian_motion_on_a_simplex(routers: int) -> None:
    """Ritz's method with functions ``sum_r c_r f(y_r)``, sum c_r = 0, f a polynomial.

    They bound the lowest rate from above: exactly for two routers, by 1 % for three.
    """
    system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=100_000)
    ours = ms.relaxation_time(system, pull(routers)) / (100_000 * 0.25 / 0.5)
    assert ours == pytest.approx(_ritz(routers), rel=0.035)


def _ritz(r: int) -> float:
    """Time for generator Laplacian / r on the simplex with sum one and its uniform law."""

    def moment(*powers: int) -> Fraction:
        above = math.prod(math.factorial(power) for power in powers)
        return Fraction(math.factorial(r - 1) * above, math.factorial(r - 1 + sum(powers)))

    degrees = range(1, 8, 2) if r == 2 else range(1, 7)
    mass = [[moment(a + b) - moment(a, b) for b in degrees] for a in degrees]
    stiff = [
        [a * b * ((r - 1) * moment(a + b - 2) + moment(a - 1, b - 1)) / r**2 for b in degrees]
        for a in degrees
    ]
    # Gauss' elimination of both in exact arithmetic, as the monomials are nearly dependent.
    n = len(degrees)
    for i in range(n):
        for j in range(i + 1, n):
            factor = mass[j][i] / mass[i][i]
            for matrix in (mass, stiff):
                matrix[j] = [x - factor * y for x, y in zip(matrix[j], matrix[i], strict=True)]
                for row in matrix:
                    row[j] -= factor * row[i]
    scale = [math.sqrt(mass[i][i]) for i in range(n)]
    reduced = np.array([[float(x) for x in row] for row in stiff]) / np.outer(scale, scale)
    return float(1 / np.linalg.eigvalsh(reduced)[0])
