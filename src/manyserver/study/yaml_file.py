"""Read YAML in which a key cannot silently replace an earlier one."""

from pathlib import Path
from typing import Any

import yaml

__all__ = ["read_yaml"]


class _Loader(yaml.SafeLoader):
    pass


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict:
    seen: set[object] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"key {key!r} occurs twice", key_node.start_mark
            )
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path) -> Any:
    """Read one YAML document from a file.

    Raises
    ------
    OSError
        If the file cannot be read.
    yaml.YAMLError
        If it is not YAML, or a mapping has the same key twice.
    """
    with path.open(encoding="utf-8") as stream:
        return yaml.load(stream, Loader=_Loader)
