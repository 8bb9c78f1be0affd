"""Configuration of the documentation: ``uv run --group docs sphinx-build -W docs docs/_build``."""

import re
from importlib import import_module
from importlib.metadata import version as installed_version

project = "manyserver"
author = "The manyserver developers"
release = version = installed_version("manyserver")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "manyserver"


def with_plugins(text):
    """Replace each line ``.. plugins:: PACKAGE`` by one for every class that its registry finds."""

    def directives(match):
        registry = import_module(match[1]).REGISTRY
        classes = map(registry.find, registry.names())
        return "\n".join(f".. autoclass:: {one.__module__}.{one.__name__}" for one in classes)

    return re.sub(r"^\.\. plugins:: (\S+)$", directives, text, flags=re.MULTILINE)


def with_variables(text):
    """Replace each line ``.. variables:: MODULE`` by a table of its schema."""

    def table(match):
        schema = import_module(match[1]).SCHEMA
        yield "| variable | meaning | symbol | units | dimensions | purpose |"
        yield "|---|---|---|---|---|---|"
        for name, one in sorted(schema.variables.items()):
            symbol = f"${one.symbol}$" if one.symbol else ""
            dims = ", ".join(one.dims)
            purpose = one.purpose.value
            yield f"| `{name}` | {one.long_name} | {symbol} | {one.units} | {dims} | {purpose} |"

    return re.sub(
        r"^\.\. variables:: (\S+)$", lambda match: "\n".join(table(match)), text, flags=re.MULTILINE
    )


def setup(app):
    """Read all pages with the plug-ins and the variables in them."""

    def read(app, name, source):
        source[0] = with_variables(with_plugins(source[0]))

    app.connect("source-read", read)
