"""Numbers that change in time."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import scipy

import manyserver as ms

SCHEDULES = [
    ms.Steps([0, 1, 2.5], [0.7, 0.0, 1.3]),
    ms.Steps([0, 1, 2.5], [0.7, 0.2, 1.3], period=3),
    ms.Linear([0, 1, 2.5], [0.7, 0.0, 1.3]),
    ms.Linear([0, 1, 2.5], [0.7, 0.2, 1.3], period=3),
    ms.Sine(0.8, 0.8, 2.0, shift=0.3),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_integral_breaks_and_bounds_are_those_of_the_values(schedule: ms.Schedule) -> None:
    edges = np.array([0.0, *schedule.breaks(7.0), 7.0])
    assert (np.diff(edges) > 0).all()
    area = 0.0
    for left, right in itertools.pairwise(edges):
        inside = np.linspace(left, right, 102)[1:-1]
        low, high = schedule.bounds(left, right)
        assert (schedule.at(inside) >= low).all()
        assert (schedule.at(inside) <= high).all()
        area += scipy.integrate.quad(lambda t: float(schedule.at(t)), left, right, epsabs=1e-12)[0]
    assert schedule.integral(7.0) == pytest.approx(area, rel=1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_epochs_come_at_the_rate_that_is_told(schedule: ms.Schedule) -> None:
    """Ten numbers; one is off by 4.5 standard errors in one of 15,000 runs of all tests."""
    epochs = schedule.epochs(np.random.default_rng(5), 2000.0, 1.0, 6.0)
    edges = np.linspace(1.0, 6.0, 3)
    counts = np.histogram(epochs, edges)[0]
    means = 2000.0 * np.diff([schedule.integral(edge) for edge in edges])
    assert (np.diff(epochs) >= 0).all()
    assert (np.abs(counts - means) < 4.5 * np.sqrt(means)).all()


def test_a_table_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    file.write_text("time,rate\n0,0.5\n6,0.9\n18,0.4\n")
    assert ms.read_schedule(str(file)) == ms.Steps([0, 6, 18], [0.5, 0.9, 0.4])
    assert ms.read_schedule(str(file), ms.Linear).at(12) == pytest.approx(0.65)
    file.write_text("time,rate\n0,0.5\n6,\n18,0.4\n")
    with pytest.raises(ValueError, match="line 3"):
        ms.read_schedule(str(file))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ms.Steps([0, 2, 1], [1, 1, 1]), r"times = \[0, 2, 1\]: must be finite numbers"),
        (lambda: ms.Steps([1, 2], [1, 1]), r"times = \[1, 2\]: must be .* the first one 0"),
        (lambda: ms.Linear([0, 2], [1, np.nan]), "values = .*: must be finite numbers >= 0"),
        (lambda: ms.Linear([0, 2], [1]), "values = .*: must be finite .* one for each"),
        (lambda: ms.Linear([0, 2], [1, -1]), "values = .*: must be finite numbers >= 0"),
        (lambda: ms.Steps([0, 2], [1, 2], period=2), "period = 2: must be greater than the last"),
        (lambda: ms.Sine(0.5, 0.6, 1), "amplitude = 0.6: must be at most the mean 0.5"),
        (lambda: ms.Sine(0.5, 0.1, 0), "period = 0: must be a finite number greater than 0"),
    ],
)
def test_what_is_no_schedule_is_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        make()
