from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

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
    "figures": [{"kind": "sojourn_against_load"}],
    "fits": [{"kind": "tail_growth"}],
}

WriteStudy = Callable[..., Path]


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
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    return write
