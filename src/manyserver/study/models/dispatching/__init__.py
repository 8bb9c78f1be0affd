"""Studies of dispatching policies: systems, policies, job sizes, rates, numbers of servers."""

from functools import partial

from manyserver.methods import METHOD
from manyserver.schema import Schema
from manyserver.study.layout import Gap, Layout
from manyserver.study.models.base import Model
from manyserver.study.models.dispatching.config import Config
from manyserver.study.models.dispatching.coordinates import coordinates, stability
from manyserver.study.models.dispatching.jobs import Jobs
from manyserver.study.models.dispatching.spread import Spread, as_label
from manyserver.study.models.dispatching.sweep import Sweep
from manyserver.study.points import Point
from manyserver.validation import Mistakes
from manyserver.variables import QUANTILES, SCHEMA

__all__ = ["Config", "DispatchingModel"]


class DispatchingModel(Model[Config]):
    """Dispatching policies for many parallel servers."""

    name = "dispatching"
    title = "Dispatching policies for many parallel servers."
    axes = ("system", "policy", "jobs", "arrival_rate", "load")
    config_class = Config

    @property
    def schema(self) -> Schema:
        """All variables of results on dispatching policies."""
        return SCHEMA

    def lay_out(self, config: Config, mistakes: Mistakes) -> Layout:
        """Build the points of a study: every policy on every system at every rate."""
        sweep = Sweep(config, mistakes)
        sweep.check_axes()
        mistakes.stop()
        sweep.check_size()
        policies, pools, jobs = sweep.policies(), sweep.pools(), sweep.jobs()
        mistakes.stop()
        sweep.check_servers(pools)
        sweep.check_memory(pools, policies, jobs)
        sweep.check_unit()
        sweep.check_rates(pools)
        mistakes.stop()
        found = tuple(sweep.points(pools, policies, jobs))
        points = tuple(point for point in found if isinstance(point, Point))
        asked = {(point.method, point.labels["n_servers"]) for point in points}
        axes = sweep.axes
        values = {name: tuple(map(as_label, values)) for name, values in axes.values.items()}
        labels = tuple(policies)
        told = ("system", "policy", *(["jobs"] if jobs else []), *values)
        own = tuple(name for name in values if name in config.sweep.own)
        return Layout(
            points,
            axes={
                "system": tuple(pools),
                "policy": labels,
                **({"jobs": tuple(jobs)} if jobs else {}),
                **values,
            },
            coordinates=coordinates(axes, pools, policies, jobs),
            choices={
                "systems": tuple(pools),
                "policies": labels,
                "baseline": labels,
                **_choices_of_jobs(jobs),
                "rates": values[config.sweep.rate_name],
                "own": own,
                "rows": told,
                "columns": told,
                "x": tuple(values),
                "y": tuple(values),
                "curves": ("system", "policy", *values),
                "n_servers": tuple(n for n in config.sweep.n_servers if n is not None),
            },
            derived=partial(stability, axes, pools, policies),
            gaps=tuple(
                gap
                for gap in found
                if isinstance(gap, Gap) and (gap.labels[METHOD], gap.labels["n_servers"]) in asked
            ),
        )


def _choices_of_jobs(jobs: dict[str, Spread[Jobs]]) -> dict[str, tuple]:
    quantiles = QUANTILES if jobs else ()
    laws = [one.sizes for spread in jobs.values() for one in spread]
    measured = any(hasattr(law, "measured_mean") for law in laws)
    return {
        "jobs": tuple(jobs),
        "reference": tuple(jobs),
        "quantile": quantiles,
        "quantiles": quantiles,
        "unit": ("mean", "measured") if measured else ("mean",),
    }
