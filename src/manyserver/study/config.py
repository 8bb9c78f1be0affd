"""The typed form of a study's YAML file.

What every key means is written here once; the JSON schema in ``workflow/schemas`` is generated
from it. Whether the systems and policies make sense together is checked in
:mod:`manyserver.study.sweep`.
"""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from manyserver.model import read_ratio
from manyserver.study import methods
from manyserver.study.axes import Grid, Servers
from manyserver.study.validation import ConfigError, validated
from manyserver.study.yaml_file import read_yaml

__all__ = [
    "KindConfig",
    "PolicyConfig",
    "PoolConfig",
    "Strict",
    "StudyConfig",
    "SweepConfig",
    "read_config",
]


def _ratio(value: object, info: ValidationInfo) -> Fraction:
    ratio, note = read_ratio(value, info.field_name or "value")
    if note is not None and info.context is not None:
        info.context["notes"].append(note)
    return ratio


Ratio = Annotated[
    Fraction,
    BeforeValidator(_ratio),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]


class Strict(BaseModel):
    """A part of the configuration, in which unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class PoolConfig(Strict):
    """Servers of one speed."""

    fraction: Ratio
    """Fraction of all servers that are in this pool, in (0, 1]; such as 1/2."""
    speed: Ratio
    """Work done per unit of time by one server, greater than zero; such as 2/3."""


class SystemConfig(Strict):
    """The servers of one system."""

    pools: tuple[PoolConfig, ...] = Field(min_length=1)
    """The pools; their fractions sum to 1."""


class PolicyConfig(Strict):
    """One dispatching policy: its name, its own parameters, and how figures call it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    """Name in the registry of policies, such as scheme1."""
    label: str | None = None
    """What tables and figures call it; by default made of the name and the parameters."""
    systems: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Labels of the systems that it is computed for; all if left out."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The policy's own parameters."""
        return dict(self.model_extra or {})


class SweepConfig(Strict):
    """The axes of the study: exactly one of arrival_rate and load, and n_servers."""

    arrival_rate: Grid | None = None
    """Jobs per unit of time and server: a number, a list, or {start, stop, step or count}."""
    load: Grid | None = None
    """Arrival rate over capacity, below 1, in the same forms."""
    n_servers: Servers
    """Numbers of servers, and the word limit for infinitely many."""

    @model_validator(mode="after")
    def _one_rate(self) -> "SweepConfig":
        if (self.arrival_rate is None) == (self.load is None):
            raise PydanticCustomError(
                "one_rate", "must have exactly one of the keys arrival_rate and load"
            )
        return self

    @property
    def rate_name(self) -> Literal["arrival_rate", "load"]:
        """Which of the two axes is swept."""
        return "load" if self.arrival_rate is None else "arrival_rate"

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """The values on that axis."""
        return self.load or self.arrival_rate or ()


class KindConfig(Strict):
    """A figure or a fit: its kind, the name of its file or rows, and the kind's own options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str
    """One of the kinds that the package knows; each has its own options."""
    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]+$")
    """Name of its file, or in its table; by default the kind."""

    @property
    def title(self) -> str:
        """The name, or the kind where none is given."""
        return self.name or self.kind

    @property
    def options(self) -> dict[str, Any]:
        """The kind's own options."""
        return dict(self.model_extra or {})


def _methods_model() -> type[Strict]:
    fields: dict[str, Any] = {
        name: (methods.load(name).Options | None, Field(default=None, description=text))
        for name, text in ((name, methods.load(name).TITLE) for name in methods.names())
    }
    model = create_model("MethodsConfig", __base__=Strict, **fields)
    model.__doc__ = "The methods that compute the points, each with its options."
    return model


MethodsConfig = _methods_model()
UnitAxis = Literal["system", "policy", "n_servers", "arrival_rate", "load"]


class StudyConfig(Strict):
    """One study: systems, policies, the sweep over them, and what is drawn from the results."""

    title: str
    """One line that says what the study shows."""
    description: str = ""
    """A paragraph for the reader of the results."""
    systems: dict[str, SystemConfig] = Field(min_length=1)
    """The systems by label."""
    policies: tuple[PolicyConfig, ...] = Field(min_length=1)
    """The policies."""
    sweep: SweepConfig
    """The axes."""
    methods: MethodsConfig  # type: ignore[valid-type]
    """The methods and their options."""
    seed: int = Field(default=1, ge=0)
    """Seed of all random numbers; two studies with the same seed share their points."""
    unit: tuple[UnitAxis, ...] = ("policy", "n_servers")
    """Points that share these axes are computed by one job."""
    unstable: Literal["error", "skip"] = "error"
    """What to do with points at which a policy is unstable although the load is below 1."""
    figures: tuple[KindConfig, ...] = ()
    """The figures."""
    fits: tuple[KindConfig, ...] = ()
    """The fits."""

    @property
    def methods_used(self) -> dict[str, BaseModel]:
        """Options of the methods that the study asks for, by name."""
        chosen = {name: getattr(self.methods, name) for name in methods.names()}
        return {name: options for name, options in chosen.items() if options is not None}


def read_config(path: Path) -> tuple[StudyConfig, list[str]]:
    """Read a study's YAML file.

    Returns
    -------
    config : StudyConfig
        What the file says.
    notes : list of str
        What a reader should be told, such as a float that was read as a ratio.

    Raises
    ------
    ConfigError
        If the file cannot be read, or its keys and values are not what they must be.
    """
    try:
        content = read_yaml(path)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    except yaml.YAMLError as error:
        text = " ".join(str(error).split())
        raise ConfigError([f"{path}: is not valid YAML: {text}"]) from None
    notes: list[str] = []
    config = validated(StudyConfig, content, str(path), context={"notes": notes})
    return config, [f"{path}: {note}" for note in dict.fromkeys(notes)]
