"""The plan: which studies are built, from which units, into which figures and fits.

The Snakefile and the commands ask for everything here. Making a plan checks all of it, so nothing
is computed for a study that could not be finished.
"""

from collections.abc import Mapping
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from manyserver import figures, fits, methods
from manyserver.analysis.kinds import Kind
from manyserver.analysis.supply import Supply
from manyserver.study.config.names import study_files, study_name, study_path
from manyserver.study.config.tables import TableConfig
from manyserver.study.config.workflow_config import read_workflow_config
from manyserver.study.fingerprint import fingerprint
from manyserver.study.points import Unit, canonical, digest
from manyserver.study.study import Study, read_study
from manyserver.validation import (
    ConfigError,
    Document,
    Mistakes,
    shown,
    suggestion,
    validated,
)

__all__ = ["SUMMARIES", "Plan", "mark"]

SUMMARIES = ("claims.csv", "claims.md", "report.html")
"""Files that are made of all studies that are built, below the folder of results."""

T = TypeVar("T")
OF_METHODS = ("methods", "method", "limit")
"""Options of figures and fits that name methods of the study."""


class Plan:
    """The studies of a project, checked.

    Parameters
    ----------
    folder : pathlib.Path
        The configuration: ``config.yaml`` and ``studies/NAME.yaml``.
    overrides : mapping, optional
        Keys that replace those of ``config.yaml``.

    Raises
    ------
    ConfigError
        If anything is wrong with ``config.yaml`` or with a study that it names.
    """

    def __init__(self, folder: Path, overrides: Mapping[str, object] | None = None):
        self.folder = folder
        self._studies: dict[str, Study] = {}
        self.config, source = read_workflow_config(folder, overrides or {})
        self.names = self._chosen(source)
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

    def _chosen(self, document: Document) -> tuple[str, ...]:
        studies, on_request = self.config.studies, self.config.on_request
        if studies == "all":
            return self.available
        if studies == "default":
            return tuple(name for name in self.available if name not in on_request)
        names = tuple(dict.fromkeys(study_name(self.folder, study) for study in studies))
        mistakes = Mistakes(document)
        for name in names:
            if name not in self.available:
                told = f"there is no study {shown(name)}; {suggestion(name, self.available)}"
                mistakes.add("studies", told)
        mistakes.stop()
        return names

    @cached_property
    def available(self) -> tuple[str, ...]:
        """Names of all studies that there are."""
        return tuple(sorted(study_files(self.folder)))

    def study(self, name: str) -> Study:
        """Return a study.

        Raises
        ------
        ConfigError
            If there is none of this name, or something is wrong with it.
        """
        if name not in self._studies:
            study = read_study(study_path(self.folder, name))
            _check_kinds(study)
            self._studies[name] = study
        return self._studies[name]

    def unit(self, study: str, method: str, name: str) -> Unit:
        """Return the unit of a method in a study whose file has this name.

        Raises
        ------
        ConfigError
            If there is none.
        """
        return self.study(study).unit(f"{method}/{name}")

    @property
    def notes(self) -> list[str]:
        """What a reader should be told of all studies, such as a float read as a ratio."""
        where = self.folder / "config.yaml"
        unknown = [name for name in self.config.on_request if name not in self.available]
        return [
            *(f"{where}: on_request: there is no study {name!r}" for name in unknown),
            *(note for name in self.names for note in self.study(name).notes),
        ]

    def threads(self, method: str, cores: int | None) -> int:
        """Return how many points of a unit of a method are computed at a time.

        Parameters
        ----------
        method : str
            Name of the method.
        cores : int or None
            Of this machine; None for jobs of a cluster, which have as many as the method declares.
        """
        declared = methods.load(method).threads
        if cores is None or declared == 1:
            return declared
        # Small studies have fewer units than there are cores.
        return ceil(cores / max(len(self.study(name).units) for name in self.names))

    def allow_failures(self, study: str) -> bool:
        """Whether a study is accepted even if points of it failed."""
        return self.config.allow_failures or self.study(study).config.allow_failures

    def figure(self, study: str, title: str) -> tuple[str, BaseModel]:
        """Return the kind and the options of a figure.

        Raises
        ------
        ConfigError
            If the study has no figure of this title.
        """
        items = {item.title: item for item in self.study(study).config.figures}
        item = _named(items, "figure", title, study)
        return item.kind, figures.load(item.kind).options_class(**item.options)

    def figure_titles(self, study: str) -> list[str]:
        """Return the names of all figures of a study."""
        return [item.title for item in self.study(study).config.figures]

    def fits(self, study: str) -> list[tuple[str, str, BaseModel]]:
        """Return the name, the kind and the options of every fit."""
        return [
            (item.title, item.kind, fits.load(item.kind).options_class(**item.options))
            for item in self.study(study).config.fits
        ]

    def table(self, study: str, name: str) -> TableConfig:
        """Return what a table of a study tells.

        Raises
        ------
        ConfigError
            If the study has no table of this name.
        """
        items = {item.name: item for item in self.study(study).config.tables}
        return _named(items, "table", name, study)

    def table_names(self, study: str) -> list[str]:
        """Return the names of all tables of a study."""
        return [item.name for item in self.study(study).config.tables]

    def unit_files(self, study: str) -> list[str]:
        """Return the files of the units of a study, below the folder of results."""
        return [f"{study}/units/{unit}.jsonl" for unit in self.study(study).units]

    def products(self, study: str) -> list[str]:
        """Return the files that a study is built for, below the folder of results."""
        config = self.study(study).config
        figures = [f"{study}/figures/{title}" for title in self.figure_titles(study)]
        drawn = [f"{figure}.{suffix}" for figure in figures for suffix in ("png", "pdf")]
        tables = [f"{study}/tables/{name}" for name in self.table_names(study)]
        told = [f"{table}.{suffix}" for table in tables for suffix in ("csv", "tex")]
        return [f"{study}/cube.nc", *([f"{study}/fits.csv"] if config.fits else []), *told, *drawn]

    def data(self) -> list[str]:
        """Return the cubes and the tables of fits, below the folder of results."""
        built = [file for name in self.names for file in self.products(name)]
        return [file for file in built if file.endswith(("cube.nc", "fits.csv"))]

    def files(self) -> list[str]:
        """Return the files that are built, below the folder of results."""
        built = [
            file for name in self.names for file in (*self.products(name), f"{name}/verified.txt")
        ]
        return [*built, *SUMMARIES]

    def cube_digest(self, study: str) -> str:
        """Short digest of all that a cube depends on but the files of its units."""
        config = self.study(study).config
        content = config.model_dump_json(exclude={"allow_failures", "figures", "fits", "tables"})
        return mark(content, fingerprint("manyserver.study.cube"))

    @staticmethod
    def claims_digest() -> str:
        """Short digest of all that the table of claims depends on but cubes and fits."""
        # Imported here, since reading a study needs none of it.
        from manyserver import claims

        modules = sorted({type(claims.load(name)).__module__ for name in claims.names()})
        return mark(canonical(claims.names()), fingerprint(claims.__name__, *modules))

    def fits_digest(self, study: str) -> str:
        """Short digest of all that the table of fits depends on but the cube."""
        items = [(title, kind, options.model_dump()) for title, kind, options in self.fits(study)]
        modules = sorted({type(fits.load(kind)).__module__ for _, kind, _ in items})
        return mark(canonical(items), fingerprint(fits.__name__, *modules))

    def table_digest(self, study: str, name: str) -> str:
        """Short digest of all that a table depends on but the cube."""
        content = self.table(study, name).model_dump_json()
        return mark(content, fingerprint("manyserver.tables"))

    def figure_digest(self, study: str, title: str) -> str:
        """Short digest of all that a figure depends on but the cube."""
        kind, options = self.figure(study, title)
        code = fingerprint(figures.__name__, type(figures.load(kind)).__module__)
        return mark(canonical(options.model_dump()), code)


def mark(settings: str, code: str) -> str:
    """Return two short digests, for Snakemake to say which of the two changed."""
    return f"settings #{digest(settings)[:8]} code #{code[:8]}"


def _named(items: Mapping[str, T], word: str, name: str, study: str) -> T:
    if name not in items:
        told = f"study {study}: there is no {word} {shown(name)}"
        raise ConfigError([f"{told}; {suggestion(name, items)}"])
    return items[name]


def _check_kinds(study: Study) -> None:
    errors: list[str] = []
    for key, load in (("figures", figures.load), ("fits", fits.load)):
        for i, item in enumerate(getattr(study.config, key)):
            inside = f"{key}[{i}]"
            try:
                kind: Kind[Any] = load(item.kind, study.config.model)
                options = validated(kind.options_class, item.options, study.document, inside=inside)
            except ConfigError as error:
                errors.extend(error.lines)
            except ValueError as error:
                errors.append(f"{study.document.at(inside)}: {inside}: {error}")
            else:
                unknown = _unknown(options, study)
                for option, told in unknown:
                    place = f"{inside}.{option}"
                    errors.append(f"{study.document.at(place)}: {place} = {told}")
                if not unknown:
                    lacks = filter(None, kind.needs(_supply(study, options), options))
                    where = study.document.at(inside)
                    errors.extend(f"{where}: {inside}: {item.kind} needs {what}" for what in lacks)
    for i, table in enumerate(study.config.tables):
        for option, told in _unknown(table, study):
            place = f"tables[{i}].{option}"
            errors.append(f"{study.document.at(place)}: {place} = {told}")
    if errors:
        raise ConfigError(errors)


def _supply(study: Study, options: BaseModel) -> Supply:
    config = study.config
    return Supply(
        config.model, study.layout.points, config.methods_used, study.layout.axes, options
    )


def _unknown_values(at: Mapping[str, tuple], study: Study) -> list[tuple[str, str]]:
    """Say which values of axes of the study's own are not there."""
    own = study.layout.choices.get("own", ())
    lines = []
    for axis, values in at.items():
        if axis not in own:
            told = f"is no axis of the study's own; {suggestion(axis, own)}"
            lines.append(("at", f"{shown(axis)}: {told}"))
            continue
        there = study.layout.axes[axis]
        for value in values:
            if float(value) not in there:
                allowed = ", ".join(f"{number:g}" for number in there)
                told = f"{float(value):g}: is not in this study; Allowed: {allowed}"
                lines.append((f"at.{axis}", told))
    return lines


def _unknown(options: BaseModel, study: Study) -> list[tuple[str, str]]:
    """Say which values in a kind's options are not on the axes of the study, by their keys."""
    methods = list(study.config.methods_used)
    known = {**study.layout.choices, **dict.fromkeys(OF_METHODS, methods)}
    lines = _unknown_values(getattr(options, "at", {}), study)
    for key, allowed in known.items():
        value = getattr(options, key, None)
        there = {None, *allowed}
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item not in there:
                told = f"Allowed: {', '.join(str(label) for label in allowed) or 'none'}"
                if isinstance(item, str) and allowed:
                    told = suggestion(item, allowed)
                lines.append((key, f"{shown(item)}: is not in this study; {told}"))
    return lines
