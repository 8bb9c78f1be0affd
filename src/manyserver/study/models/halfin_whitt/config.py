"""The typed form of a study of the Halfin-Whitt regime."""

from typing import Literal

from manyserver.study.config.axes import Grid, Servers
from manyserver.study.config.base import Strict, StudyConfig, methods_model

__all__ = ["Config", "SweepConfig"]


class SweepConfig(Strict):
    """The axes of the study: beta and n_servers."""

    beta: Grid
    """Spare capacity beta: n servers get arrivals at rate n - beta sqrt(n). In the same forms as
    an arrival rate, in [0.01, 6], and in [0.1, 5] for `relaxation`."""
    n_servers: Servers
    """Numbers of servers, each more than beta squared, and the word `limit` for the diffusion."""


class Config(StudyConfig):
    """One study of join the shortest queue in the Halfin-Whitt regime."""

    model: Literal["halfin_whitt"]
    """What the study is about: join the shortest queue in the Halfin-Whitt regime."""
    sweep: SweepConfig
    """The axes."""
    methods: methods_model("halfin_whitt")  # type: ignore[valid-type]
    """The methods and their options."""
    unit: tuple[Literal["beta", "n_servers"], ...] = ("beta",)
    """Points that share these axes are computed by one job."""
