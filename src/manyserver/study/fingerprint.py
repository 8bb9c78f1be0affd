"""A digest of the code that a result depends on, blind to comments and docstrings.

The digest covers an entry module and every module of the same package that it imports, directly
or not. Imports are read from the source, so nothing is imported to take it. Library versions are
not part of it: they are recorded beside each result instead.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

__all__ = ["fingerprint", "imported_modules", "module_digests"]


def fingerprint(*entries: str, without: tuple[str, ...] = (), folder: Path | None = None) -> str:
    """Digest the code of some modules and of all that they import from their own package.

    Parameters
    ----------
    *entries : str
        Dotted names of the modules to start from, all of one package.
    without : tuple of str, optional
        Modules and packages to leave out, with what only they import.
    folder : pathlib.Path, optional
        Where the package lies; by default where Python finds it.

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
    root = _package_folder(entries[0].split(".")[0]) if folder is None else folder
    return {
        name: _code_digest(*_version(_source(name, root)))
        for name in imported_modules(*entries, without=without, folder=root)
    }


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
    root = _package_folder(entries[0].split(".")[0]) if folder is None else folder
    found: set[str] = set()
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        if name not in found and not _within(name, without):
            found.add(name)
            waiting.extend(_imports(name, *_version(_source(name, root)), root))
    return sorted(found)


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _package_folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"package = {package!r}: must be an importable package")
    return Path(spec.submodule_search_locations[0])


def _source(name: str, root: Path) -> Path:
    path = root.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _version(source: Path) -> tuple[Path, int]:
    return source, source.stat().st_mtime_ns


@cache
def _tree(source: Path, modified: int) -> ast.Module:
    return ast.parse(source.read_bytes())


@cache
def _imports(name: str, source: Path, modified: int, root: Path) -> tuple[str, ...]:
    package = name.split(".")[0]
    found: list[str] = []
    for node in _statements(_tree(source, modified)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, name, is_package=source.name == "__init__.py")
            targets = []
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                targets.append(inner if _exists(inner, root) else base)
        else:
            continue
        # The root package only gathers public names; following it would couple all code to all.
        found.extend(t for t in targets if t.startswith(f"{package}.") and _exists(t, root))
    return tuple(found)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; there are far fewer of them than of expressions."""
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


def _exists(name: str, root: Path) -> bool:
    return name.split(".")[0] == root.name and _source(name, root).is_file()


@cache
def _code_digest(source: Path, modified: int) -> str:
    return hashlib.sha256(repr(_plain(_tree(source, modified))).encode()).hexdigest()


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
