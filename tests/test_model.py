import logging
from fractions import Fraction

import numpy as np
import pytest

import manyserver as ms
from manyserver.model import read_ratio


@pytest.mark.parametrize(
    ("value", "ratio"),
    [
        ("2/3", Fraction(2, 3)),
        (1, Fraction(1)),
        (1.8, Fraction(9, 5)),
        (2 / 3, Fraction(2, 3)),
        (0.666667, Fraction(2, 3)),
        (0.1 + 0.2, Fraction(3, 10)),
        (0.6667, Fraction(6667, 10000)),
        (1.000001, Fraction(1000001, 1000000)),
        (4 / 3 * (1 - 1e-6), Fraction(repr(4 / 3 * (1 - 1e-6)))),
        (np.float64(0.25), Fraction(1, 4)),
    ],
)
def test_numbers_are_read_exactly(value: object, ratio: Fraction) -> None:
    assert read_ratio(value, "speed")[0] == ratio


def test_a_rounded_ratio_is_replaced_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"speed = 0\.666667 is read as 2/3"):
        pool = ms.Pool(1, 0.666667)
    assert pool.speed == Fraction(2, 3)


def test_the_float_of_a_ratio_is_replaced_with_a_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "manyserver"):
        pool = ms.Pool(1, 2 / 3)
    assert pool.speed == Fraction(2, 3)
    assert caplog.messages == ["speed = 0.6666666666666666 is read as 2/3"]


@pytest.mark.parametrize(
    "value", [0, -1, "0", "a", "1/0", "1e999999999", float("nan"), float("inf"), None, True]
)
def test_a_bad_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^speed = .*: must be a positive number or a ratio"):
        ms.Pool(1, value)  # type: ignore[arg-type]


def test_system_describes_its_pools() -> None:
    system = ms.System(0.8, [ms.Pool("1/4", 2), ms.Pool("3/4", "1/2")], n_servers=8)
    assert system.counts == (2, 6)
    assert system.fractions.tolist() == [0.25, 0.75]
    assert system.speeds.tolist() == [2.0, 0.5]
    assert system.capacity == 0.875
    assert system.load == 0.8 / 0.875


HALVES = [ms.Pool("1/2", 1), ms.Pool("1/2", 1)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ms.System(0, HALVES), r"arrival_rate = 0: must be a finite number greater than 0"),
        (lambda: ms.System(float("nan"), HALVES), r"arrival_rate = nan: must be"),
        (lambda: ms.System("0.5", HALVES), r"arrival_rate = '0.5': must be"),  # type: ignore
        (lambda: ms.System(0.5, []), r"pools = \[\]: must be a sequence of at least one Pool"),
        (lambda: ms.System(0.5, HALVES[:1]), r"pools: the fractions 1/2 sum to 0.5; must sum to 1"),
        (lambda: ms.System(0.5, HALVES, 0), r"n_servers = 0: must be an integer >= 1"),
        (lambda: ms.System(0.5, HALVES, 2.5), r"n_servers = 2.5: must be an integer"),  # type: ignore
        (lambda: ms.System(0.5, HALVES, 3), r"n_servers = 3: does not split .* multiple of 2"),
        (lambda: ms.Pool(1.5, 1), r"fraction = 1.5: must lie in \(0, 1\]"),
        (lambda: ms.Pool(1, 1, buffer=0), r"buffer = 0: must be an integer >= 1"),
    ],
)
def test_nonsense_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_a_load_of_one_is_refused() -> None:
    with pytest.raises(ms.UnstableSystem, match=r"arrival_rate = 1: load is 1; must be below") as e:
        ms.System(1, HALVES)
    assert e.value.pools == (0, 1)
    assert ms.System(1 - 1e-12, HALVES).load < 1
    assert ms.System(2, [ms.Pool(1, 1, buffer=3)]).load == 2


def test_the_limit_has_no_counts() -> None:
    with pytest.raises(ValueError, match="n_servers = None: must be an integer here"):
        _ = ms.System(0.5, HALVES).counts


@pytest.mark.parametrize(("buffers", "expected"), [((None, None), False), ((None, 3), True)])
def test_a_system_is_bounded_if_any_pool_has_a_buffer(
    buffers: tuple[int | None, ...], expected: bool
) -> None:
    system = ms.System(0.5, [ms.Pool("1/2", 1, buffer=buffer) for buffer in buffers])
    assert system.is_bounded is expected
