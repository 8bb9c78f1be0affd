"""The typed form of a study's YAML file, and the messages for what is wrong with one.

What every key means is written here once; the JSON schema in ``workflow/schemas`` is generated
from it. Whether the systems and policies make sense together is checked in
:mod:`manyserver.study.sweep`.
"""

import difflib
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from manyserver.model import read_ratio
from manyserver.study import methods
from manyserver.study.axes import Grid, Servers
from manyserver.study.yaml_file import read_yaml

__all__ = ["ConfigError", "StudyConfig", "read_config", "suggestion", "validated"]


M = TypeVar("M", bound=BaseModel)


class ConfigError(ValueError):
    """A configuration that cannot be used; one line for each thing that is wrong.

    Examples
    --------
    >>> str(ConfigError(["a.yaml: seed = -1: must be greater than or equal to 0"]))
    'a.yaml: seed = -1: must be greater than or equal to 0'
    """

    def __init__(self, lines: Iterable[str]):
        self.lines = tuple(dict.fromkeys(lines))
        super().__init__("\n".join(self.lines))


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """Say which words are allowed, and which one was probably meant.

    Examples
    --------
    >>> suggestion("polices", ["policies", "systems"])
    "did you mean 'policies'? Allowed: policies, systems"
    """
    known = sorted(allowed)
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}Allowed: {', '.join(known)}"


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


def validated(
    model: type[M],
    content: object,
    where: str,
    *,
    inside: str = "",
    context: dict[str, Any] | None = None,
) -> M:
    """Validate plain values, with an error of one line for each thing that is wrong.

    Parameters
    ----------
    model : type
        The pydantic model.
    content : object
        What YAML gave.
    where : str
        The file, which the messages begin with.
    inside : str, optional
        Key in that file that holds `content`.
    context : dict, optional
        Handed to the validators.

    Raises
    ------
    ConfigError
        If the values do not fit the model.
    """
    try:
        return model.model_validate(content, context=context)
    except ValidationError as errors:
        lines = [_line(error, where, inside, model) for error in errors.errors()]
    raise ConfigError(lines)


def _line(error: ErrorDetails, where: str, inside: str, model: type[BaseModel]) -> str:
    loc = error["loc"]
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc]
    key = f"{inside}{''.join(parts)}".lstrip(".")
    prefix = f"{where}: {key}" if key else where
    shown = f"{prefix} = {_short(error['input'])}"
    message = error["msg"].removeprefix("Value error, ")
    match error["type"]:
        case "missing":
            return f"{prefix}: missing; this key is required"
        case "extra_forbidden":
            allowed = suggestion(str(loc[-1]), _keys(model, loc[:-1]))
            return f"{shown}: unknown key; {allowed}"
        case "one_rate":
            return f"{prefix}: {message}"
        case "value_error":
            return f"{prefix} = {message.removeprefix(f'{loc[-1]} = ')}"
    for subject in ("Input", "Tuple", "Dictionary", "String"):
        message = message.removeprefix(f"{subject} should ")
    return f"{shown}: must {message}"


def _keys(annotation: Any, loc: tuple[int | str, ...]) -> list[str]:
    """Names of the fields of the model that lies at a place in another one."""
    for part in (*loc, None):
        optional = get_origin(annotation) in (Union, UnionType)
        annotation = get_args(annotation)[0] if optional else annotation
        origin = get_origin(annotation)
        if part is None:
            break
        if origin is None:
            annotation = annotation.model_fields[part].annotation
        else:
            annotation = get_args(annotation)[1 if origin is dict else 0]
    return list(annotation.model_fields)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
