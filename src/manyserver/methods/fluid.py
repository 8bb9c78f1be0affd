"""The fluid model of join the shortest queue: its paths, and the cost of them."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

TITLE = "Paths of the fluid model and the solution of the Stein equation, at n_servers = limit."
MODEL = "halfin_whitt"
RANDOM = False
STARTS_FROM = ()
ANSWER = "excess_level"
BETAS = (0.01, 6.0)


class Options(BaseModel):
    """Options of the fluid model."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    levels: tuple[float, ...] = Field(default=(1.5, 2.0, 3.0), min_length=1)
    """Levels kappa over beta, greater than 1, of the curves Gamma; the Stein equation is solved
    for the first."""
    reach: float = Field(default=4.0, gt=0)
    """How far the grid goes in both directions."""


def applies(beta: float, n_servers: int | None) -> bool:
    """Whether the number of servers is the limit."""
    return n_servers is None


def refusal(beta: float, n_servers: None, options: Options) -> str:
    """Leave nothing out: it is a closed form."""
    return ""


def compute(beta: float, n_servers: None, options: Options, seed: int) -> Any:
    """Evaluate closed forms."""
    from manyserver.diffusion.halfin_whitt.fluid_model.phase_portrait import portrait

    return portrait(beta, levels=[level * beta for level in options.levels], reach=options.reach)
