"""The typed form of a study's YAML file, as far as it is the same for all models.

What every key means is written in the models, once; the JSON schema in ``workflow/schemas`` is
generated from them. Whether the values make sense together is checked when the study is laid out,
in :mod:`manyserver.study.models`.
"""

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from manyserver import methods
from manyserver.methods.base import Strict
from manyserver.study.config.names import Name
from manyserver.study.config.tables import TableConfig

__all__ = ["KindConfig", "Strict", "StudyConfig", "methods_model"]


class KindConfig(Strict):
    """A figure or a fit: its kind, the name of its file or rows, and the kind's own options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str
    """One of the kinds that the package knows; each has its own options."""
    name: Name | None = None
    """Name of its file, or in its table; by default the kind."""

    @property
    def title(self) -> str:
        """The name, or the kind where none is given."""
        return self.name or self.kind

    @property
    def options(self) -> dict[str, Any]:
        """The kind's own options."""
        return dict(self.model_extra or {})


class StudyConfig(Strict):
    """One study, as far as all models agree; each adds its axes and its methods."""

    title: str
    """One line that says what the study shows."""
    description: str = ""
    """A paragraph for the reader of the results."""
    model: str
    """What the study is about."""
    methods: Strict
    """The methods and their options."""
    seed: int = Field(default=1, ge=0)
    """Seed of all random numbers; studies with equal seeds share their points."""
    unit: tuple[str, ...]
    """Points that agree on these axes are computed by one job. Changing it computes nothing
    again."""
    unit_points: int | None = Field(default=None, ge=1)
    """Most points that one job computes; larger units are split. By default there is no bound."""
    allow_failures: bool = False
    """Whether a run is a success even if points could not be computed. They have the status
    `failed` and a `reason` in the cube, and are not tried again until something else changes;
    without this key, the next run tries them again."""
    figures: tuple[KindConfig, ...] = ()
    """The figures; see below."""
    fits: tuple[KindConfig, ...] = ()
    """The fits; see below."""
    tables: tuple[TableConfig, ...] = ()
    """Tables of a variable, as CSV and LaTeX; see below."""

    @property
    def methods_used(self) -> dict[str, BaseModel]:
        """Options of the methods that the study asks for, by name."""
        named = self.methods.model_fields_set
        chosen = [name for name in methods.names(self.model) if name in named]
        # `exact:` without anything has the defaults.
        return {n: getattr(self.methods, n) or methods.load(n).options_class() for n in chosen}


@cache
def methods_model(model: str) -> type[Strict]:
    """Return the typed form of the key ``methods`` in studies of a model."""
    fields: dict[str, Any] = {
        one.name: (one.options_class | None, Field(default=None, description=one.title))
        for one in map(methods.load, methods.names(model))
    }
    found = create_model(f"{model.title().replace('_', '')}Methods", __base__=Strict, **fields)
    found.__doc__ = "The methods that compute the points, each with its options."
    return found
