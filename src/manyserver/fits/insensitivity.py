"""How much the mean sojourn time depends on the law of the job sizes, and its variance too."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.analysis.curves import (
    each_jobs,
    method_of,
    points,
    rate_dimension,
    required_method,
    select,
    student_error,
    system_of,
)
from manyserver.fits.base import Fit, FitOptions
from manyserver.fits.row import fit_row
from manyserver.methods import METHOD, Role
from manyserver.model import System
from manyserver.policies import Policy, policy
from manyserver.statistics.comparisons import holm, p_value, simultaneous_quantile
from manyserver.statistics.rates import Rate

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.analysis.supply import Supply

__all__ = [
    "Comparison",
    "InsensitivityFit",
    "Options",
    "comparisons",
    "expected_deviation",
]

LEVEL = 0.05
NO_HALF_WIDTH = "cannot tell: no half-width"
MEAN, VARIANCE = "sojourn_mean", "sojourn_variance"
LIMIT, OTHERS, SPREAD = "limit", "reference", "variance"
PARAMETERS = {
    LIMIT: "relative deviation of the mean from the limit",
    OTHERS: "relative deviation of the mean from {reference}",
    SPREAD: "ratio of the variance to that of {reference}",
}


class Options(FitOptions):
    """What to compare."""

    reference: str | None = None
    """Label of the jobs with which the others are compared; the first if left out."""
    method: str | None = None
    """Method of the finite systems; the one that simulates if left out."""
    limit: str | None = None
    """Method of the limit; that of the study if left out."""


@dataclass(frozen=True)
class Comparison:
    """A value compared with another one.

    Parameters
    ----------
    place : xarray.Dataset
        The point of the cube.
    kind : str
        Of :data:`PARAMETERS`.
    estimate, error, freedom : float
        The deviation or the ratio, its standard error, and the degrees of freedom of that.
    expected : float
        By theory; NaN if there is none.
    reliable : bool
        Whether the half-widths are.
    """

    place: "xr.Dataset"
    kind: str
    estimate: float
    error: float
    freedom: float
    expected: float
    reliable: bool


class InsensitivityFit(Fit[Options]):
    """Compare the mean sojourn time for several laws of the job sizes."""

    name = "insensitivity"
    title = (
        "Deviation of the mean sojourn time from the limit and from that of one law of the job "
        "sizes, and the ratio of the variances; `note` says how far it is from the limit at most "
        "and which means differ, with p-values adjusted for the number of rows (Holm)."
    )
    options_class = Options
    across_jobs = True

    def needs(self, study: "Supply", options: Options) -> Iterator[str]:
        """Yield what the study lacks, such as job sizes."""
        yield study.lacks_jobs()
        yield study.lacks(options.method or Role.SIMULATION, at="finite")
        if len(study.axes.get("jobs", ())) == 1:
            yield study.lacks(options.limit or Role.LIMIT, at="limit")

    def rows(self, cube: "xr.Dataset", options: Options) -> Iterator[dict[str, Any]]:
        """Yield rows for every point: deviations from the limit and from the reference, variances.

        The note says how far the mean is from the limit at most, for all rows together, and whether
        the means differ, by Holm's method for all rows together.
        """
        method = required_method(cube, options.method or Role.SIMULATION)
        limit = method_of(cube, options.limit or Role.LIMIT)
        if "jobs" not in cube.dims:
            return
        chosen = select(cube, system=options.systems, policy=options.policies, jobs=options.jobs)
        names = [str(label) for label in cube["jobs"].values]
        reference = names[0] if options.reference is None else options.reference
        base = select(cube, jobs=[reference])
        base = select(base, system=options.systems, policy=options.policies).isel(jobs=0)
        found = list(comparisons(chosen, base, method, limit))
        for kind, parameter in PARAMETERS.items():
            these = [one for one in found if one.kind == kind]
            notes = (
                _bounds(these)
                if kind == LIMIT
                else _verdicts(these, 0.0 if kind == OTHERS else 1.0)
            )
            for one, note in zip(these, notes, strict=True):
                rate = float(one.place[rate_dimension(cube)])
                yield fit_row(
                    one.place,
                    _rate(one, rate, note),
                    method=method,
                    quantity=VARIANCE if kind == SPREAD else MEAN,
                    parameter=parameter.format(reference=reference),
                    expected=one.expected,
                    n_servers=float(one.place["n_servers"]),
                )


def _rate(one: Comparison, rate: float, note: str) -> Rate:
    warning = "" if one.reliable else "; half-width not reliable"
    return Rate(
        estimate=one.estimate,
        standard_error=one.error,
        prefactor=np.nan,
        window=(rate, rate),
        n_points=1,
        excluded=(),
        note=note + warning,
        second_term=np.nan,
    )


def _bounds(found: list[Comparison]) -> list[str]:
    """Say how far each mean is from the limit at most."""
    told = []
    for one in found:
        if np.isnan(one.error):
            told.append(NO_HALF_WIDTH)
            continue
        reach = simultaneous_quantile(one.freedom, len(found), LEVEL) * one.error
        told.append(
            f"within {100 * (abs(one.estimate) + reach):.2g} % of the limit "
            f"({100 * (1 - LEVEL):g} %, {len(found)} rows together)"
        )
    return told


def _verdicts(found: list[Comparison], same: float) -> list[str]:
    """Say which values differ from the reference."""
    ratios = np.array([(one.estimate - same) / one.error for one in found])
    chances = holm(p_value(ratios, np.array([one.freedom for one in found])))
    return [
        NO_HALF_WIDTH
        if np.isnan(ratio)
        else f"{'differs' if chance < LEVEL else 'agrees'}: z = {ratio:.2f}, p = {chance:.2g} "
        f"(Holm, {len(found)} rows)"
        for ratio, chance in zip(ratios, chances, strict=True)
    ]


def comparisons(
    cube: "xr.Dataset", base: "xr.Dataset", method: str, limit: str
) -> Iterator[Comparison]:
    """Yield the comparisons at every point of a cube with a dimension ``jobs``.

    Parameters
    ----------
    cube : xarray.Dataset
        What is compared.
    base : xarray.Dataset
        The same for the reference, without the dimension ``jobs``.
    method, limit : str
        Method of the finite systems, and of the limit; that may be empty.
    """
    servers = [n for n in cube["n_servers"].values if np.isfinite(n)]
    dimension = rate_dimension(cube)
    for here in each_jobs(cube):
        there = here.sel({METHOD: method, "n_servers": servers})
        own = base.sel({METHOD: method, "n_servers": servers})
        pairs = zip(
            points(there, "system", "policy", "n_servers", dimension),
            points(own, "system", "policy", "n_servers", dimension),
            strict=True,
        )
        for place, other in pairs:
            if not np.isfinite(place[MEAN]):
                continue
            yield from _with_limit(here, place, limit)
            if str(place["jobs"].values) != str(other["jobs"].values) and np.isfinite(other[MEAN]):
                yield _ratio(place, other, OTHERS)
                if np.isfinite([place["size_scv"], other["size_scv"]]).all():
                    yield _ratio(place, other, SPREAD)


def _with_limit(here: "xr.Dataset", place: "xr.Dataset", method: str) -> Iterator[Comparison]:
    if not method_of(here, method) or np.inf not in here["n_servers"].values:
        return
    labels = {name: place[name] for name in ("system", "policy", rate_dimension(here))}
    limit = float(here[MEAN].sel({METHOD: method, "n_servers": np.inf, **labels}))
    if not np.isfinite(limit):
        return
    error, freedom = student_error(place, MEAN)
    deviation = float(place[MEAN]) / limit - 1
    expected = expected_deviation(place, limit)
    yield Comparison(place, LIMIT, deviation, error / limit, freedom, expected, _reliable(place))


def _ratio(place: "xr.Dataset", other: "xr.Dataset", kind: str) -> Comparison:
    """Compare with the reference, which was simulated independently."""
    name = VARIANCE if kind == SPREAD else MEAN
    values = np.array([float(one[name]) for one in (place, other)])
    errors, freedoms = zip(*(student_error(one, name) for one in (place, other)), strict=True)
    ratio = values[0] / values[1]
    error = ratio * float(np.hypot(*(np.array(errors) / values)))
    reliable = _reliable(place) and _reliable(other)
    found = Comparison(place, kind, ratio, error, min(freedoms), np.nan, reliable)
    return found if kind == SPREAD else replace(found, estimate=ratio - 1, expected=0.0)


def _reliable(place: "xr.Dataset") -> bool:
    return "interval_reliable" not in place or bool(place["interval_reliable"] == 1)


def expected_deviation(place: "xr.Dataset", limit: float) -> float:
    """Relative deviation from the limit to order 1/N, for exponential sizes.

    NaN where there is no such expansion.
    """
    parameters = json.loads(str(place["policy_parameters"].values))
    chosen = policy(str(place["policy_name"].values), **parameters)
    return _coefficient(system_of(place), chosen) / float(place["n_servers"]) / limit


@cache
def _coefficient(system: System, chosen: Policy) -> float:
    from manyserver.mean_field import NotSmooth, refine

    try:
        return float(refine(system, chosen)["sojourn_mean_correction"])
    except (NotSmooth, ValueError):
        return np.nan
