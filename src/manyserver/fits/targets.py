"""Which policies keep a percentile of the sojourn time within a target, and up to which load."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from manyserver.analysis.curves import (
    NORMAL_QUANTILE,
    half_width,
    method_of,
    points,
    rate_dimension,
    required_method,
    select,
)
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.row import fit_row
from manyserver.methods import METHOD, Role
from manyserver.statistics.rates import Rate
from manyserver.study.config.base import Strict

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = [
    "Answer",
    "Options",
    "Target",
    "TargetsFit",
    "Verdict",
    "answerable",
    "answers",
    "best",
    "judged",
    "lacks_percentiles",
    "largest_servers",
    "time_unit",
]

QUANTITY = "sojourn_quantile"
Verdict = Literal["meets", "does not meet", "cannot tell", ""]
UNSTABLE = "unstable"


class Target(Strict):
    """What is asked of the sojourn time."""

    at_most: float = Field(default=10.0, gt=0)
    """Largest value of the percentile that is accepted."""
    quantile: float = 0.99
    """Part of the jobs that must not take longer: 0.5, 0.9, 0.99 or 0.999."""
    unit: Literal["mean", "measured"] = "mean"
    """Unit of all times: the mean job size at speed 1, or that of the file of measured sizes;
    other sizes are then left out."""
    n_servers: int | None = None
    """Number of servers; the largest if left out."""
    method: str | None = None
    """Method of the results that are judged; by default one that simulates, if there is one."""


class Options(Target, FitOptions):
    """What is asked."""


@dataclass(frozen=True)
class Answer:
    """A percentile against its target.

    Parameters
    ----------
    value, half_width : float
        The percentile and its 95 % half-width; NaN if it was not computed.
    verdict : str
        ``meets`` if the whole interval is within the target, ``does not meet`` if none of it is,
        else ``cannot tell``; empty for a point that was not asked for.
    reason : str
        Why there is no value, or no verdict.
    """

    value: float
    half_width: float
    verdict: Verdict
    reason: str = ""


class TargetsFit(Fit[Options]):
    """Judge whether a percentile of the sojourn time is within a target."""

    name = "targets"
    title = (
        "A percentile of the sojourn time at every load: `note` says `meets`, `does not meet` or, "
        "if the target is within the interval, `cannot tell`; and for every policy the largest "
        "load up to which it meets the target."
    )
    options_class = Options

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as job sizes."""
        yield from answerable(study, options)

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield a row for every point, and one for every policy with the largest load that meets.

        The load of a policy is the largest below which it meets the target at every load computed;
        the note says which policies reach the highest of these.
        """
        if QUANTITY not in cube:
            return
        method = judged(cube, options)
        cube = select(cube, system=options.systems, policy=options.policies)
        servers = largest_servers(cube, options)
        dimension = rate_dimension(cube)
        name = f"{100 * options.quantile:g} % of sojourn times"
        for system in points(cube, "system"):
            found = {
                str(curve["policy"].values): (curve, answers(curve, options, servers, method))
                for curve in points(system, "policy")
            }
            for curve, told in found.values():
                for point, answer in zip(points(curve, dimension), told, strict=False):
                    if answer.verdict:
                        where = {"n_servers": servers, "method": method, "quantity": name}
                        yield _row(point, options, answer, float(point[dimension]), where)
            rates = np.asarray(cube[dimension].values, dtype=float)
            reached = {policy: best(rates, told) for policy, (_, told) in found.items()}
            highest = np.nanmax([np.nan_to_num(rate) for rate in reached.values()])
            for policy, (curve, told) in found.items():
                if not any(answer.verdict for answer in told):
                    continue
                note = "highest of all" if reached[policy] == highest else ""
                if np.isnan(reached[policy]):
                    note = "meets at no load"
                yield fit_row(
                    curve.isel({dimension: -1}).drop_vars(
                        ("arrival_rate", "load"), errors="ignore"
                    ),
                    _rate(reached[policy], np.nan, (float(rates[0]), float(rates[-1])), note),
                    method=method,
                    quantity=name,
                    parameter=f"largest {dimension} that meets {options.at_most:g}",
                    n_servers=servers,
                )


def answerable(study: "Supply", target: Target) -> Iterator[str]:
    """Yield what a study lacks of what is judged."""
    if not study.simulates_jobs:
        yield study.lacks_jobs()
        return
    simulated = [name for name in study.methods if name in study.names(Role.SIMULATION)]
    method = target.method or (simulated or list(study.methods))[0]
    yield lacks_percentiles(study, method)
    finite = [n for n in study.axes["n_servers"] if n is not None]
    if method in study.names(Role.LIMIT) and finite:
        names = " or ".join(study.names(Role.SIMULATION))
        yield f"method: {names}; it judges n_servers = {target.n_servers or finite[-1]}"


def lacks_percentiles(study: "Supply", *methods: str) -> str:
    """Say that no method gives percentiles; in the limit only those of exponential sizes are."""
    wanted = methods or (Role.SIMULATION, Role.LIMIT)
    in_limit = study.names(Role.LIMIT)
    for point in study.points(*wanted):
        if point.method not in in_limit or point.subject.jobs.sizes.name == "exponential":
            return ""
    names = " or ".join(study.names(Role.SIMULATION))
    lack = study.lacks(*wanted)
    return lack or f"points of the method {names}, as these sizes are not exponential"


def _row(
    point: "xr.Dataset", target: Target, answer: Answer, rate: float, where: dict[str, Any]
) -> dict[str, Any]:
    note = f"{answer.verdict}: {answer.reason}" if answer.reason else answer.verdict
    error = answer.half_width / NORMAL_QUANTILE
    return fit_row(
        point,
        _rate(answer.value, error, (rate, rate), note),
        parameter=f"percentile, {time_unit(target)}",
        expected=target.at_most,
        **where,
    )


def _rate(value: float, error: float, window: tuple[float, float], note: str) -> Rate:
    return Rate(
        estimate=value,
        standard_error=error,
        prefactor=np.nan,
        window=window,
        n_points=1,
        excluded=(),
        note=note,
        second_term=np.nan,
    )


def time_unit(target: Target) -> str:
    """Say what times are in."""
    return "in mean sizes / speed 1" if target.unit == "mean" else "in units of the file"


def judged(cube: "xr.Dataset", target: Target) -> str:
    """Return the method asked for, or one that simulates, or the first method of the cube.

    Raises
    ------
    ValueError
        If the method asked for is not in the cube.
    """
    if target.method is not None:
        return required_method(cube, target.method)
    return method_of(cube, Role.SIMULATION) or str(cube[METHOD].values[0])


def largest_servers(cube: "xr.Dataset", target: Target) -> float:
    """Return the number of servers asked for, or the largest; infinite if there is no other."""
    if target.n_servers is not None:
        return float(select(cube, n_servers=[float(target.n_servers)])["n_servers"].values[0])
    servers = cube["n_servers"].values
    finite = servers[np.isfinite(servers)]
    return float(finite.max()) if finite.size else float(servers[-1])


def answers(curve: "xr.Dataset", target: Target, servers: float, method: str) -> list[Answer]:
    """Judge a policy at every load; nothing is said in units of a file if there is none.

    Parameters
    ----------
    curve : xarray.Dataset
        A slice with one system, policy and law of the job sizes.
    target : Target
        What is asked.
    servers : float
        Number of servers.
    method : str
        Method of the results.

    Raises
    ------
    ValueError
        If the quantile is not in the cube.
    """
    scale = 1.0
    if target.unit == "measured":
        scale = float(curve["measured_mean"]) if "measured_mean" in curve.coords else np.nan
    if np.isnan(scale):
        return []
    here = select(curve, quantile=[target.quantile]).isel(quantile=0)
    here = here.sel({METHOD: method, "n_servers": servers})
    return [_answer(point, target, scale) for point in points(here, rate_dimension(curve))]


def _answer(point: "xr.Dataset", target: Target, scale: float) -> Answer:
    status = str(point["status"].values) if "status" in point else ""
    value = scale * float(point[QUANTITY])
    if np.isnan(value):
        if status == "not asked for":
            return Answer(np.nan, np.nan, "")
        return Answer(
            np.nan, np.nan, "does not meet" if status == UNSTABLE else "cannot tell", status
        )
    width = scale * half_width(point, QUANTITY)
    if np.isnan(width):
        return Answer(value, np.nan, "cannot tell", "no half-width")
    if "interval_reliable" in point and point["interval_reliable"] == 0:
        return Answer(value, width, "cannot tell", "interval not reliable")
    if value + width <= target.at_most:
        return Answer(value, width, "meets")
    if value - width > target.at_most:
        return Answer(value, width, "does not meet")
    return Answer(value, width, "cannot tell", "the target is within the interval")


def best(rates: np.ndarray, told: list[Answer]) -> float:
    """Return the largest rate up to which all answers are ``meets``; NaN if the first is not."""
    meets = [answer.verdict == "meets" for answer in told]
    count = meets.index(False) if False in meets else len(meets)
    return float(rates[count - 1]) if count else np.nan
