"""Read YAML 1.2, and tell on which line a key stands.

Scalars are read by the core schema alone, with ``_`` allowed between digits: ``no`` is text,
``010`` is ten, ``1:2`` is text. A number without a fractional part is an integer however it is
written: ``1e3`` is 1000. A key cannot silently replace an earlier one, and ``<<`` merges mappings.
A file can only be as large as is read in a second, with all its aliases written out.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import BaseResolver

from manyserver.validation import ConfigError, Document, shown

__all__ = ["read_yaml"]

MOST_BYTES = 1_000_000
MOST_VALUES = 20_000
DEEPEST = 50
ADVICE = "measured sizes can be in a file of their own, and many rates in a range"

TAG = "tag:yaml.org,2002:"
DIGITS = "[0-9]+(?:_[0-9]+)*"
CORE: dict[str, tuple[str, str]] = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (rf"[-+]?{DIGITS}|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        rf"[-+]?(?:\.{DIGITS}|{DIGITS}(?:\.(?:{DIGITS})?)?)(?:[eE][-+]?{DIGITS})?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    "merge": (r"<<", "<"),
}
"""Tags of plain scalars by their text, and the characters these begin with."""
NOUNS = {"null": "nothing", "bool": "a Boolean", "int": "a number", "float": "a number"}
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def read_yaml(path: Path) -> Document:
    """Read a file that holds one YAML document.

    Raises
    ------
    ConfigError
        If it cannot be read, is not YAML in UTF-8, or holds what a configuration cannot: keys that
        are no text or occur twice, tags, numbers that are not finite, or too many values.
    """
    text = _text(path)
    reader = YAML(typ="safe", pure=True)
    reader.Resolver, reader.Composer = _Resolver, _Composer
    try:
        root = reader.compose(text)
        content = None if root is None else _Values().of(root)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = f"{error.context}: {error.problem}" if error.context else error.problem
        raise ConfigError([f"{path}, line {mark.line + 1}: {_one_line(told)}"]) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        told = f"is not YAML: holds the character #x{error.character:02x}"
        raise ConfigError([f"{path}, line {line}: {told}"]) from None
    except YAMLError as error:
        raise ConfigError([f"{path}: is not YAML: {_one_line(error)}"]) from None
    except RecursionError:
        raise ConfigError([f"{path}: is nested too deeply"]) from None
    return Document(path, content, lambda key: None if root is None else _line(root, key))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    if len(data) > MOST_BYTES:
        raise ConfigError([f"{path}: must be at most {MOST_BYTES / 1e6:g} MB large; {ADVICE}"])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        told = f"is not UTF-8 text (byte #x{data[error.start]:02x}); save the file as UTF-8"
        raise ConfigError([f"{path}, line {line}: {told}"]) from None


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _refusal(node: Node, message: str) -> MarkedYAMLError:
    return MarkedYAMLError(problem=message, problem_mark=node.start_mark)


def _kind(node: Node) -> str:
    return str(node.tag).removeprefix(TAG)


class _Resolver(BaseResolver):
    """Knows the core schema, whatever version a file claims to be of."""

    processing_version = (1, 2)

    def __init__(self, version: Any = None, loader: Any = None) -> None:
        super().__init__(loader)


for _name, (_pattern, _first) in CORE.items():
    _Resolver.add_implicit_resolver_base(
        f"{TAG}{_name}",
        re.compile(rf"(?:{_pattern})\Z"),
        [*_first, ""] if _name == "null" else list(_first),
    )


class _Composer(Composer):
    """Refuses what is too large or too deep while it reads, and merges mappings."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False
        self.count = self.level = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.count += 1
        self.level += 1
        if self.count > MOST_VALUES or self.level > DEEPEST:
            raise MarkedYAMLError(problem=_too_much(self.level), problem_mark=self._mark())
        node = super().compose_node(parent, index)
        self.level -= 1
        return node

    def _mark(self) -> StreamMark:
        mark: StreamMark = self.parser.peek_event().start_mark
        return mark

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        own: dict[str, tuple[Node, Node]] = {}
        merged: dict[str, tuple[Node, Node]] = {}
        for key, value in node.value:
            _check_key(key)
            name = "<<" if _kind(key) == "merge" else key.value
            if name in own:
                first = own[name][0].start_mark.line + 1
                told = f"the key {shown(name)} occurs twice, the first time in line {first}"
                raise _refusal(key, told)
            own[name] = (key, value)
        if "<<" in own and _kind(own["<<"][0]) == "merge":
            # The first of several mappings wins, and what stands here wins over all.
            for source in reversed(list(_merged(*own.pop("<<")))):
                merged.update({key.value: (key, value) for key, value in source.value})
        node.value = list({**merged, **own}.values())
        return node


def _too_much(level: int) -> str:
    if level > DEEPEST:
        return f"is nested too deeply; must be at most {DEEPEST} levels deep"
    return f"holds too much; must be at most {MOST_VALUES} values, aliases written out; {ADVICE}"


def _check_key(key: Node) -> None:
    kind = _kind(key)
    if not isinstance(key, ScalarNode) or kind not in ("str", "merge", *NOUNS):
        raise _refusal(key, "a key must be text")
    if kind in NOUNS:
        told = f"the key {key.value or '(empty)'} is {NOUNS[kind]}, not text"
        raise _refusal(key, f"{told}; put it in quotes: '{key.value}'")


def _merged(key: Node, node: Node) -> Iterator[MappingNode]:
    for source in node.value if isinstance(node, SequenceNode) else [node]:
        if not isinstance(source, MappingNode) or source.end_mark is None:
            raise _refusal(key, "'<<' must be a mapping that stands before, or a list of such")
        yield source


class _Values:
    """Turns nodes into plain values; what several aliases refer to is one object."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, int, int] | None] = {}

    def of(self, root: Node) -> Any:
        return self._read(root)[0]

    def _read(self, node: Node) -> tuple[Any, int, int]:
        """Value, its size and its depth, as if its aliases were written out."""
        if id(node) in self.known:
            found = self.known[id(node)]
            if found is None:
                raise _refusal(node, "refers to itself")
            return found
        self.known[id(node)] = None
        self.known[id(node)] = found = self._fresh(node)
        return found

    def _fresh(self, node: Node) -> tuple[Any, int, int]:
        if isinstance(node, ScalarNode):
            return _scalar(node), 1 + len(node.value) // 100, 1
        value: Any
        if isinstance(node, SequenceNode):
            _expect(node, "seq")
            parts = [self._read(child) for child in node.value]
            value = [part[0] for part in parts]
        else:
            _expect(node, "map")
            keys = [_scalar(key) for key, _ in node.value]
            parts = [self._read(child) for _, child in node.value]
            value = {key: part[0] for key, part in zip(keys, parts, strict=True)}
        size = 1 + sum(part[1] for part in parts)
        depth = 1 + max((part[2] for part in parts), default=0)
        if size > MOST_VALUES or depth > DEEPEST:
            raise _refusal(node, _too_much(depth))
        return value, size, depth


def _expect(node: Node, kind: str) -> None:
    if _kind(node) != kind:
        raise _refusal(node, f"the tag {_kind(node)} is not allowed; write plain values")


def _scalar(node: ScalarNode) -> Any:
    text: str = node.value
    try:
        match _kind(node):
            case "null":
                return None
            case "bool":
                return {"true": True, "false": False}[text.lower()]
            case "int":
                bases = {"0o": 8, "0x": 16}
                return _bounded(int(text, bases.get(text[:2].lower(), 10)))
            case "float":
                return _bounded(float(text.lower().replace(".inf", "inf").replace(".nan", "nan")))
            case "str" | "merge" if not UNPRINTABLE.search(text):
                return text
            case "str":
                raise _refusal(node, f"{shown(text)}: holds a character that cannot be printed")
    except (ValueError, KeyError, OverflowError):
        told = "a finite number" if _kind(node) == "float" else "below 2**63 in size"
        raise _refusal(node, f"{shown(text)}: must be {told}") from None
    raise _refusal(node, f"the tag {_kind(node)} is not allowed; write plain values")


def _bounded(number: int | float) -> int | float:
    """Return an integer for a float that stands for one exactly.

    Raises
    ------
    ValueError, OverflowError
        If a float is not finite, or an integer has more than 64 bits.
    """
    if isinstance(number, float):
        whole = int(number)
        return whole if whole == number and abs(whole) <= 2**53 else number
    if abs(number) >= 2**63:
        raise OverflowError
    return number


def _line(node: Node, key: str) -> int | None:
    """Line of a dotted key, such as ``systems.a.pools[0].speed``, or of what is nearest to it."""
    line: int | None = None
    rest = key
    while rest:
        best: tuple[str, Node, Node] = ("", node, node)
        for name, place, child in _children(node):
            # Labels can hold dots, so the longest name that fits is meant.
            fits = rest == name or rest.startswith((f"{name}.", f"{name}["))
            if fits and len(name) >= len(best[0]):
                best = (name, place, child)
        if best[1] is node:
            break
        line, node = best[1].start_mark.line + 1, best[2]
        rest = rest[len(best[0]) :].removeprefix(".")
    return line


def _children(node: Node) -> Iterator[tuple[str, Node, Node]]:
    if isinstance(node, MappingNode):
        yield from ((key.value, key, value) for key, value in node.value)
    elif isinstance(node, SequenceNode):
        yield from ((f"[{i}]", item, item) for i, item in enumerate(node.value))
