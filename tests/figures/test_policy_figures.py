"""Figures that help to choose a policy: maps of winners, messages, and the decay of waiting."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from matplotlib.patches import Polygon
from matplotlib.text import Text

from manyserver import figures
from manyserver.figures.map import winner
from manyserver.figures.sojourn_against_messages import pareto

MakeCube = Callable[..., xr.Dataset]
SCHEMES = [(f"scheme{i} d=(2,2)", f"scheme{i}", {"d": [2, 2]}) for i in (1, 2)]
W = "sojourn_mean"


@pytest.fixture
def cube(cube_of: MakeCube) -> xr.Dataset:
    return cube_of(policies=SCHEMES, arrival_rates=[0.3, 0.9], n_servers=[10, 100])


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]  # type: ignore[attr-defined]


def cells(figure: object) -> list[Polygon]:
    return [p for p in figure.axes[0].patches if isinstance(p, Polygon)]  # type: ignore[attr-defined]


def test_winners_differ_by_more_than_both_errors() -> None:
    yes = np.ones(3, dtype=bool)
    best = winner(np.array([1.1, np.nan, 1.0]), np.array([0.06, 0.0, 0.06]), yes)
    assert best is not None
    assert (best.place, best.rivals) == (2, ())
    assert best.margin == pytest.approx(0.1)
    close = winner(np.array([1.1, np.nan, 1.0]), np.array([0.08, 0.0, 0.08]), yes)
    assert close is not None
    assert close.rivals == (0,)
    doubted = winner(np.array([2.0, 3.0, 1.0]), np.zeros(3), np.array([True, False, True]))
    assert doubted is not None
    assert doubted.rivals == (1,)
    alone = winner(np.array([np.nan, 2.0, np.nan]), np.zeros(3), yes)
    assert alone is not None
    assert np.isnan(alone.margin)
    assert winner(np.full(3, np.nan), np.zeros(3), yes) is None


def test_false_winners_are_one_in_twenty() -> None:
    """Two equal values with normal errors, 4000 draws: a rate of 5 % within 4 deviations."""
    generator = np.random.default_rng(1)
    draws = generator.normal(size=(4000, 2))
    widths, yes = np.full(2, 1.959964), np.ones(2, dtype=bool)
    found = [winner(values, widths, yes) for values in draws]
    rate = np.mean([best is not None and not best.rivals for best in found])
    assert abs(rate - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 4000)


def test_cells_are_split_where_policies_do_not_differ(cube: xr.Dataset) -> None:
    assert len(cells(figures.draw("map", cube))) >= 6
    wide = cube.assign({f"{W}_half_width": cube[f"{W}_half_width"] * 1e6})
    assert len(cells(figures.draw("map", wide))) == 2 * 4 + len(
        cells(figures.draw("map", cube.isel(n_servers=[-1])))
    )
    same = cube.isel(n_servers=[-1])
    same = same.assign({W: same[W] * 0 + 1.0})
    assert texts(figures.draw("map", same)) == ["=", "="]


def test_policies_with_too_many_messages_take_no_part(cube: xr.Dataset) -> None:
    # In the invented simulations the first policy needs no message, the second two; in the limit
    # both need eight.
    figure = figures.draw("map", cube, {"most_messages": 1.0})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sum(label.startswith("Scheme") for label in labels) == 1
    assert len(cells(figure)) == 4
    assert texts(figure) == []
    with pytest.raises(ValueError, match="the cube holds no value to draw"):
        figures.draw("map", cube.isel(n_servers=[-1]), {"most_messages": 7.9})


def test_the_front_is_what_nothing_beats() -> None:
    x, y = np.array([0.0, 1, 1, 2, 3]), np.array([5.0, 4, 3, 3, 1])
    assert pareto(x, y).tolist() == [0, 2, 4]


def test_the_front_is_drawn_from_the_points(cube: xr.Dataset) -> None:
    figure = figures.draw("sojourn_against_messages", cube, {"n_servers": 10, "rates": [0.9]})
    values = cube[W].sel({"method_name": "simulation", "n_servers": 10, "arrival_rate": 0.9})
    steps = [
        np.asarray(line.get_ydata())
        for line in figure.axes[0].get_lines()
        if line.get_drawstyle() == "steps-post"
    ]
    assert len(steps) == 1
    assert steps[0][0] == pytest.approx(float(values.isel(policy=0, system=0)))
    figure = figures.draw("sojourn_against_messages", cube, {"front": False})
    styles = {line.get_drawstyle() for line in figure.axes[0].get_lines()}
    assert "steps-post" not in styles


def test_names_do_not_cover_each_other(cube_of: MakeCube) -> None:
    policies = [("a", "optimal_split", {}), ("b", "naive_split", {}), ("c", "jsq", {}), SCHEMES[0]]
    drawn = cube_of(policies=policies, arrival_rates=[0.3], n_servers=[100])
    for name, value in (("messages_per_job", 1.0), (W, 2.0)):
        drawn[name] = drawn[name] * 0 + value
    figure = figures.draw("sojourn_against_messages", drawn)
    figure.canvas.draw()
    named = [text for text in figure.axes[0].texts if text.get_text()]
    # Without the arrows.
    boxes = [Text.get_window_extent(text) for text in named]
    middles = sorted(box.y0 + box.y1 for box in boxes)
    assert len(middles) == len(policies)
    assert min(np.diff(middles)) / 2 > 5 * figure.dpi / 72


def test_decays_leave_out_what_was_never_seen(cube: xr.Dataset) -> None:
    gone = (cube["n_servers"] == 100) & (cube["method_name"] == "simulation")
    rare = cube.assign(
        waiting_probability=cube["waiting_probability"].where(~gone, 0.0),
        waiting_probability_half_width=cube["waiting_probability_half_width"].where(~gone),
    )
    figure = figures.draw("decay", rare, {"show": ["waiting_probability"], "rates": [0.9]})
    seen = {float(x) for line in figure.axes[0].get_lines() for x in np.asarray(line.get_xdata())}
    assert seen == {10.0}
    wide = cube.assign(waiting_probability_half_width=cube["waiting_probability_half_width"] * 1e4)
    figure = figures.draw("decay", wide, {"rates": [0.9]})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "upper bound (95 %)" in labels
    with pytest.raises(ValueError, match="blocking_probability: the cube holds no value"):
        figures.draw("decay", cube, {"show": ["blocking_probability"]})
