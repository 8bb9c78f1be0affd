import ast
import os
import shutil
import sys
from pathlib import Path

import pytest

import manyserver
from manyserver import methods
from manyserver.study import fingerprint as fingerprint_module
from manyserver.study.fingerprint import fingerprint, imported_modules

SOURCE = Path(manyserver.__file__).parent

MODULES = {
    "__init__": "from package.kernel import run\n",
    "entry": "from package import kernel\nfrom package.inner.leaf import value\n",
    "kernel": '"""Doc."""\n\nSTEP = 1\n"""Note."""\n\n\ndef run(x):\n    """Doc."""\n'
    "    return x + STEP\n",
    "inner/__init__": "from package.other import unused\n",
    "inner/leaf": "def value():\n    from . import late\n    return late.x\n",
    "inner/late": "x = 1\n",
    "other": "unused = 1\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    for name, text in MODULES.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_imports_are_followed_but_not_packages_that_nothing_is_taken_from(package: Path) -> None:
    assert imported_modules("package.entry", folder=package) == [
        "package.entry",
        "package.inner.late",
        "package.inner.leaf",
        "package.kernel",
    ]


def test_a_name_taken_from_a_package_brings_in_the_package(package: Path) -> None:
    (package / "entry.py").write_text("from package.inner import unused\n")
    assert imported_modules("package.entry", folder=package) == [
        "package.entry",
        "package.inner",
        "package.other",
    ]


def test_modules_can_be_left_out_with_what_only_they_import(package: Path) -> None:
    left = imported_modules("package.entry", without=("package.inner",), folder=package)
    assert left == ["package.entry", "package.kernel"]


def kept_file(package: Path) -> Path:
    """Where it is kept what was read of sources that are no more edited."""
    for source in package.rglob("*.py"):
        os.utime(source, (1e9, 1e9))
    fingerprint_module._kept.cache_clear()
    fingerprint("package.entry", folder=package)
    (kept,) = package.glob("__pycache__/*.json")
    fingerprint_module._kept.cache_clear()
    return kept


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> list[ast.Module]:
    """Sources that are read."""
    read: list[ast.Module] = []
    digest = fingerprint_module._code_digest

    def digested(tree: ast.Module) -> str:
        read.append(tree)
        return digest(tree)

    monkeypatch.setattr(fingerprint_module, "_code_digest", digested)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return read


def test_sources_that_were_read_are_not_read_again(package: Path, unread: list[ast.Module]) -> None:
    kept_file(package)
    before = fingerprint("package.entry", folder=package)
    assert len(unread) == 4
    (package / "kernel.py").write_text(MODULES["kernel"].replace("STEP = 1", "STEP = 2"))
    assert fingerprint("package.entry", folder=package) != before
    assert len(unread) == 5


def test_what_is_kept_is_ignored_if_it_is_damaged(package: Path, unread: list[ast.Module]) -> None:
    kept = kept_file(package)
    before = fingerprint("package.entry", folder=package)
    content = kept.read_bytes()
    for damaged in (b"", content[:-1], content.replace(b"entry", b"other")):
        kept.write_bytes(damaged)
        fingerprint_module._kept.cache_clear()
        unread.clear()
        assert fingerprint("package.entry", folder=package) == before
        assert len(unread) == 4


def test_a_source_that_was_just_edited_is_not_kept(package: Path, unread: list[ast.Module]) -> None:
    kept_file(package)
    (package / "other.py").write_text("unused = 2\n")
    for _ in range(2):
        fingerprint_module._kept.cache_clear()
        unread.clear()
        fingerprint("package.other", folder=package)
        assert len(unread) == 1


HARMLESS = {
    "a comment": ("    return x + STEP", "    return x + STEP  # add"),
    "a docstring": ('    """Doc."""', '    """Say more."""'),
    "no docstring": ('    """Doc."""\n', ""),
    "a note under a constant": ('"""Note."""', '"""Other note."""'),
    "layout": ("x + STEP", "(x +\n        STEP)"),
}
HARMFUL = {
    "a constant": ("STEP = 1", "STEP = 2"),
    "an operation": ("x + STEP", "x - STEP"),
    "a name": ("def run(x)", "def run(x=0)"),
    "a value's type": ("STEP = 1", "STEP = 1.0"),
}


@pytest.mark.parametrize("old,new", HARMLESS.values(), ids=HARMLESS)
def test_blind_to(package: Path, old: str, new: str) -> None:
    before = fingerprint("package.entry", folder=package)
    _edit(package / "kernel.py", old, new)
    assert fingerprint("package.entry", folder=package) == before


@pytest.mark.parametrize("old,new", HARMFUL.values(), ids=HARMFUL)
def test_sees(package: Path, old: str, new: str) -> None:
    before = fingerprint("package.entry", folder=package)
    _edit(package / "kernel.py", old, new)
    assert fingerprint("package.entry", folder=package) != before


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_both_methods_share_what_they_compute_with_and_no_more() -> None:
    covered = {
        name: set(
            imported_modules(f"manyserver.methods.{name}", without=methods.load(name).starts_from)
        )
        for name in ("mean_field", "simulation")
    }
    assert {"manyserver.model", "manyserver.variables"} <= covered["mean_field"]
    assert {"manyserver.model", "manyserver.variables"} <= covered["simulation"]
    assert [m for m in covered["mean_field"] if m.startswith("manyserver.simulation")] == []
    assert [m for m in covered["simulation"] if m.startswith("manyserver.mean_field")] == []
    both = set.union(*covered.values())
    assert {m for m in both if m.startswith("manyserver.study")} == set()
    assert {m for m in both if m.startswith("manyserver.methods")} == {
        "manyserver.methods.base",
        "manyserver.methods.dispatching",
        "manyserver.methods.mean_field",
        "manyserver.methods.simulation",
    }


def codes(folder: Path) -> dict[str, str]:
    """Fingerprints of the methods and of a policy in a copy of the package."""
    found = {
        name: fingerprint(
            f"manyserver.methods.{name}",
            without=methods.load(name).starts_from,
            folder=folder,
        )
        for name in methods.names()
    }
    return {**found, "sq": fingerprint("manyserver.policies.sq", folder=folder)}


@pytest.mark.parametrize(
    "edited,changed",
    [
        ("simulation", ["chain_simulation", "simulation"]),
        ("mean_field", ["mean_field", "refined_mean_field"]),
        ("exact", ["exact"]),
        ("policies/sq.py", ["mean_field", "refined_mean_field", "sq"]),
        ("policies/schemes.py", []),
        ("model.py", sorted([*methods.names("dispatching"), "chain_simulation", "sq"])),
        ("schema.py", sorted(methods.names())),
        ("diffusion/halfin_whitt/convergence/gap.py", ["relaxation"]),
        ("diffusion/halfin_whitt/fluid_model/stein.py", ["fluid"]),
        ("diffusion/halfin_whitt/limit/method_of_lines.py", ["chain", "diffusion", "relaxation"]),
        ("figures/drawing/style.py", []),
        ("study/cube.py", []),
    ],
)
def test_an_edit_changes_the_code_of_what_it_computes(
    tmp_path: Path, edited: str, changed: list[str]
) -> None:
    folder = tmp_path / "manyserver"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    before = codes(folder)
    target = folder / edited
    for path in [target] if target.is_file() else target.glob("*.py"):
        path.write_text(f"{path.read_text()}\nEDITED = 1\n")
    after = codes(folder)
    assert [name for name in sorted(before) if after[name] != before[name]] == changed
