"""The examples of docs/adding.md: files to be put where plug-ins are found."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "adding.md").read_text()
SOURCES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(PYPROJECT,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
FOLDERS = {
    "policies": "FastFirst",
    "sizes": "Uniform",
    "methods": "RoughChain",
    "fits": "WaitingPower",
    "figures": "WaitingCurve",
    "claims": "ShorterUnderJSQ",
}
STUDY = """
title: Plug-ins
systems:
  one: {pools: [{fraction: 1, speed: 1}]}
policies:
  - {name: fast_first, d: 2}
sweep: {load: 0.5, n_servers: [3, 4, 5, limit]}
methods: {mean_field: {}, rough_chain: {}}
fits:
  - {kind: waiting_power}
  - {kind: finite_size, method: rough_chain}
figures:
  - {kind: waiting_curve}
"""
"""The figure and the first fit find the method by its role."""
JOBS = """
title: Plug-ins with jobs
systems:
  one: {pools: [{fraction: 1, speed: 1}]}
policies:
  - {name: fast_first, d: 2}
jobs:
  uniform: {sizes: {name: uniform}, discipline: ps}
sweep: {load: 0.5, n_servers: limit}
methods: {mean_field: {}}
"""


def source(folder: str) -> tuple[str, str]:
    """Name of the module and text of the example for a folder of the package."""
    (text,) = (one for one in SOURCES if f"class {FOLDERS[folder]}" in one)
    found = re.search(r"^    name(?:: ClassVar\[str\])? = \"(\w+)\"", text, re.MULTILINE)
    assert found is not None
    return found[1], text
