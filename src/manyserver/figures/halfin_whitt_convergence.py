"""How join the shortest queue approaches its diffusion limit, and the bound for all n."""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import at_limit, method_of, methods_of, points, select
from manyserver.analysis.rounding import with_error
from manyserver.figures.base import Curve, FigureKind, RegimeOptions, read
from manyserver.fits.halfin_whitt_rates import (
    deviations,
    expected_exponent,
    exponent,
    small_exponent,
)
from manyserver.methods import Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply
    from manyserver.figures.drawing.style import Look

__all__ = ["HalfinWhittConvergenceFigure", "Options"]

Panel = Literal["mean", "wasserstein", "idle", "kolmogorov", "third", "bound"]
LIMIT, EXACT, SIMULATION = Role.LIMIT, Role.EXACT, Role.SIMULATION
MEAN = "scaled_waiting_mean"
QUANTITIES = {
    "mean": MEAN,
    "wasserstein": "q2_wasserstein",
    "idle": "q1_wasserstein",
    "kolmogorov": "q2_kolmogorov",
}
METHODS: dict[Panel, tuple[tuple[Role, ...], ...]] = {
    "mean": ((EXACT, SIMULATION), (LIMIT,)),
    "wasserstein": ((EXACT,),),
    "idle": ((EXACT,),),
    "kolmogorov": ((EXACT,),),
    "third": ((EXACT,),),
    "bound": ((LIMIT,),),
}
"""Methods that a panel needs, one of each group."""
LABELS = {
    "mean": r"$E\,Y_2 - E\,Q_2/\sqrt{n}$",
    "wasserstein": r"$W_1(Q_2/\sqrt{n},\, Y_2)$",
    "idle": r"$W_1((Q_1 - n)/\sqrt{n},\, Y_1)$",
    "kolmogorov": r"Kolmogorov$(Q_2/\sqrt{n},\, Y_2)$",
    "third": r"$E\,Q_3$",
    "bound": r"$E\,Q_2/\sqrt{n}$ and its bounds",
}
LEAST = 1e-12
"""Smaller means of Q3 are rounding."""
MOST_ERROR = 0.6
"""Largest relative error of a mean of Q3 that is drawn; the panel spans many powers of ten."""


class Options(RegimeOptions):
    """What is drawn, and how."""

    show: tuple[Panel, ...] = Field(
        default=("mean", "wasserstein", "idle", "kolmogorov", "third", "bound"), min_length=1
    )
    """Panels: deviation of the mean of Q2, Wasserstein distances of Q2 and of Q1, Kolmogorov
    distance of Q2, mean of Q3, and the bound of the mean of Q2."""


class HalfinWhittConvergenceFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "halfin_whitt_convergence"
    title = "How join the shortest queue approaches its diffusion limit, and the bound for all n."
    model = "halfin_whitt"
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as the diffusion."""
        lacks = [
            [study.lacks(*names, **_more(panel)) for names in METHODS[panel]]
            for panel in options.show
        ]
        if all(any(panel) for panel in lacks):
            yield next(filter(None, lacks[0]))

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw deviations from the diffusion against the number of servers, one curve per beta.

        Exact values as markers with lines, simulation as rings with half-widths, and the fitted
        exponents of n. The Kolmogorov distance of Q2 has the asymptote of P(Q2 = 0), dashed, of
        exponent -theta/2; all else falls like n**(-1/2). The bound is C(beta) of Theorem 2 of
        arXiv:1801.05121.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = select(cube, beta=options.betas)
        shown = [panel for panel in options.show if _known(cube, panel)]
        if not shown:
            raise ValueError(f"{', '.join(options.show)}: the cube holds no value to draw")
        columns = min(marks.COLUMNS[options.width], len(shown))
        rows = -(-len(shown) // columns)
        figure, panels = marks.grid(rows, columns, options.width, 2.2)
        looks = style.beta_looks([float(beta) for beta in cube["beta"].values])
        simulated = asymptote = False
        for panel, axes in zip(shown, marks.without_spare(panels.ravel(), len(shown)), strict=True):
            if panel == "bound":
                _draw_bound(axes, cube, looks)
            elif panel == "third":
                simulated |= _draw_third(axes, cube, looks)
            else:
                simulated |= _draw_deviation(axes, cube, panel, looks)
                asymptote |= panel == "kolmogorov"
            axes.set_ylabel(LABELS[panel])
            axes.set_xlabel(style.AXIS_LABELS["beta" if panel == "bound" else "n"])
        meanings = [legends.line_entry("exact")]
        meanings += [legends.simulation_entry()] * simulated
        meanings += [legends.slope_entry(-0.5)] * any(panel in LABELS for panel in shown[:3])
        if asymptote:
            meanings.append(legends.asymptote_entry(r"$P(Q_2 = 0) \sim c\,n^{-\theta/2}$"))
        legends.legend(figure, [legends.entry(look) for look in looks], meanings, options.title)
        return figure


def _more(panel: Panel) -> dict[str, Any]:
    """Return the options with which a method gives what a panel shows."""
    return {"distances": True} if METHODS[panel] == ((EXACT,),) and panel != "third" else {}


def _known(cube: "xr.Dataset", panel: Panel) -> bool:
    name = {"third": "q3_mean", "bound": MEAN}.get(panel, QUANTITIES.get(panel, ""))
    if name not in cube:
        return False
    if not all(methods_of(cube, *roles) for roles in METHODS[panel]):
        return False
    return bool(np.isfinite(cube[name].values).any())


def _draw_deviation(axes: "Axes", cube: "xr.Dataset", panel: Panel, looks: "list[Look]") -> bool:
    """Draw exact and simulated deviations; return whether there were simulated ones."""
    from manyserver.figures.drawing import marks

    quantity, lines, simulated = QUANTITIES[panel], [], False
    for here, look in zip(points(cube, "beta"), looks, strict=True):
        series = _series(here, quantity, EXACT)
        if series is not None:
            exact = _curve(series[0], np.abs(series[1]))
            marks.joined(axes, exact, look)
            if panel == "kolmogorov":
                _draw_asymptote(axes, here, exact, look)
            rate = exponent(here, quantity, series)
            if np.isfinite(rate.estimate):
                text = with_error(rate.estimate, rate.standard_error)
                if panel == "kolmogorov":
                    text += f"  [{expected_exponent(here, quantity):.4f}]"
                lines.append((text.replace("-", "\N{MINUS SIGN}"), look))
        if panel == "mean":
            simulated |= _draw_simulation(axes, here, look)
    axes.set(xscale="log", yscale="log")
    if panel != "kolmogorov":
        marks.slope_guide(axes, -0.5)
    if lines:
        heading = r"exponent [$-\theta/2$]" if panel == "kolmogorov" else "exponent"
        marks.corner_text(axes, heading, lines, left=True)
        marks.room_below(axes, len(lines) + 1, share=0.75 if panel == "kolmogorov" else 0.45)
    return simulated


def _series(here: "xr.Dataset", quantity: str, role: Role) -> tuple | None:
    if not method_of(here, role):
        return None
    return deviations(here, quantity, role, LIMIT)


def _draw_simulation(axes: "Axes", here: "xr.Dataset", look: "Look") -> bool:
    from manyserver.figures.drawing import marks

    if not (method_of(here, SIMULATION) and method_of(here, LIMIT)):
        return False
    in_limit = at_limit(here, LIMIT, MEAN)
    if in_limit is None:
        return False
    found = read(here, MEAN, "n_servers", SIMULATION).known
    curve = Curve(found.x, np.abs(float(in_limit) - found.values), found.half_widths)
    return marks.ringed_bars(axes, curve.at(curve.values > curve.half_widths), look)


def _draw_asymptote(axes: "Axes", here: "xr.Dataset", exact: Curve, look: "Look") -> None:
    """Draw the asymptote of P(Q2 = 0), unless it is still far below the distance."""
    from manyserver.figures.drawing import marks

    theta = small_exponent(here)
    if "y2_small_constant" not in here or not np.isfinite(theta) or not exact.x.size:
        return
    factor = float(here["y2_small_constant"].max()) * math.gamma(1 + theta)
    ends = exact.x[[0, -1]]
    values = factor * ends ** (-theta / 2)
    if values[-1] > exact.values[-1] / 2:
        axes.plot(ends, values, color=look.colour, linestyle=marks.GUIDE, linewidth=0.7)


def _draw_third(axes: "Axes", cube: "xr.Dataset", looks: "list[Look]") -> bool:
    """Draw the mean of Q3, which falls faster than any power; return whether simulated."""
    from manyserver.figures.drawing import marks

    simulated = False
    for here, look in zip(points(cube, "beta"), looks, strict=True):
        curve = read(here, "q3_mean", "n_servers", EXACT)
        errors = read(here, "q3_mean_error", "n_servers", EXACT).values
        known = (curve.values > LEAST) & (errors < MOST_ERROR * curve.values)
        marks.joined(axes, curve.at(known), look)
        found = read(here, "q3_mean", "n_servers", SIMULATION)
        simulated |= marks.ringed_bars(axes, found.at(found.values > found.half_widths), look)
    axes.set(xscale="log", yscale="log")
    marks.few_numbers(axes.xaxis)
    return simulated


def _draw_bound(axes: "Axes", cube: "xr.Dataset", looks: "list[Look]") -> None:
    """Draw the limit of the mean of Q2, the means of finite systems, and the bounds of all."""
    from manyserver.diffusion.halfin_whitt import mean_waiting_bound
    from manyserver.figures.drawing import marks

    betas = np.asarray(cube["beta"].values, dtype=float)
    fine = np.geomspace(betas[0], betas[-1], 60) if betas.size > 1 else betas
    bounds: list[tuple[str, Callable[[float], float]]] = [
        (r"$C(\beta)$", mean_waiting_bound),
        ("sharper", lambda beta: mean_waiting_bound(beta, sharper=True)),
    ]
    for style, (text, bound) in zip(("-", marks.GUIDE), bounds, strict=True):
        heights = [bound(beta) for beta in fine]
        axes.plot(fine, heights, color=marks.GREY, linestyle=style)
        axes.annotate(
            text,
            (fine[-1], heights[-1]),
            xytext=(0, 3),
            textcoords="offset points",
            horizontalalignment="right",
            fontsize="small",
            color=marks.GREY,
        )
    limit = [at_limit(here, LIMIT, MEAN) for here in points(cube, "beta")]
    values = np.array([np.nan if value is None else float(value) for value in limit])
    axes.plot(betas, values, color="0.1", linewidth=0.8, zorder=1)
    for beta, value, look in zip(betas, values, looks, strict=True):
        marks.joined(axes, _curve(np.array([beta]), np.array([value])), look)
    axes.annotate(
        r"$E\,Y_2$",
        (betas[betas.size // 2], values[betas.size // 2]),
        xytext=(-4, -4),
        textcoords="offset points",
        horizontalalignment="right",
        verticalalignment="top",
        fontsize="small",
        color="0.1",
    )
    axes.set_yscale("log")


def _curve(x: np.ndarray, y: np.ndarray) -> Curve:
    return Curve(x, y, np.zeros(x.size)).known
