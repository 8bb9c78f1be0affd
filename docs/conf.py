"""Configuration of the documentation: ``uv run --group docs sphinx-build -W docs docs/_build``."""

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
