import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from manyserver.plan import Plan
from manyserver.validation import ConfigError

STUDY: dict[str, Any] = {
    "title": "Small",
    "systems": {
        "unequal": {
            "pools": [{"fraction": "1/2", "speed": "2/3"}, {"fraction": "1/2", "speed": "4/3"}]
        }
    },
    "policies": [{"name": "scheme1", "d": [2, 2]}, {"name": "hybrid_sq", "d": 2}],
    "sweep": {"arrival_rate": [0.5, 0.7], "n_servers": ["limit"]},
    "methods": {"mean_field": {}},
    "figures": [{"kind": "sojourn_against"}],
    "fits": [{"kind": "tail_growth"}],
}

WriteStudy = Callable[..., Path]
NUMBERED = re.compile(r"(?:, line (\d+))?: (.*)", re.DOTALL)


def mistakes(path: Path) -> tuple[str, ...]:
    """What is wrong with a study, but for the file and the line, which is the key's."""
    with pytest.raises(ConfigError) as caught:
        Plan(path.parents[1])
    content, told = path.read_text().splitlines(), []
    for line in caught.value.lines:
        match = NUMBERED.fullmatch(line.removeprefix(str(path)))
        assert match is not None, line
        key = re.split(r": | = ", match[2])[0]
        name = json.dumps(re.split(r"[.\[]", key)[-1])
        there = [i for i, text in enumerate(content, start=1) if name in text]
        # An item of a list has the line of its bracket.
        assert not there or int(match[1]) in there or content[int(match[1]) - 1].strip() == "{"
        told.append(match[2])
    return tuple(told)


@pytest.fixture
def write_study(tmp_path: Path) -> WriteStudy:
    """Write the small study with some keys replaced, given as paths: ``{"sweep.load": [0.5]}``.

    A value of None removes the key.
    """

    def write(changes: dict[str, Any] | None = None, name: str = "small") -> Path:
        content = deepcopy(STUDY)
        for key, value in (changes or {}).items():
            *parents, last = [int(p) if p.isdigit() else p for p in key.split(".")]
            target: Any = content
            for part in parents:
                target = target[part]
            if value is None:
                del target[last]
            else:
                target[last] = value
        path = tmp_path / "config" / "studies" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        # JSON is YAML, with one key a line.
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False))
        return path

    return write
