"""Where policies cross, and how much better one is than another at most."""

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.axes import own_axes
from manyserver.analysis.curves import (
    NORMAL_QUANTILE,
    methods_of,
    points,
    rate_dimension,
    select,
    standard_errors,
)
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.row import fit_row
from manyserver.methods import METHOD, Role
from manyserver.statistics.rates import Rate
from manyserver.variables import MeanName

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = ["CrossingsFit", "Options"]


class Options(FitOptions):
    """What to fit."""

    x: str | None = None
    """The axis along which policies cross: the swept one of `load` and `arrival_rate`, which is the
    default, or one of the study's own."""
    quantity: MeanName = "sojourn_mean"
    """The variable of which less is better."""


class CrossingsFit(Fit[Options]):
    """Find where the order of policies changes."""

    name = "crossings"
    title = (
        "Where along an axis one policy becomes better than another, and how much better each is "
        "at most."
    )
    options_class = Options
    across_axes = True

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as the mean field."""
        yield study.lacks(Role.LIMIT, Role.SIMULATION)
        if options.x == "n_servers":
            yield "another x than n_servers"
        if len({point.labels["policy"] for point in study.chosen}) < 2:
            yield "two policies"

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every two policies, in the limit and simulated.

        One for each crossing, and one for the largest advantage of either policy, as a part of its
        own value. The quantity names the other policy.
        """
        from manyserver.statistics.crossings import crossings

        x = options.x or rate_dimension(cube)
        if x not in cube.dims:
            raise ValueError(f"x = {x!r}: is not an axis of the cube")
        cube = select(cube, system=options.systems, policy=options.policies)
        fixed = {"system", "n_servers", rate_dimension(cube), *own_axes(cube)} - {x}
        for method in methods_of(cube, Role.LIMIT, Role.SIMULATION):
            for line in points(cube.sel({METHOD: method}), *sorted(fixed)):
                known = np.isfinite(line[options.quantity].transpose("policy", x).values)
                for one, other in combinations(np.flatnonzero(known.any(axis=1)), 2):
                    pair = [line.isel(policy=int(place)) for place in (one, other)]
                    values = [np.asarray(curve[options.quantity].values) for curve in pair]
                    errors = [standard_errors(curve, options.quantity) for curve in pair]
                    noise = np.hypot(*(0 * values[0] if e is None else e for e in errors))
                    where = np.asarray(line[x].values, dtype=float)
                    told: dict[str, Any] = {
                        "method": method,
                        "n_servers": float(line["n_servers"]),
                    }
                    for found in crossings(where, values[0] - values[1], noise):
                        yield fit_row(
                            pair[0],
                            _rate(found.place, found.half_width, found.window, _note(found)),
                            quantity=f"{options.quantity} - that of {pair[1]['policy'].item()}",
                            parameter=f"crossing in {x}",
                            **told,
                        )
                    yield from _margins(pair, where, values, noise, x, options.quantity, told)


def _margins(
    pair: "list[xr.Dataset]",
    where: np.ndarray,
    values: list[np.ndarray],
    noise: np.ndarray,
    x: str,
    quantity: str,
    told: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield the largest advantage of either policy over the other, if there is one."""
    for better, worse in ((0, 1), (1, 0)):
        lead = values[worse] / values[better] - 1
        if not np.isfinite(lead).any():
            continue
        place = int(np.nanargmax(lead))
        half_width = NORMAL_QUANTILE * float(noise[place] / values[better][place])
        if lead[place] <= max(half_width, 1e-9):
            continue
        note = f"at {x} = {where[place]:g}"
        yield fit_row(
            pair[better],
            _rate(float(lead[place]), half_width, (where[0], where[-1]), note),
            quantity=f"{quantity} of {pair[worse]['policy'].item()}",
            parameter="largest advantage",
            **told,
        )


def _note(found: Any) -> str:
    order = "better before" if found.rises else "better after"
    if np.isnan(found.half_width):
        return f"{order}; too few points to tell its error"
    return order


def _rate(estimate: float, half_width: float, window: tuple[float, float], note: str) -> Rate:
    return Rate(
        estimate=estimate,
        standard_error=half_width / NORMAL_QUANTILE,
        prefactor=np.nan,
        window=window,
        n_points=2,
        excluded=(),
        note=note,
    )
