"""Studies of dispatching policies: systems, policies, job sizes, rates, numbers of servers."""

from manyserver.model import System
from manyserver.schema import Schema
from manyserver.study.layout import Layout
from manyserver.study.models.base import Model
from manyserver.study.models.dispatching.config import Config
from manyserver.study.models.dispatching.coordinates import coordinates
from manyserver.study.models.dispatching.jobs import Jobs
from manyserver.study.models.dispatching.sweep import Sweep
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
        policies, pools, jobs = sweep.policies(), sweep.pools(), sweep.jobs()
        mistakes.stop()
        sweep.check_size()
        mistakes.stop()
        sweep.check_servers(pools)
        sweep.check_memory(pools, policies, jobs)
        sweep.check_unit()
        sweep.check_rates(pools)
        mistakes.stop()
        points = tuple(sweep.points(pools, policies, jobs))
        rates = tuple(float(rate) for rate in config.sweep.rates)
        labels = tuple(policies)
        systems = [System(1e-9, these) for these in pools.values()]
        return Layout(
            points,
            axes={
                "system": tuple(pools),
                "policy": labels,
                **({"jobs": tuple(jobs)} if jobs else {}),
                "n_servers": config.sweep.n_servers,
                config.sweep.rate_name: rates,
            },
            coordinates=coordinates(config.sweep, systems, policies, jobs),
            choices={
                "systems": tuple(pools),
                "policies": labels,
                "baseline": labels,
                **_choices_of_jobs(jobs),
                "rates": rates,
                "n_servers": tuple(n for n in config.sweep.n_servers if n is not None),
            },
        )


def _choices_of_jobs(jobs: dict[str, Jobs]) -> dict[str, tuple]:
    quantiles = QUANTILES if jobs else ()
    measured = any(hasattr(one.sizes, "measured_mean") for one in jobs.values())
    return {
        "jobs": tuple(jobs),
        "reference": tuple(jobs),
        "quantile": quantiles,
        "quantiles": quantiles,
        "unit": ("mean", "measured") if measured else ("mean",),
    }
