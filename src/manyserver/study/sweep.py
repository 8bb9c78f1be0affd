"""A study: the points that a configuration stands for.

Everything that can be wrong with a study is found here, before any point is computed.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from manyserver.study import methods, models
from manyserver.study.config import StudyConfig, read_config
from manyserver.study.layout import Layout
from manyserver.study.points import Point, Unit, units
from manyserver.study.validation import ConfigError, Mistakes

__all__ = ["Study", "read_study"]


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
    """

    name: str
    config: StudyConfig
    layout: Layout
    notes: tuple[str, ...]

    @property
    def points(self) -> tuple[Point, ...]:
        """All points, in the order of the axes."""
        return self.layout.points

    @cached_property
    def units(self) -> dict[str, Unit]:
        """The units by name."""
        config = self.config
        return {unit.name: unit for unit in units(self.points, config.unit, config.unit_points)}


def read_study(path: Path) -> Study:
    """Read a study's file and check all of it.

    Raises
    ------
    ConfigError
        If anything in it is wrong; the message says what, where, and what is allowed.
    """
    config, notes = read_config(path)
    mistakes = Mistakes(str(path))
    _check_names(config, path.stem, mistakes)
    layout = models.load(config.model).lay_out(config, mistakes)
    mistakes.stop()
    if not layout.points:
        raise ConfigError([f"{path}: methods: none of them applies to any of sweep.n_servers"])
    return Study(path.stem, config, layout, tuple(notes))


def _check_names(config: StudyConfig, stem: str, mistakes: Mistakes) -> None:
    if stem == "points":
        mistakes.add("file name", "must not be points.yaml; results/points holds the store")
    if not config.methods_used:
        known = ", ".join(methods.names(config.model))
        mistakes.add("methods", f"must name at least one of {known}")
    for key in ("figures", "fits"):
        titles = [item.title for item in getattr(config, key)]
        for i, title in enumerate(titles):
            if title in titles[:i]:
                mistakes.add(f"{key}[{i}].name", f"{title!r} occurs twice; must be unique")
