"""Mean sojourn time against d, the number of servers looked at in each pool."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from manyserver.analysis.curves import rate_dimension
from manyserver.figures.base import (
    Curve,
    FigureKind,
    FigureOptions,
    chosen,
    finite_servers,
    read,
    slices,
)
from manyserver.methods import Role

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from manyserver.analysis.supply import Supply

__all__ = ["Options", "SojournAgainstChoicesFigure"]


class Options(FigureOptions):
    """What is drawn, and how."""

    quantity: Literal["sojourn_mean", "jobs_per_server", "waiting_probability"] = "sojourn_mean"
    """The variable on the vertical axis."""
    n_servers: int | None = None
    """Number of servers of the simulations drawn; the largest if left out."""
    scale: Literal["linear", "log"] = "linear"
    """Scale of the vertical axes."""
    relative: bool = False
    """Whether to draw the ratio to the first family of policies, which must have every d drawn."""


class SojournAgainstChoicesFigure(FigureKind[Options]):
    """See :class:`~manyserver.figures.base.FigureKind`."""

    name = "sojourn_against_choices"
    title = "Mean sojourn time against d, the number of servers looked at in each pool."
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as a policy with d."""
        yield study.lacks(Role.LIMIT, Role.SIMULATION)
        told = (point.subject.parameters["policy"] for point in study.chosen)
        if all(_same_d(parameters) is None for parameters in told):
            yield "policies that look at the same number d of servers in every pool"

    def draw(self, cube: "xr.Dataset", options: Options) -> "Figure":
        """Draw one panel for every system and arrival rate, one curve for every family of policies.

        Policies that differ in nothing but `d` are one family. Those that look at different numbers
        of servers in different pools have no place on the axis and are left out.

        Raises
        ------
        ValueError
            If a label is not in the cube, or no policy has a `d`.
        """
        from manyserver.figures.drawing import legends, marks, style

        cube = chosen(cube, options)
        families = _families(cube)
        if not families:
            raise ValueError("policies: none looks at the same number d of servers in every pool")
        firsts = [members[0][1] for members in families.values()]
        looks = style.looks(cube.isel(policy=firsts), without=("d",))
        n_servers = finite_servers(cube, options.n_servers)
        dimension = rate_dimension(cube)
        parts = slices(cube, options.quantity, "system", dimension)
        figure, panels = marks.panels(
            len(parts),
            options.width,
            height=1.9,
            x_label=style.AXIS_LABELS["choices"],
            y_label=f"Ratio to {looks[0].label}"
            if options.relative
            else style.variable_label(options.quantity),
            sharex=True,
        )
        limit = finite = False
        for here, axes in zip(parts, panels, strict=True):
            for role, n in ((Role.LIMIT, np.inf), (Role.SIMULATION, n_servers or np.nan)):
                curves = [
                    _curve(here, members, options.quantity, role, n)
                    for members in families.values()
                ]
                if options.relative:
                    curves = [curve.relative_to(curves[0]) for curve in curves]
                for curve, look in zip(curves, looks, strict=True):
                    if role is Role.LIMIT:
                        limit |= marks.theory(axes, curve, look)
                    else:
                        finite |= marks.markers(axes, curve, look)
            axes.set_yscale(options.scale)
            if options.scale == "log":
                marks.plain_numbers(axes)
            rate = style.rate_label(float(here[dimension]), dimension)
            axes.set_title(f"{here['system'].values}, {rate}" if cube.sizes["system"] > 1 else rate)
        panels[0].xaxis.set_major_locator(marks.whole_numbers())
        legends.legend(
            figure,
            [legends.entry(look, limit, finite) for look in looks],
            legends.method_entries(limit, finite, n_servers),
            options.title,
        )
        return figure


def _families(cube: "xr.Dataset") -> dict[str, list[tuple[int, int]]]:
    """Return, for every family of policies, its (d, position in the cube), by increasing d."""
    found: dict[str, list[tuple[int, int]]] = {}
    for place, text in enumerate(cube["policy_parameters"].values):
        parameters = json.loads(str(text))
        d = _same_d(parameters)
        if d is None:
            continue
        del parameters["d"]
        key = f"{cube['policy_name'].values[place]} {json.dumps(parameters, sort_keys=True)}"
        found.setdefault(key, []).append((d, place))
    return {key: sorted(members) for key, members in found.items()}


def _same_d(parameters: Mapping[str, Any]) -> int | None:
    """Return the d of a policy; None if it has none, or another one in another pool."""
    d = parameters.get("d")
    counts = set(d) if isinstance(d, (list, tuple)) else {d}
    return counts.pop() if len(counts) == 1 else None


def _curve(
    here: "xr.Dataset",
    members: list[tuple[int, int]],
    quantity: str,
    role: Role,
    n_servers: float,
) -> Curve:
    d = np.array([count for count, _ in members], dtype=float)
    there = here.isel(policy=[place for _, place in members]).assign_coords(policy=d)
    return read(there, quantity, "policy", role, n_servers)
