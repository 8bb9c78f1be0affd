import math

import pytest

from manyserver.statistics.erlang import erlang_b, erlang_c


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
