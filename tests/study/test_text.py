"""Texts that could be neither written nor drawn are refused with their key."""

import re
import subprocess
import sys
from typing import Any

import pytest

from manyserver.study.config.text import unfit_texts
from manyserver.study.study import read_study
from manyserver.validation import ConfigError

SYSTEM = {"pools": [{"fraction": 1, "speed": 1}]}
FIGURE = {"kind": "sojourn_against"}
UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "a title": ({"figures": [{**FIGURE, "title": r"$\frac$"}]}, "figures[0].title = "),
    "a label": ({"policies.0.label": "$x^{2$"}, "'$x^{2$': is not mathtext"),
    "a system": ({"systems": {"$_$": SYSTEM}}, "systems.$_$: is not mathtext"),
    "unknown symbol": ({"policies.0.label": r"$\nope$"}, "policies[0].label = "),
    "one dollar": ({"policies.0.label": "US$ 5"}, r"a dollar sign must be written \$"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_unfit_texts(name: str, write_study: Any) -> None:
    changes, message = UNFIT[name]
    with pytest.raises(ConfigError) as caught:
        read_study(write_study(changes))
    (line,) = caught.value.lines
    assert re.search(r"small.yaml, line \d+: ", line)
    assert message in line


def test_texts_that_are_fit(write_study: Any) -> None:
    study = read_study(
        write_study(
            {
                "title": "From $5 on",
                "description": "Two\nlines,\ta tab, \u00fc and \u4e16",
                "systems": {"ü": SYSTEM},
                "policies": [{"name": "sq", "d": 2, "label": r"\$5, $d = 2$ and $\frac{1}{2}$"}],
            }
        )
    )
    assert study.config.title == "From $5 on"


def test_matplotlib_is_imported_for_formulas_alone() -> None:
    code = (
        "import sys\nfrom manyserver.study.config.text import unfit_texts\n"
        "assert not list(unfit_texts({'title': 'a $', 'label': 'b'}))\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not list(unfit_texts(["$x$"]))
