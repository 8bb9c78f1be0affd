import math

import numpy as np
import pytest

import manyserver as ms
from manyserver.statistics.tail_growth import tail_growth

SPEEDS = ("1/4", "1/2", "1", "4")


def make_system(*speeds: str, arrival_rate: float = 1e-3) -> ms.System:
    return ms.System(arrival_rate, [ms.Pool(f"1/{len(speeds)}", speed) for speed in speeds])


def spectral_radius(d: list[int]) -> float:
    """Growth of Scheme 1, pools from the slowest: e' = L e + U e', from eq. (4.11).

    L holds d of the pools that are not faster, U of those that are.
    """
    slower = np.tril(np.tile(d, (len(d), 1)))
    faster = np.triu(np.tile(d, (len(d), 1)), 1)
    return float(np.abs(np.linalg.eigvals(np.linalg.inv(np.eye(len(d)) - faster) @ slower)).max())


@pytest.mark.parametrize("d", [[2, 2], [1, 1], [2, 3], [1, 2, 3], [2, 1, 3, 1]])
def test_scheme_1_grows_by_the_spectral_radius(d: list[int]) -> None:
    growth = tail_growth(make_system(*SPEEDS[: len(d)]), ms.policy("scheme1", d=d))
    assert growth.period == (1,) * len(d)
    assert growth.per_level == pytest.approx((spectral_radius(d),) * len(d), rel=1e-9)


@pytest.mark.parametrize(
    ("d", "expected"),
    [([2, 2], 4 + math.sqrt(12)), ([1, 1], (3 + math.sqrt(5)) / 2), ([2, 3], 10.424428900898052)],
)
def test_scheme_1_published_values(d: list[int], expected: float) -> None:
    growth = tail_growth(make_system("2/3", "4/3"), ms.policy("scheme1", d=d))
    assert growth.per_level == pytest.approx((expected, expected), rel=1e-12)


def test_order_of_pools_makes_no_difference() -> None:
    forwards = tail_growth(make_system("2/3", "4/3"), ms.policy("scheme2", d=[2, 3]))
    backwards = tail_growth(make_system("4/3", "2/3"), ms.policy("scheme2", d=[3, 2]))
    assert backwards.per_level == pytest.approx(forwards.per_level[::-1])
    assert backwards.period == forwards.period[::-1] == (2, 1)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_sq_grows_by_d(d: int) -> None:
    for speeds in (("1",), ("1/5", "9/5")):
        growth = tail_growth(make_system(*speeds), ms.policy("sq", d=d))
        assert growth.per_level == pytest.approx((d,) * len(speeds))


def test_hybrid_sq_grows_by_d_of_the_pool() -> None:
    policy = ms.policy("hybrid_sq", d=[2, 3], split="naive")
    assert tail_growth(make_system("1/5", "9/5"), policy).per_level == (2.0, 3.0)


def test_a_pool_without_jobs_has_no_growth() -> None:
    growth = tail_growth(make_system("1/5", "9/5"), ms.policy("optimal_split"))
    assert math.isnan(growth.per_level[0])
    assert growth.per_level[1] == 1.0


def test_equal_speeds_are_one_pool() -> None:
    growth = tail_growth(make_system("1", "1"), ms.policy("scheme1", d=[2, 2]))
    assert growth.per_level == pytest.approx((4.0, 4.0))


def test_a_period_too_long_to_see_has_no_growth() -> None:
    growth = tail_growth(make_system("1/100", "1"), ms.policy("scheme2", d=[1, 1]))
    assert growth.period == (1, 100)
    assert np.isnan(growth.per_level).all()


@pytest.mark.parametrize(
    ("name", "d", "speeds"),
    [
        ("scheme1", [1, 1], ("2/3", "4/3")),
        ("scheme2", [1, 1], ("2/3", "4/3")),
        ("scheme2", [1, 1], ("2/3", "1")),
        ("sed", [1, 1], ("2/3", "4/3")),
        ("sq", 2, ("2/3", "4/3")),
    ],
)
def test_growth_is_that_of_the_fixed_point(
    name: str, d: int | list[int], speeds: tuple[str, ...]
) -> None:
    system = make_system(*speeds, arrival_rate=0.7)
    policy = ms.policy(name, d=d)
    growth = tail_growth(system, policy)
    log_tails = ms.fixed_point(system, policy)["queue_log_tail"].values
    for log_tail, factor, period in zip(log_tails, growth.per_level, growth.period, strict=True):
        deepest = int(np.flatnonzero(np.isfinite(log_tail))[-1])
        later, middle, first = log_tail[[deepest, deepest - period, deepest - 2 * period]]
        measured = ((later - middle) / (middle - first)) ** (1 / period)
        assert measured == pytest.approx(factor, rel=5e-3)
