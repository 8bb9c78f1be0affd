import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import QuadMesh
from matplotlib.container import ErrorbarContainer
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from pydantic import ValidationError

from manyserver import figures

SCHEMES = [(f"scheme{i} d=(2,2)", f"scheme{i}", {"d": [2, 2]}) for i in (1, 2)]
KINDS = figures.kinds("dispatching")
REGIME_KINDS = figures.kinds("halfin_whitt")
WITHOUT_SIMULATION = {"joint_density", "phase_portrait", "spectral_gap"}
WITHOUT_BARS = {"map", "targets"}
OF_FINITE_SYSTEMS = {
    "convergence",
    "decay",
    "insensitivity",
    "propagation_of_chaos",
}
DEVIATION = {"x": "n_servers", "curves": "arrival_rate", "deviation": True}
MakeCube = Callable[..., xr.Dataset]


def bars(figure: Figure) -> list[ErrorbarContainer]:
    return [
        container
        for axes in figure.axes
        for container in axes.containers
        if isinstance(container, ErrorbarContainer)
    ]


@pytest.fixture
def cube_for(cube_of: MakeCube, regime_cube_of: MakeCube) -> Callable[[str], xr.Dataset]:
    """Return a function that makes a small cube of the model that a kind is for."""

    def make(kind: str) -> xr.Dataset:
        if kind in REGIME_KINDS:
            return regime_cube_of(betas=[1.0])
        return cube_of(policies=SCHEMES[:1], arrival_rates=[0.9])

    return make


@pytest.fixture(
    scope="module",
    params=[(k, width) for k in figures.kinds() for width in ("page", "column")],
    ids="-".join,
)
def drawn(
    request: pytest.FixtureRequest, cube_of: MakeCube, regime_cube_of: MakeCube
) -> tuple[str, Figure]:
    """Return every kind of figure in both widths; by load in the narrow one."""
    kind, width = request.param
    if kind in REGIME_KINDS:
        cube = regime_cube_of(betas=[0.5, 2.0], n_servers=[25, 100, 400])
    else:
        cube = cube_of(by_load=width == "column", arrival_rates=[0.3, 0.9])
    figure = figures.draw(kind, cube, {"width": width, "title": "A title"})
    assert figure.get_figwidth() == {"column": 3.4, "page": 7.0}[width]
    return kind, figure


def test_axes_are_labelled(drawn: tuple[str, Figure]) -> None:
    _, figure = drawn
    x_labels = [axes.get_xlabel() for axes in figure.axes] + [figure.get_supxlabel()]
    y_labels = [axes.get_ylabel() for axes in figure.axes] + [figure.get_supylabel()]
    assert any("$" in label for label in x_labels)
    assert any("$" in label for label in y_labels)
    assert figure.get_suptitle() == "A title"


def test_legend_is_outside_the_panels_and_inside_the_figure(drawn: tuple[str, Figure]) -> None:
    _, figure = drawn
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= figure.bbox.y1


def test_nothing_is_clipped_and_no_panel_is_squeezed(drawn: tuple[str, Figure]) -> None:
    _, figure = drawn
    for axes in figure.axes:
        if axes.get_label() == "<colorbar>":
            continue
        box = axes.get_tightbbox()
        assert box is not None
        assert box.x0 >= -1
        assert box.x1 <= figure.bbox.x1 + 1
        assert axes.get_window_extent().width > 0.6 * figure.dpi
        assert axes.get_window_extent().height > 0.8 * figure.dpi


def test_all_markers_are_inside_their_panels(drawn: tuple[str, Figure]) -> None:
    _, figure = drawn
    for container in bars(figure):
        axes = container.lines[0].axes
        assert axes is not None
        x, y = np.asarray(container.lines[0].get_data())
        assert axes.get_xlim()[0] <= x.min() <= x.max() <= axes.get_xlim()[1]
        assert axes.get_ylim()[0] <= y.min() <= y.max() <= axes.get_ylim()[1]


def test_half_widths_are_drawn(drawn: tuple[str, Figure]) -> None:
    kind, figure = drawn
    found = bars(figure)
    if kind in WITHOUT_SIMULATION | WITHOUT_BARS:
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
        assert not any(label.startswith("simulation") for label in labels)
        return
    assert found
    assert all(container.has_yerr for container in found)
    lengths = [
        np.ptp(np.asarray(segment)[:, 1])
        for container in found
        for segment in container.lines[2][0].get_segments()
    ]
    assert max(lengths) > 0


@pytest.mark.parametrize("kind", figures.kinds())
def test_files_are_the_same_to_the_byte(
    kind: str, cube_for: Callable[[str], xr.Dataset], tmp_path: Path
) -> None:
    cube = cube_for(kind)
    first = figures.save(figures.draw(kind, cube), tmp_path / "first")
    second = figures.save(figures.draw(kind, cube), tmp_path / "second.1")
    assert [path.name for path in second] == ["second.1.png", "second.1.pdf"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    for unwanted in (b"CreationDate", b"Producer", b"Software"):
        assert all(unwanted not in path.read_bytes() for path in first)


@pytest.mark.parametrize("kind", figures.kinds())
def test_unknown_options_are_refused(kind: str) -> None:
    with pytest.raises(ValidationError, match="policie\n  Extra inputs are not permitted"):
        figures.load(kind).options_class(policie=["sq"])


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_are_not_there_are_refused(kind: str, cube_of: MakeCube) -> None:
    with pytest.raises(ValueError, match=r"policy = 'sq'.*must be one of scheme1"):
        figures.draw(kind, cube_of(), {"policies": ["sq"]})
    with pytest.raises(ValueError, match=r"arrival_rate = 0\.4.*must be one of 0\.3"):
        figures.draw(kind, cube_of(), {"rates": [0.4]})


@pytest.mark.parametrize("kind", REGIME_KINDS)
def test_betas_that_are_not_there_are_refused(kind: str, regime_cube_of: MakeCube) -> None:
    with pytest.raises(ValueError, match=r"beta = 0\.4.*must be one of 0\.5"):
        figures.draw(kind, regime_cube_of(), {"betas": [0.4]})


@pytest.mark.parametrize("kind", figures.kinds())
def test_an_empty_cube_is_refused(kind: str, cube_for: Callable[[str], xr.Dataset]) -> None:
    cube = cube_for(kind)
    empty = cube.assign({name: array * np.nan for name, array in cube.data_vars.items()})
    with pytest.raises(ValueError, match="the cube holds no value"):
        figures.draw(kind, empty)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - OF_FINITE_SYSTEMS))
def test_theory_alone_is_enough(kind: str, cube_of: MakeCube) -> None:
    cube = cube_of(policies=SCHEMES).sel({"method_name": ["mean_field"]}).isel(n_servers=[-1])
    figure = figures.draw(kind, cube)
    assert bars(figure) == []
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert not any(label.startswith("simulation") for label in labels)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - WITHOUT_BARS - {"queue_tails"}))
def test_simulation_alone_is_enough(kind: str, cube_of: MakeCube) -> None:
    cube = cube_of(policies=SCHEMES).sel({"method_name": ["simulation"]}).isel(n_servers=slice(-1))
    figure = figures.draw(kind, cube)
    figure.canvas.draw()
    assert bars(figure)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert not any(label.startswith("mean field") for label in labels)


def test_an_unknown_kind_is_refused(cube_of: MakeCube) -> None:
    with pytest.raises(ValueError, match=r"kind = 'queue_tail'.*did you mean 'queue_tails'"):
        figures.load("queue_tail")
    with pytest.raises(ValueError, match="kind = 'style'"):
        figures.draw("style", cube_of())


def test_drawing_leaves_settings_alone(cube_of: MakeCube) -> None:
    before = dict(mpl.rcParams)
    figures.draw("sojourn_against", cube_of())
    assert dict(mpl.rcParams) == before


def test_options_are_read_without_matplotlib() -> None:
    code = (
        "import sys; from manyserver import figures\n"
        "for kind in figures.kinds(): figures.load(kind).options_class()\n"
        "print([name for name in ('matplotlib', 'seaborn') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_ratios_to_a_policy(cube_of: MakeCube) -> None:
    cube = cube_of()
    label = "scheme2 d=(2,2)"
    figure = figures.draw("sojourn_against", cube, {"baseline": label})
    values = cube.sojourn_mean.sel(method_name="mean_field", n_servers=np.inf).isel(system=0)
    expected = (values.isel(policy=0) / values.sel(policy=label)).values
    assert any(np.array_equal(line.get_ydata(), expected) for line in figure.axes[1].get_lines())
    with pytest.raises(ValueError, match="baseline = 'sq'"):
        figures.draw("sojourn_against", cube, {"baseline": "sq"})


def test_deviations_within_their_half_width_are_bounds(cube_of: MakeCube) -> None:
    cube = cube_of(policies=SCHEMES, precision=0.5)
    figure = figures.draw("sojourn_against", cube, DEVIATION)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "upper bound (95 %)" in labels


@pytest.fixture
def swept(cube_of: MakeCube) -> xr.Dataset:
    """Return a cube with an axis d of the study's own."""
    parts = [
        cube_of(policies=[(f"Scheme {i}", f"scheme{i}", {"d": [d, d]}) for i in (1, 2)])
        for d in (1, 2)
    ]
    axis = xr.DataArray([1.0, 2.0], dims="d", name="d")
    joined = xr.concat(parts, axis, coords="different", compat="equals", join="outer")
    joined["d"].attrs = {"symbol": "d", "long_name": "choices", "exact": "1, 2"}
    return joined


def test_any_axis_can_be_the_horizontal_one(swept: xr.Dataset) -> None:
    figure = figures.draw("sojourn_against", swept, {"x": "d", "curves": "arrival_rate"})
    assert [axes.get_title() for axes in figure.axes] == ["Scheme 1", "Scheme 2"]
    assert figure.axes[0].get_xlabel() == "Choices, $d$"
    limit = swept.sojourn_mean.sel(method_name="mean_field", n_servers=np.inf).isel(system=0)
    lines = figure.axes[1].get_lines()
    for rate in swept.arrival_rate.values:
        wanted = limit.sel(policy="Scheme 2", arrival_rate=rate).values
        assert any(np.array_equal(line.get_ydata(), wanted) for line in lines)
    assert list(np.asarray(lines[0].get_xdata())) == [1.0, 2.0]
    with pytest.raises(ValueError, match="x = 'r': is not in the cube; must be one of arrival"):
        figures.draw("sojourn_against", swept, {"x": "r"})


def test_axes_that_are_not_drawn_have_panels(swept: xr.Dataset) -> None:
    figure = figures.draw("sojourn_against", swept)
    assert [axes.get_title() for axes in figure.axes] == ["$d = 1$", "$d = 2$"]
    alone = figures.draw("sojourn_against", swept, {"at": {"d": [2]}})
    assert len(alone.axes) == 1
    # What does not know of the axis takes its values for policies of their own.
    tails = figures.draw("queue_tails", swept, {"rates": [0.9]})
    titles = [axes.get_title() for axes in tails.axes]
    assert all(any(f"Scheme {i}, $d = {d}$" in t for t in titles) for i in (1, 2) for d in (1, 2))


def test_numbers_of_servers_can_have_curves(cube_of: MakeCube) -> None:
    cube = cube_of(policies=SCHEMES)
    figure = figures.draw("sojourn_against", cube, {"curves": "n_servers"})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"$N = 10$", "$N = 100$", "$N = 1000$", r"$N \to \infty$"} <= set(labels)


def test_a_map_of_many_points_has_areas_and_boundaries(swept: xr.Dataset) -> None:
    grid = np.linspace(0.3, 0.9, 30)
    # The first policy is better above the diagonal.
    values = np.stack([1 + grid[None, :] + 0 * grid[:, None], 1 + grid[:, None] + 0 * grid])
    axes = ("method_name", "system", "policy", "r", "n_servers", "load")
    cube = xr.Dataset(
        {"sojourn_mean": (axes, values[None, None, :, :, None, :])},
        coords={
            "method_name": ["mean_field"],
            "system": ["one"],
            "policy": ["Scheme 1", "Scheme 2"],
            "policy_name": ("policy", ["scheme1", "scheme2"]),
            "policy_parameters": ("policy", ['{"d": [1, 1]}'] * 2),
            "pool_speed": (("system", "r", "pool"), np.ones((1, 30, 2))),
            "r": ("r", grid, {"exact": "", "symbol": "r"}),
            "n_servers": [np.inf],
            "load": grid,
        },
    )
    figure = figures.draw("map", cube, {"y": "r"})
    drawn = figure.axes[0].collections
    (areas,) = [collection for collection in drawn if isinstance(collection, QuadMesh)]
    winners: np.ndarray = np.ma.filled(np.ma.asarray(areas.get_array()), np.nan).reshape(30, 30)
    assert np.isnan(np.diag(winners)).all()
    assert (winners[np.triu_indices(30, 1)] == 1).all()
    assert (winners[np.tril_indices(30, -1)] == 0).all()
    lines = [collection for collection in drawn if isinstance(collection, ContourSet)]
    ends = [np.asarray(path.vertices) for line in lines for path in line.get_paths()]
    assert sum(map(len, ends)) > 10
    assert max(np.abs(points[:, 0] - points[:, 1]).max() for points in ends) < 0.025
    margin = figures.draw("map", cube, {"y": "r", "show": "margin"})
    assert margin.axes[-1].get_ylabel().startswith("Scheme 1 worse than")
    assert len(figures.draw("map", cube, {"y": "r", "show": "value"}).axes) == 2 + 1


def test_growth_is_written_beside_the_tails(cube_of: MakeCube) -> None:
    policies = [("sq d=2", "sq", {"d": 2})]
    cube = cube_of(systems={"equal": [("1", "1")]}, policies=policies, arrival_rates=[0.9])
    figure = figures.draw("queue_tails", cube)
    assert "2.0000000" in [text.get_text() for text in figure.axes[0].texts]
    assert figures.draw("queue_tails", cube, {"fit": False}).axes[0].texts[:] == []


def test_slopes_are_written_and_exact_values_are_ringed(cube_of: MakeCube) -> None:
    cube = cube_of(policies=SCHEMES, arrival_rates=[0.9], n_servers=(10, 30, 100, 300, 1000))
    exact = cube.sel({"method_name": ["simulation"]}).assign_coords(method_name=["exact"])
    for name in [name for name in exact.data_vars if str(name).endswith("_half_width")]:
        exact[name] = exact[name] * np.nan
    exact = exact.where(exact["n_servers"] == 10)
    both = xr.concat([cube, exact], "method_name", data_vars="minimal", join="outer")
    for kind in ("convergence", "propagation_of_chaos"):
        figure = figures.draw(kind, both)
        assert "exact chain" in [text.get_text() for text in figure.legends[0].get_texts()]
        texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
        assert all("slope" in text for text in texts)
        rings = [
            line
            for axes in figure.axes
            for line in axes.get_lines()
            if line.get_markerfacecolor() == "none" and len(np.asarray(line.get_xdata()))
        ]
        assert {tuple(np.asarray(line.get_xdata())) for line in rings} == {(10.0,)}
        near = ("\N{MINUS SIGN}1.0", "\N{MINUS SIGN}0.99")
        assert any(text.startswith(near) for panel in texts for text in panel)


def test_rows_of_the_convergence_are_chosen(cube_of: MakeCube) -> None:
    cube = cube_of(policies=SCHEMES, arrival_rates=[0.9])
    figure = figures.draw("convergence", cube, {"show": ["fluctuation"], "level": 2})
    assert len(figure.axes) == 2
    assert figure.axes[0].get_ylabel() == "Standard deviation\nof $u_{2}$, pool 0"


def test_slopes_of_the_regime_are_those_of_the_cube(regime_cube_of: MakeCube) -> None:
    figure = figures.draw("halfin_whitt_convergence", regime_cube_of(betas=[1.0]))
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert all(panel[-1] == "exponent" for panel in texts[:3])
    slopes = [float(panel[0].split("(")[0].replace("\N{MINUS SIGN}", "-")) for panel in texts[:3]]
    assert slopes == pytest.approx([-0.5] * 3, abs=0.01)
    # The Kolmogorov distance of Q2 has the exponent -theta/2, with theta = exp(-1) here.
    assert texts[3][0].startswith("\N{MINUS SIGN}0.18")
    assert texts[3][0].endswith("[\N{MINUS SIGN}0.1839]")


def test_panels_of_the_regime_are_chosen(regime_cube_of: MakeCube) -> None:
    cube = regime_cube_of().sel({"method_name": ["chain"]})
    with pytest.raises(ValueError, match="mean, bound: the cube holds no value to draw"):
        figures.draw("halfin_whitt_convergence", cube, {"show": ["mean", "bound"]})
    figure = figures.draw("halfin_whitt_convergence", cube, {"show": ["wasserstein", "mean"]})
    assert [axes.get_ylabel() for axes in figure.axes] == [r"$W_1(Q_2/\sqrt{n},\, Y_2)$"]


def test_finite_systems_are_chosen(regime_cube_of: MakeCube) -> None:
    cube = regime_cube_of(betas=[1.0])
    figure = figures.draw("joint_density", cube, {"n_servers": [100]})
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["$n = 100$", "diffusion"]
    figure = figures.draw("spectral_gap", cube, {"n_servers": [25, 400]})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [label for label in labels if "n =" in label] == ["$n = 25$", "$n = 400$"]
    with pytest.raises(ValueError, match=r"n_servers = 7\.0.*must be one of 25"):
        figures.draw("joint_density", cube, {"n_servers": [7]})


@pytest.mark.parametrize("kind", ["sojourn_against", "sojourn_against_messages", "targets"])
@pytest.mark.parametrize("label", ["x" * 300, "many words " * 30, "y" * 40 + r" $\frac{1}{2}$"])
def test_long_labels_leave_room_for_the_panels(kind: str, label: str, cube_of: MakeCube) -> None:
    labels = [f"{i} {label}" for i in (1, 2)] + [f"{label} 3"]
    policies = [(text, "scheme1", {"d": [d, 2]}) for d, text in enumerate(labels, start=1)]
    cube = cube_of(policies=policies, arrival_rates=[0.9], n_servers=[10])
    more = {"baseline": labels[0]} if kind == "sojourn_against" else {}
    figure = figures.draw(kind, cube, {"width": "column", **more})
    assert all(axes.get_window_extent().width > 0.1 * figure.dpi for axes in figure.axes)


def test_the_stability_limit_has_no_rate(swept: xr.Dataset) -> None:
    limit = xr.DataArray([[[1.0, 1.0], [0.4, 0.8]]], dims=("system", "policy", "d"))
    cube = swept.assign_coords(stability_limit=limit)
    figure = figures.draw("sojourn_against", cube, {"x": "d", "quantity": "stability_limit"})
    (axes,) = figure.axes
    lines = [np.asarray(line.get_ydata()).tolist() for line in axes.get_lines()]
    assert [line for line in lines if line] == [[1.0, 1.0], [0.4, 0.8]]
    assert axes.get_ylabel() == r"Largest stable load of the policy, $\rho^*$"
