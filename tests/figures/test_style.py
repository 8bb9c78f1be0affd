from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from manyserver import policies
from manyserver.analysis.rounding import with_error
from manyserver.figures.base import Curve
from manyserver.figures.drawing import marks, style

MakeCube = Callable[..., xr.Dataset]


def test_every_policy_has_a_look_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are."""
    names = [*policies.names(), *(f"further_{letter}" for letter in "abcdefghijkl")]
    monkeypatch.setattr(style, "names", lambda: names)
    for parts in zip(*map(style.family, names), strict=True):
        assert len(set(parts)) == len(names)


def test_markers_of_other_packages_are_drawn() -> None:
    """Matplotlib takes those that are no text, as a marker, and not as a format."""
    axes = Figure().subplots()
    point = np.ones(1)
    look = style.Look("", (0.0, 0.0, 0.0), style.family("one_of_a_package")[1], "-")
    assert marks.markers(axes, Curve(point, point, point), look)


def test_a_family_looks_the_same_in_every_cube(cube_of: MakeCube) -> None:
    scheme = ("scheme1 d=(2,2)", "scheme1", {"d": [2, 2]})
    alone = style.looks(cube_of(policies=[scheme], arrival_rates=[0.3]))[0]
    sed = ("sed d=(2,2)", "sed", {"d": [2, 2]})
    assert style.looks(cube_of(policies=[sed, scheme], arrival_rates=[0.3]))[1] == alone


def test_members_of_a_family_are_told_apart(cube_of: MakeCube) -> None:
    members = [(f"sq d={d}", "sq", {"d": d}) for d in (2, 3)]
    cube = cube_of(systems={"equal": [("1", "1")]}, policies=members, arrival_rates=[0.3])
    first, second = style.looks(cube)
    assert [first.label, second.label] == ["SQ(2)", "SQ(3)"]
    assert first.colour != second.colour
    assert [first.hollow, second.hollow] == [False, True]


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("sq", {"d": 3, "replacement": True, "ties": "uniform"}, "SQ(3), with replacement"),
        ("sq", {"d": 3, "replacement": False, "ties": "fastest"}, "SQ(3), ties fastest"),
        ("hybrid_sq", {"d": [2, 3], "split": "naive"}, "Hybrid SQ, $d = (2, 3)$, naive split"),
        ("random", {"probabilities": [0.25, 0.75]}, "Random, probabilities (0.25, 0.75)"),
        ("next_one", {"d": 2}, "next one(2)"),
    ],
)
def test_policies_have_readable_names(
    name: str, parameters: dict[str, object], expected: str
) -> None:
    assert style.policy_label(f"{name} ...", name, parameters) == expected


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (7.46413, 0.0012, "7.4641(12)"),
        (17.8122, 1.278, "17.8(13)"),
        (123.4, 25.0, "123(25)"),
        (1.0, 0.0996, "1.00(10)"),
        (1.0, 0.0949, "1.000(95)"),
        (2.0, 0.0, "2.0000000"),
        (2.0, 1e-7, "2.0000000(1)"),
    ],
)
def test_errors_are_written_in_parentheses(value: float, error: float, expected: str) -> None:
    assert with_error(value, error) == expected
