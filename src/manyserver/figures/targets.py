"""Which policies keep a percentile of the sojourn time within a target, at which load."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from manyserver.analysis.curves import rate_dimension
from manyserver.figures.base import FigureKind, FigureOptions, chosen
from manyserver.fits.targets import (
    Answer,
    Target,
    Verdict,
    answerable,
    answers,
    best,
    judged,
    largest_servers,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply

__all__ = ["Options", "TargetsFigure"]

QUANTITY = "sojourn_quantile"
COLOURS: dict[Verdict, str] = {
    "meets": "#9ecae1",
    "cannot tell": "#f0f0f0",
    "does not meet": "#fdbe85",
}
ROW, MARGIN = 0.19, 0.75
"""Inches: height of a policy's row, and of what is above and below all rows of a panel."""
CELLS = 0.62
"""Part of the width of a panel that its cells take, beside the names of the policies."""
FONT, SMALLEST_FONT, LETTERS = 6.0, 4.0, 4.5
"""Points of the numbers in cells; smaller ones are left out; and widths of a number over that."""


class Options(Target, FigureOptions):
    """What is asked, and how it is drawn."""

    unit_name: str = ""
    """What the unit of times is called, such as s; by default mean sizes."""


class TargetsFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "targets"
    title = "Which policies keep a percentile of the sojourn time within a target, at which load."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as job sizes."""
        yield from answerable(study, options)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw a table of policies against loads for every system and law of the job sizes.

        Each cell holds the percentile with its 95 % half-width in units of the last digit; its
        colour says whether all of the interval, a part or nothing of it is within the target.
        Policies stand in the order of the largest load up to which they meet it.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        if QUANTITY not in cube:
            raise ValueError(
                f"{QUANTITY}: the cube holds no value to draw; the study needs a key jobs"
            )
        servers = largest_servers(cube, options)
        systems = [
            place
            for place in range(cube.sizes["system"])
            if np.isfinite(cube[QUANTITY].isel(system=place).values).any()
            and (options.unit == "mean" or _measured(cube, place))
        ]
        if not systems:
            raise ValueError(f"{QUANTITY}: the cube holds no value to draw")
        columns = min(len(systems), 2 if options.width == "page" else 1)
        rows = -(-len(systems) // columns)
        height = ROW * cube.sizes["policy"] + MARGIN
        figure, panels = marks.grid(rows, columns, options.width, height)
        cell = CELLS * style.WIDTHS[options.width] / columns / cube.sizes[rate_dimension(cube)]
        font = min(FONT, 72 * cell / LETTERS)
        for system, axes in zip(
            systems, marks.without_spare(panels.ravel(), len(systems)), strict=True
        ):
            _draw_table(axes, cube.isel(system=system), options, servers, font)
            if cube.sizes["system"] > 1:
                axes.set_title(str(cube["system"].values[system]))
        figure.supxlabel(style.AXIS_LABELS[rate_dimension(cube)], fontsize="medium")
        figure.supylabel(f"Policy, best $S_{{{options.quantile:g}}}$ on top", fontsize="medium")
        unit = options.unit_name or "mean sizes / speed 1"
        servers_told = "" if np.isinf(servers) else f", $N = {servers:.0f}$"
        asked = f"$S_{{{options.quantile:g}}} \\leq {options.at_most:g}$ {unit}{servers_told}:"
        legends.legend(
            figure,
            [legends.text_entry(asked), *(legends.patch_entry(*item) for item in COLOURS.items())],
            [legends.text_entry("in parentheses: 95 % half-width of the last digit")],
            options.title,
        )
        return figure


def _measured(cube: "xr.Dataset", system: int) -> bool:
    """Whether the job sizes of a system are measured ones."""
    here = cube.isel(system=system)
    return "measured_mean" in here.coords and bool(np.isfinite(here["measured_mean"]))


def _draw_table(
    axes: "Axes", here: "xr.Dataset", options: Options, servers: float, font: float
) -> None:
    from manyserver.figures.drawing import style

    dimension = rate_dimension(here)
    rates = np.asarray(here[dimension].values, dtype=float)
    looks, method = style.looks(here), judged(here, options)
    told = [
        (look.label, answers(here.isel(policy=place), options, servers, method))
        for place, look in enumerate(looks)
    ]
    told = [(label, row) for label, row in told if any(answer.verdict for answer in row)]
    told.sort(key=lambda item: _rank(rates, item[1]))
    for y, (_, row) in enumerate(told):
        for x, answer in enumerate(row):
            if answer.verdict:
                _draw_cell(axes, x, y, answer, font)
    axes.set_xlim(-0.5, len(rates) - 0.5)
    axes.set_ylim(len(told) - 0.5, -0.5)
    axes.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    axes.set_yticks(range(len(told)), [label for label, _ in told])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _rank(rates: np.ndarray, row: list[Answer]) -> tuple[float, float]:
    """Sort by the largest load that meets, then by the percentile at the largest load."""
    last = row[-1].value
    return -float(np.nan_to_num(best(rates, row))), float(np.nan_to_num(last, nan=np.inf))


def _draw_cell(axes: "Axes", x: int, y: int, answer: Answer, font: float) -> None:
    from matplotlib.patches import Rectangle

    colour = COLOURS[answer.verdict]
    axes.add_patch(Rectangle((x - 0.47, y - 0.44), 0.94, 0.88, facecolor=colour, linewidth=0))
    if font >= SMALLEST_FONT:
        axes.text(x, y, _text(answer), ha="center", va="center", fontsize=font)


def _text(answer: Answer) -> str:
    """Write a value with its half-width in units of the last digit.

    Examples
    --------
    >>> [_text(Answer(value, h, "meets")) for value, h in ((8.0912, 0.178), (6.4, 0.096), (70, 5))]
    ['8.1(2)', '6.4(1)', '70(5)']
    """
    if np.isnan(answer.value):
        return answer.reason
    if answer.half_width <= 0:
        return f"{answer.value:.3g}"
    digits = max(0, -int(f"{answer.half_width:.0e}".split("e")[1]))
    return f"{answer.value:.{digits}f}({answer.half_width * 10**digits:.0f})"
