"""Studies of join the shortest queue in the Halfin-Whitt regime: beta and numbers of servers."""

from collections.abc import Iterator

from manyserver import methods
from manyserver.schema import Schema
from manyserver.study.layout import MOST_POINTS, Layout
from manyserver.study.models.base import Model
from manyserver.study.models.halfin_whitt.config import Config
from manyserver.study.models.halfin_whitt.subject import Regime
from manyserver.study.points import Point, told_options
from manyserver.validation import Mistakes

__all__ = ["Config", "HalfinWhittModel"]

BETA = {"units": "1", "symbol": r"\beta", "long_name": "spare capacity over sqrt(n)"}


class HalfinWhittModel(Model[Config]):
    """Join the shortest queue in the Halfin-Whitt regime."""

    name = "halfin_whitt"
    title = "Join the shortest queue in the Halfin-Whitt regime."
    axes = ("beta",)
    config_class = Config

    @property
    def schema(self) -> Schema:
        """All variables of the regime."""
        # Imported here as it imports much of scipy.
        from manyserver.diffusion.halfin_whitt.labels import SCHEMA

        return SCHEMA

    def lay_out(self, config: Config, mistakes: Mistakes) -> Layout:
        """Build the points of a study: every beta at every number of servers."""
        betas = tuple(float(beta) for beta in config.sweep.beta)
        servers = config.sweep.n_servers
        finite = tuple(n for n in servers if n is not None)
        for n in finite:
            if n <= betas[-1] ** 2:
                mistakes.add(
                    "sweep.n_servers",
                    f"n_servers = {n}: must be greater than beta**2 = {betas[-1] ** 2:g}, so that "
                    "the arrival rate is positive",
                )
        for method, options in config.methods_used.items():
            for beta in betas:
                try:
                    methods.load(method).check(Regime(beta, None), options)
                except ValueError as error:
                    mistakes.add(f"methods.{method}", f"{error} (beta = {beta:g})")
                    break
        count = len(config.methods_used) * len(betas) * len(servers)
        if count > MOST_POINTS:
            mistakes.add("sweep", f"makes {count} points; must be at most {MOST_POINTS}")
        points = tuple(_points(config, betas)) if not mistakes.lines else ()
        return Layout(
            points,
            axes={"beta": betas, "n_servers": servers},
            coordinates={"beta": ("beta", list(betas), BETA)},
            choices={"betas": betas, "beta": betas, "n_servers": finite},
        )


def _points(config: Config, betas: tuple[float, ...]) -> Iterator[Point]:
    for method, options in config.methods_used.items():
        known = methods.load(method)
        for beta in betas:
            for n in config.sweep.n_servers:
                regime = Regime(beta, n)
                if known.applies(regime):
                    yield Point(
                        method,
                        regime,
                        labels={"beta": beta, "n_servers": n},
                        options=told_options(options),
                        study_seed=config.seed,
                        left_out=known.skip_reason(regime, options),
                    )
