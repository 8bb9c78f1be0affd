"""The fixed point against the reference values, to 1e-10."""

import re

import pytest
from tests.reference import Reference, heterogeneous, sq

import manyserver as ms

LIMIT = ("mean_sojourn_Ninf", "mean_sojourn", "p_1")
ROWS = [
    row
    for row in heterogeneous()
    if row.system.n_servers is None and (row.quantity in LIMIT or row.quantity.startswith("tail_P"))
]
CLOSED = [row for row in sq() if row.quantity.startswith(("mean queue", "mean sojourn"))]
CLOSED = [row for row in CLOSED if row.system.n_servers is None or "mean field" in row.quantity]


def test_the_table_is_read() -> None:
    assert (len(ROWS), len(CLOSED)) == (172, 38)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_heterogeneous(row: Reference) -> None:
    if row.quantity == "p_1":
        branches = row.policy.sampling(row.system).branches
        actual = sum(branch.probability for branch in branches if branch.draws[0].pools == (0,))
        assert actual == pytest.approx(row.value, abs=1e-10)
        return
    result = ms.fixed_point(row.system, row.policy)
    tail = re.fullmatch(r"tail_P\(type(\d)>=(\d+)\)", row.quantity)
    if tail:
        pool, level = int(tail[1]) - 1, int(tail[2])
        assert float(result.queue_tail[pool, level]) == pytest.approx(row.value, abs=1e-13)
    else:
        assert float(result.sojourn_mean) == pytest.approx(row.value, rel=1e-11)


@pytest.mark.parametrize("row", CLOSED, ids=str)
def test_equal_servers(row: Reference) -> None:
    result = ms.fixed_point(row.system, row.policy)
    name = "sojourn_mean" if "sojourn" in row.quantity else "jobs_per_server"
    rounding = 5e-5 if "rounding" in row.source else 5e-11
    assert float(result[name]) == pytest.approx(row.value, abs=rounding)
