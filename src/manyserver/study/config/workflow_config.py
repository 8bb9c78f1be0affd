"""The file ``config.yaml``, and what the command line puts in its place."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from manyserver.study.config.base import Strict
from manyserver.study.config.yaml_file import read_yaml
from manyserver.validation import ConfigError, Document, shown, validated

__all__ = ["WorkflowConfig", "read_workflow_config"]

COMMAND_LINE = Path("command line")
"""Stands for the file in messages about what was given there."""


def _read_studies(value: object) -> object:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"{shown(value)}: must be default, all, or a list of names; put names that could be "
            "numbers or Booleans in quotes"
        )
    return value if value in ("default", "all") else tuple(name.strip() for name in names)


Studies = Annotated[
    Literal["default", "all"] | tuple[str, ...],
    BeforeValidator(_read_studies),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["default", "all"], "type": "string"},
                {"items": {"type": "string"}, "type": "array"},
            ]
        }
    ),
]


class WorkflowConfig(Strict):
    """The file ``config/config.yaml``."""

    studies: Studies = "default"
    """Names of the studies that are built, without their suffix; or `all`; or `default`, all but
    those `on_request`."""
    on_request: tuple[str, ...] = ()
    """Names of studies that take longer."""
    allow_failures: bool = False
    """Does for all studies what the key of a study does."""


def read_workflow_config(
    folder: Path, overrides: Mapping[str, object]
) -> tuple[WorkflowConfig, Document]:
    """Read ``config.yaml``, or ``config.yml``; there need not be one.

    Parameters
    ----------
    folder : pathlib.Path
        The configuration.
    overrides : mapping
        Keys that replace those of the file.

    Returns
    -------
    config : WorkflowConfig
        What is to be built.
    document : Document
        What says which studies: the file, or the command line.

    Raises
    ------
    ConfigError
        If anything is wrong with the file or the overrides.
    """
    document = _config_file(folder)
    given = Document(COMMAND_LINE, _from_command_line(overrides))
    content = {} if document.content is None else document.content
    # Each is checked alone, so that a message says where the mistake is.
    config = validated(WorkflowConfig, content, document)
    replaced = validated(WorkflowConfig, given.content, given)
    config = config.model_copy(update=replaced.model_dump(exclude_unset=True))
    return config, given if "studies" in overrides else document


def _config_file(folder: Path) -> Document:
    paths = [folder / name for name in ("config.yaml", "config.yml")]
    found = [path for path in paths if path.exists()]
    if len(found) > 1:
        raise ConfigError([f"{folder}: must not hold both config.yaml and config.yml; keep one"])
    return read_yaml(found[0]) if found else Document(paths[0], None)


def _from_command_line(overrides: Mapping[str, object]) -> dict[str, object]:
    """Read the Booleans that Snakemake hands over as text."""
    words = {"true": True, "false": False}
    return {
        key: words.get(value.lower(), value)
        if key == "allow_failures" and isinstance(value, str)
        else value
        for key, value in overrides.items()
    }
