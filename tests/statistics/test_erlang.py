import math
from collections.abc import Callable

import pytest

from manyserver.statistics.erlang import erlang_b, erlang_c, staffing


@pytest.mark.parametrize(("servers", "offered"), [(1, 0.5), (5, 6.5), (30, 25.0)])
def test_loss_formula(servers: int, offered: float) -> None:
    terms = [offered**k / math.factorial(k) for k in range(servers + 1)]
    assert erlang_b(servers, offered) == pytest.approx(terms[-1] / sum(terms), rel=1e-13)


@pytest.mark.parametrize(("servers", "offered"), [(2, 0.5), (5, 4.5), (30, 25.0)])
def test_delay_formula(servers: int, offered: float) -> None:
    """Above n - 1 jobs the law of M/M/n is geometric."""
    last = offered**servers / math.factorial(servers) / (1 - offered / servers)
    below = sum(offered**k / math.factorial(k) for k in range(servers))
    assert erlang_c(servers, offered) == pytest.approx(last / (below + last), rel=1e-13)


def test_extremes() -> None:
    assert erlang_b(10_000, 1.0) == 0.0
    assert erlang_c(3, 3.0) == 1.0


def test_staffing_is_the_smallest_number_that_does() -> None:
    for offered in (0.3, 10.0, 1000.0):
        for target, wait in ((0.2, 0.0), (0.01, 0.0), (0.2, 0.1)):
            n = staffing(offered, target, wait)

            def late(servers: int, a: float = offered, t: float = wait) -> float:
                return erlang_c(servers, a) * math.exp(-max(0.0, servers - a) * t)

            assert late(n) <= target
            assert n == 1 or late(n - 1) > target


def test_service_level_that_is_public() -> None:
    """Ten erlang on 14 servers, 20 of 180 seconds."""
    level = 1 - erlang_c(14, 10.0) * math.exp(-4 * 20 / 180)
    assert level == pytest.approx(0.88835, abs=5e-6)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: erlang_b(0, 1.0), "n_servers = 0: must be an integer >= 1"),
        (lambda: erlang_c(2, -1.0), "offered_load = -1.0: must be"),
        (lambda: staffing(1.0, 1.0), "waiting_probability = 1.0: must be"),
        (lambda: staffing(1.0, 0.5, -1.0), "wait = -1.0: must be"),
        (lambda: staffing(1e7, 0.5), "offered_load = 1e\\+07: must be at most 1000000"),
    ],
)
def test_bad_input(call: Callable[[], float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()
