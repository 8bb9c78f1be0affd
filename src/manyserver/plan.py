"""The plan: which studies are built, from which units, into which figures and fits.

The Snakefile and the commands ask for everything here. Making a plan checks all of it, so nothing
is computed for a study that could not be finished.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import yaml
from pydantic import BaseModel, TypeAdapter

from manyserver import figures
from manyserver.study import fits, models
from manyserver.study.config import KindConfig, Strict
from manyserver.study.fingerprint import fingerprint
from manyserver.study.points import canonical, digest
from manyserver.study.supply import Supply
from manyserver.study.sweep import Study, read_study
from manyserver.study.validation import ConfigError, suggestion, validated
from manyserver.study.yaml_file import read_yaml

__all__ = ["Plan", "WorkflowConfig", "read_workflow_config", "schemas"]


class WorkflowConfig(Strict):
    """The file ``config/config.yaml``."""

    studies: Literal["default", "all"] | tuple[str, ...] = "default"
    """Names of the studies that are built, or the word all, or default for all but some."""
    on_request: tuple[str, ...] = ()
    """Names of studies that are not among the default ones."""
    allow_failures: bool = False
    """Whether a run is a success even if points of a study could not be computed."""


def read_workflow_config(folder: Path) -> dict[str, object]:
    """Read ``config.yaml`` in a folder; an empty dictionary if there is none.

    Raises
    ------
    ConfigError
        If it is not valid YAML.
    """
    path = folder / "config.yaml"
    try:
        return read_yaml(path) or {}
    except FileNotFoundError:
        return {}
    except yaml.YAMLError as error:
        text = " ".join(str(error).split())
        raise ConfigError([f"{path}: is not valid YAML: {text}"]) from None


def schemas() -> dict[str, str]:
    """Return the JSON schemas of ``config.yaml`` and of a study's file, for editors."""
    configs: Any = reduce(or_, [models.load(name).Config for name in models.names()])
    found = {
        "config": WorkflowConfig.model_json_schema(),
        "study": TypeAdapter(configs).json_schema(),
    }
    return {name: json.dumps(schema, indent=2) + "\n" for name, schema in found.items()}


class Plan:
    """The studies of a project, checked.

    Parameters
    ----------
    folder : pathlib.Path
        The configuration: ``config.yaml`` and ``studies/NAME.yaml``.
    config : mapping
        Content of ``config.yaml``.

    Raises
    ------
    ConfigError
        If anything is wrong with the content or with a study that it names.
    """

    def __init__(self, folder: Path, config: Mapping[str, object]):
        self.folder = folder
        self._studies: dict[str, Study] = {}
        content = dict(config)
        if isinstance(content.get("studies"), str) and content["studies"] not in ("all", "default"):
            # snakemake --config studies=a,b hands over a string.
            content["studies"] = str(content["studies"]).split(",")
        self.config = validated(WorkflowConfig, content, str(folder / "config.yaml"))
        self.names = self._chosen(self.config)
        errors: list[str] = []
        if not self.names:
            errors.append(f"{folder / 'studies'}: must hold at least one study, a file NAME.yaml")
        for name in self.names:
            try:
                self.study(name)
            except ConfigError as error:
                errors.extend(error.lines)
        if errors:
            raise ConfigError(errors)

    def _chosen(self, config: WorkflowConfig) -> tuple[str, ...]:
        if config.studies == "all":
            return self.available
        if config.studies == "default":
            return tuple(name for name in self.available if name not in config.on_request)
        return tuple(config.studies)

    @cached_property
    def available(self) -> tuple[str, ...]:
        """Names of all studies that there are."""
        return tuple(sorted(path.stem for path in (self.folder / "studies").glob("*.yaml")))

    def study(self, name: str) -> Study:
        """Return a study.

        Raises
        ------
        ConfigError
            If there is none of this name, or something is wrong with it.
        """
        if name not in self._studies:
            if name not in self.available:
                where = self.folder / "config.yaml"
                told = suggestion(name, self.available)
                raise ConfigError([f"{where}: studies: there is no study {name!r}; {told}"])
            path = self.folder / "studies" / f"{name}.yaml"
            study = read_study(path)
            _check_kinds(path, study)
            self._studies[name] = study
        return self._studies[name]

    @property
    def notes(self) -> list[str]:
        """What a reader should be told of all studies, such as a float read as a ratio."""
        where = self.folder / "config.yaml"
        unknown = [name for name in self.config.on_request if name not in self.available]
        return [
            *(f"{where}: on_request: there is no study {name!r}" for name in unknown),
            *(note for name in self.names for note in self.study(name).notes),
        ]

    @property
    def largest_study(self) -> int:
        """Number of units of the study that has most."""
        return max(len(self.study(name).units) for name in self.names)

    def allow_failures(self, study: str) -> bool:
        """Whether a study is accepted even if points of it failed."""
        return self.config.allow_failures or self.study(study).config.allow_failures

    def figure(self, study: str, title: str) -> tuple[str, BaseModel]:
        """Return the kind and the options of a figure."""
        item = _titled(self.study(study).config.figures, title)
        return item.kind, figures.options(item.kind).model_validate(item.options)

    def fits(self, study: str) -> list[tuple[str, str, BaseModel]]:
        """Return the name, the kind and the options of every fit."""
        return [
            (item.title, item.kind, fits.options(item.kind).model_validate(item.options))
            for item in self.study(study).config.fits
        ]

    def unit_files(self, study: str) -> list[str]:
        """Return the files of the units of a study, below the folder of results."""
        return [f"{study}/units/{unit}.jsonl" for unit in self.study(study).units]

    def products(self, study: str) -> list[str]:
        """Return the files that a study is built for, below the folder of results."""
        config = self.study(study).config
        figures = [f"{study}/figures/{item.title}" for item in config.figures]
        drawn = [f"{figure}.{suffix}" for figure in figures for suffix in ("png", "pdf")]
        return [f"{study}/cube.nc", *([f"{study}/fits.csv"] if config.fits else []), *drawn]

    def files(self) -> list[str]:
        """Return the files that are built, below the folder of results."""
        return [
            file for name in self.names for file in (*self.products(name), f"{name}/verified.txt")
        ]

    def cube_digest(self, study: str) -> str:
        """Short digest of all that a cube depends on but the files of its units."""
        config = self.study(study).config
        content = config.model_dump_json(exclude={"allow_failures", "figures", "fits"})
        return _mark(content, fingerprint("manyserver.study.cube"))

    def fits_digest(self, study: str) -> str:
        """Short digest of all that the table of fits depends on but the cube."""
        items = [(title, kind, options.model_dump()) for title, kind, options in self.fits(study)]
        modules = sorted({f"{fits.__name__}.{kind}" for _, kind, _ in items})
        return _mark(canonical(items), fingerprint(fits.__name__, *modules))

    def figure_digest(self, study: str, title: str) -> str:
        """Short digest of all that a figure depends on but the cube."""
        kind, options = self.figure(study, title)
        code = fingerprint(figures.__name__, f"{figures.__name__}.{kind}")
        return _mark(canonical(options.model_dump()), code)


def _mark(settings: str, code: str) -> str:
    """Two short digests, for Snakemake to say which of the two changed."""
    return f"settings #{digest(settings)[:8]} code #{code[:8]}"


def _titled(items: Iterable[KindConfig], title: str) -> KindConfig:
    return next(item for item in items if item.title == title)


def _check_kinds(path: Path, study: Study) -> None:
    errors: list[str] = []
    registries: dict[str, ModuleType] = {"figures": figures, "fits": fits}
    for key, registry in registries.items():
        for i, item in enumerate(getattr(study.config, key)):
            inside = f"{key}[{i}]"
            try:
                model = registry.options(item.kind, study.config.model)
                options = validated(model, item.options, str(path), inside=inside)
            except ConfigError as error:
                errors.extend(error.lines)
            except ValueError as error:
                errors.append(f"{path}: {inside}: {error}")
            else:
                unknown = _unknown(options, study)
                errors.extend(f"{path}: {inside}.{line}" for line in unknown)
                if not unknown:
                    lacks = _lacks(registry.load(item.kind).needs, study, options)
                    errors.extend(f"{path}: {inside}: {item.kind} needs {what}" for what in lacks)
    if errors:
        raise ConfigError(errors)


def _lacks(
    needs: Callable[[Supply, BaseModel], Iterable[str]], study: Study, options: BaseModel
) -> list[str]:
    """Say what a kind needs that the study cannot feed it."""
    supply = Supply(study.points, study.config.methods_used, study.layout.axes, options)
    return [what for what in needs(supply, options) if what]


def _unknown(options: BaseModel, study: Study) -> list[str]:
    """Say which values in a kind's options are not on the axes of the study."""
    methods = list(study.config.methods_used)
    known = {**study.layout.choices, **dict.fromkeys(("methods", "method", "limit"), methods)}
    lines = []
    for key, allowed in known.items():
        value = getattr(options, key, None)
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is not None and item not in allowed:
                told = f"Allowed: {', '.join(str(label) for label in allowed) or 'none'}"
                if isinstance(item, str) and allowed:
                    told = suggestion(item, allowed)
                lines.append(f"{key} = {item!r}: is not in this study; {told}")
    return lines
