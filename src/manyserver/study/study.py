"""A study: the points that a configuration stands for.

Everything that can be wrong with a study is found here, before any point is computed.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from manyserver import methods
from manyserver.registry import DEFAULT_MODEL
from manyserver.study import models
from manyserver.study.config.base import StudyConfig
from manyserver.study.config.text import unfit_texts
from manyserver.study.config.yaml_file import read_yaml
from manyserver.study.layout import Layout
from manyserver.study.points import Point, Unit, units
from manyserver.validation import ConfigError, Document, Mistakes, shown, suggestion, validated

__all__ = ["Study", "read_config", "read_study"]


@dataclass(frozen=True)
class Study:
    """A study that has been checked.

    Parameters
    ----------
    name : str
        Name of its file without the suffix.
    config : StudyConfig
        What the file says.
    layout : Layout
        Its points and axes.
    notes : tuple of str
        What a reader should be told.
    document : Document
        The file, and the lines on which its keys stand.
    """

    name: str
    config: StudyConfig
    layout: Layout
    notes: tuple[str, ...]
    document: Document

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """All that is to be computed, each once, in the order of the axes."""
        once: dict[str, Point] = {}
        for point in self.layout.points:
            once.setdefault(point.id, point)
        return tuple(once.values())

    @cached_property
    def units(self) -> dict[str, Unit]:
        """The units by name."""
        config = self.config
        return {unit.name: unit for unit in units(self.points, config.unit, config.unit_points)}

    def unit(self, name: str) -> Unit:
        """Return a unit.

        Raises
        ------
        ConfigError
            If there is none of this name.
        """
        if name not in self.units:
            told = f"study {self.name}: there is no unit {shown(name)}"
            raise ConfigError([f"{told}; {suggestion(name, self.units)}"])
        return self.units[name]


def read_study(path: Path) -> Study:
    """Read a study's file and check all of it.

    Raises
    ------
    ConfigError
        If anything in it is wrong; the message says what, where, and what is allowed.
    """
    config, document, notes = read_config(path)
    mistakes = Mistakes(document)
    _check_names(config, mistakes)
    layout = models.load(config.model).lay_out(config, mistakes)
    mistakes.stop()
    if not layout.points:
        mistakes.add("methods", "none of them applies to any of sweep.n_servers")
        mistakes.stop()
    return Study(path.stem, config, layout, tuple(notes), document)


def read_config(path: Path) -> tuple[Any, Document, list[str]]:
    """Read a study's YAML file.

    Returns
    -------
    config : StudyConfig
        What the file says, in the form of its model.
    document : Document
        The same as plain values, with the lines on which they stand.
    notes : list of str
        What a reader should be told, such as a float that was read as a ratio.

    Raises
    ------
    ConfigError
        If the file cannot be read, or its keys and values are not what they must be.
    """
    document = read_yaml(path)
    content = document.content
    name = content.get("model", DEFAULT_MODEL) if isinstance(content, dict) else DEFAULT_MODEL
    try:
        model = models.load(name)
    except ValueError as error:
        raise ConfigError([f"{document.at('model')}: {error}"]) from None
    notes: list[str] = []
    config = validated(model.config_class, content, document, context={"notes": notes})
    unfit = [f"{document.at(key)}: {line}" for key, line in unfit_texts(content)]
    if unfit:
        raise ConfigError(unfit)
    return config, document, [f"{path}: {note}" for note in dict.fromkeys(notes)]


def _check_names(config: StudyConfig, mistakes: Mistakes) -> None:
    if not config.methods_used:
        known = ", ".join(methods.names(config.model))
        mistakes.add("methods", f"must name at least one of {known}")
    for key in ("figures", "fits", "tables"):
        # On some file systems, names that differ in case alone are one file.
        titles = [item.name if key == "tables" else item.title for item in getattr(config, key)]
        alike = [title.casefold() for title in titles]
        for i, title in enumerate(titles):
            if alike[i] in alike[:i]:
                mistakes.add(f"{key}[{i}].name", f"{title!r} occurs twice; must be unique")
