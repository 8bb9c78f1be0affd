"""A digest of the code that a result depends on, blind to comments and docstrings.

The digest covers an entry module and every module of its own package and of this one that it
imports, directly or not. Imports are read from the source, so nothing is imported to take it.
Library versions are not part of it: they are recorded beside each result instead.

What was read is kept beside Python's bytecode, as reading it takes longer than most commands.
"""

import ast
import hashlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from manyserver.study.whole_files import replacing

__all__ = ["fingerprint", "imported_modules", "module_digests"]

OLD_NS = 2 * 10**9
"""A file edited so lately may be edited again with the same time, so it is not kept."""


def fingerprint(*entries: str, without: tuple[str, ...] = (), folder: Path | None = None) -> str:
    """Digest the code of some modules and of all that they import from their packages or this one.

    Parameters
    ----------
    *entries : str
        Dotted names of the modules to start from.
    without : tuple of str, optional
        Modules and packages to leave out, with what only they import.
    folder : pathlib.Path, optional
        Where the package of the first lies; by default where Python finds it.

    Returns
    -------
    str
        16 hexadecimal digits.

    Examples
    --------
    >>> fingerprint("manyserver.model") == fingerprint("manyserver.model")
    True
    """
    digest = hashlib.sha256()
    for name, code in module_digests(*entries, without=without, folder=folder).items():
        digest.update(f"{name}={code}\n".encode())
    return digest.hexdigest()[:16]


def module_digests(
    *entries: str, without: tuple[str, ...] = (), folder: Path | None = None
) -> dict[str, str]:
    """Digest the code of every module that :func:`fingerprint` covers, by its name.

    Examples
    --------
    >>> list(module_digests("manyserver.model"))
    ['manyserver.checks', 'manyserver.model']
    """
    covered = _covered(entries, without, folder)
    return {name: covered[name].digest for name in sorted(covered)}


def imported_modules(
    *entries: str, without: tuple[str, ...] = (), folder: Path | None = None
) -> list[str]:
    """List the modules that :func:`fingerprint` covers, sorted by name.

    A package's own ``__init__`` counts only if something is imported from it by name.

    Examples
    --------
    >>> imported_modules("manyserver.model")
    ['manyserver.checks', 'manyserver.model']
    """
    return sorted(_covered(entries, without, folder))


def _covered(
    entries: tuple[str, ...], without: tuple[str, ...], folder: Path | None
) -> dict[str, "_Module"]:
    packages = dict.fromkeys([*(_package(entry) for entry in entries), _package(__name__)])
    roots = {name: folder if folder and not i else _root(name) for i, name in enumerate(packages)}
    exists = cache(partial(_exists, roots=roots))
    found: dict[str, _Module] = {}
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        if name not in found and not _within(name, without):
            found[name] = _module(name, roots[_package(name)])
            waiting.extend(_imports(found[name], exists))
    for root in roots.values():
        _kept(root).save()
    return found


def _package(name: str) -> str:
    return name.split(".")[0]


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@cache
def _root(package: str) -> Path:
    """Return the folder of a package, or the file of a single module."""
    spec = importlib.util.find_spec(package)
    if spec is None or not (spec.submodule_search_locations or spec.has_location):
        raise ValueError(f"package = {package!r}: must be an importable package")
    folders = spec.submodule_search_locations
    return Path(folders[0] if folders else str(spec.origin))


def _source(name: str, root: Path) -> Path:
    path = root.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


class _Module(NamedTuple):
    """What one version of a source says."""

    modified: int
    size: int
    digest: str
    imports: list[tuple[str, list[str]]]
    """Modules, and what is imported from each."""


class _Kept:
    """What was read of the sources of a package, in a file that is worthless if it is damaged."""

    def __init__(self, root: Path):
        self.changed = False
        self.modules: dict[str, _Module] = {}
        bytecode = Path(importlib.util.cache_from_source(str(_source(root.stem, root))))
        tag = sys.implementation.cache_tag
        self.path = bytecode.with_name(f"fingerprint.{root.stem}.{tag}.json")
        try:
            checksum, _, content = self.path.read_bytes().partition(b"\n")
        except OSError:
            return
        if checksum == _checksum(content):
            self.modules = {name: _Module(*told) for name, told in json.loads(content).items()}

    def save(self) -> None:
        """Write what is new, if Python would write bytecode."""
        if not self.changed or sys.dont_write_bytecode:
            return
        self.changed = False
        latest = time.time_ns() - OLD_NS
        modules = {
            name: told for name, told in list(self.modules.items()) if told.modified < latest
        }
        content = json.dumps(modules).encode()
        try:
            with replacing(self.path) as temporary:
                temporary.write_bytes(_checksum(content) + b"\n" + content)
        except OSError:
            return  # The package may lie where nothing can be written.


@cache
def _kept(root: Path) -> _Kept:
    return _Kept(root)


def _checksum(content: bytes) -> bytes:
    # What another version of this module has kept counts as damaged.
    return hashlib.sha256(Path(__file__).read_bytes() + content).hexdigest().encode()


def _module(name: str, root: Path) -> _Module:
    source, kept = _source(name, root), _kept(root)
    state = source.stat()
    known = kept.modules.get(name)
    if known is None or known[:2] != (state.st_mtime_ns, state.st_size):
        tree = ast.parse(source.read_bytes())
        imports = list(_targets(tree, name, is_package=source.name == "__init__.py"))
        known = _Module(state.st_mtime_ns, state.st_size, _code_digest(tree), imports)
        kept.modules[name], kept.changed = known, True
    return known


def _targets(tree: ast.Module, name: str, is_package: bool) -> Iterator[tuple[str, list[str]]]:
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield _absolute(node, name, is_package), [alias.name for alias in node.names]


def _imports(module: _Module, exists: Callable[[str], bool]) -> Iterator[str]:
    """Yield the modules of the packages that one of them imports."""
    for base, inner in module.imports:
        for target in [f"{base}.{one}" for one in inner] or [base]:
            found = target if exists(target) else base
            # The root package only gathers public names; following it would couple all code to all.
            if found != _package(__name__) and exists(found):
                yield found


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node that are run; they are far fewer than the expressions."""
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        return
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = getattr(node, field, ())
        for child in inner if isinstance(inner, list) else ():
            yield child
            yield from _statements(child)


def _absolute(node: ast.ImportFrom, name: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _exists(name: str, roots: dict[str, Path]) -> bool:
    return _package(name) in roots and _source(name, roots[_package(name)]).is_file()


def _code_digest(tree: ast.Module) -> str:
    return hashlib.sha256(repr(_plain(tree)).encode()).hexdigest()


def _plain(node: object) -> object:
    # Written out here because the text of ast.dump changes between versions of Python.
    if isinstance(node, ast.AST):
        values = ((field, _plain(value)) for field, value in _fields(node))
        return type(node).__name__, tuple((f, v) for f, v in values if v not in (None, ()))
    if isinstance(node, list):
        return tuple(_plain(item) for item in node)
    return None if node is None else (type(node).__name__, repr(node))


def _fields(node: ast.AST) -> Iterable[tuple[str, object]]:
    for field, value in ast.iter_fields(node):
        if field == "body" and isinstance(value, list):
            yield field, [child for child in value if not _is_text(child)]
        elif field not in ("ctx", "kind", "type_comment"):
            yield field, value


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a bare string: a docstring, or the note under a constant."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
