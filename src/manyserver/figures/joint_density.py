"""The joint law of idle servers and waiting customers, of finite systems and of the limit."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import select
from manyserver.figures.base import FigureKind, RegimeOptions, slices
from manyserver.methods import METHOD, Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply

__all__ = ["JointDensityFigure", "Options"]

DENSITY = "joint_density"


class Options(RegimeOptions):
    """What is drawn, and how."""

    n_servers: list[int] | None = Field(default=None, min_length=1)
    """Numbers of servers that are drawn, besides the limit; all if left out."""
    decades: float = Field(default=4.0, gt=0)
    """Powers of ten between the largest density drawn and the smallest."""


class JointDensityFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "joint_density"
    title = (
        "The joint law of idle servers and waiting customers, of finite systems and of the limit."
    )
    model = "halfin_whitt"
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as joint laws."""
        yield study.lacks(Role.EXACT, Role.LIMIT, joint=True)

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw densities as colours, one panel per beta and number of servers.

        All panels have one scale, logarithmic, with contours at every power of ten. The cells of
        the smallest x2 hold what is an atom at Q2 = 0 of a finite system, and a singularity of the
        limit.

        Raises
        ------
        ValueError
            If a label is not in the cube, or there is nothing to draw.
        """
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LogNorm
        from matplotlib.ticker import MaxNLocator

        from manyserver.figures.drawing import legends, marks, style

        servers = None if options.n_servers is None else [*map(float, options.n_servers)]
        if servers is not None and np.inf in cube["n_servers"].values:
            servers.append(np.inf)
        cube = select(cube, beta=options.betas, n_servers=servers)
        parts = slices(cube, DENSITY, "beta", "n_servers", METHOD)
        grids = [_grid(part) for part in parts]
        top = max(float(density.max()) for _, _, density in grids)
        norm = LogNorm(top / 10**options.decades, top)
        figure, panels = marks.panels(
            len(parts),
            options.width,
            height=2.3,
            x_label=style.AXIS_LABELS["y1"],
            y_label=style.AXIS_LABELS["y2"],
            sharex=True,
            sharey=True,
        )
        for part, (y1, y2, density), axes in zip(parts, grids, panels, strict=True):
            axes.pcolormesh(
                y1, y2, density.T, norm=norm, cmap="mako_r", shading="nearest", rasterized=True
            )
            powers = np.arange(np.ceil(np.log10(norm.vmin or 1.0)), np.log10(top))
            axes.contour(y1, y2, density.T, levels=10.0**powers, colors="0.25", linewidths=0.5)
            axes.set_title(_title(part, several=cube.sizes["beta"] > 1))
            axes.xaxis.set_major_locator(MaxNLocator(5))
        bar = figure.colorbar(ScalarMappable(norm, "mako_r"), ax=panels, pad=0.02, aspect=30)
        bar.set_label("density")
        contour = legends.line_entry("powers of ten")
        contour.set_linewidth(0.5)
        legends.legend(figure, [contour], [], options.title)
        return figure


def _grid(part: "xr.Dataset") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x1, x2 and the density without the ends that other panels have."""
    y1, y2 = (part[name].values for name in ("y1_grid", "y2_grid"))
    first, second = np.isfinite(y1), np.isfinite(y2)
    density = part[DENSITY].transpose("x1", "x2").values[first][:, second]
    return y1[first], y2[second], density


def _title(part: "xr.Dataset", several: bool) -> str:
    n = float(part["n_servers"])
    text = "diffusion" if np.isinf(n) else f"$n = {n:.0f}$"
    return rf"{text}, $\beta = {float(part['beta']):g}$" if several else text
