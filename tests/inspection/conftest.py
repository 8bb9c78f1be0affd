import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from manyserver.__main__ import main
from manyserver.plan import Plan
from manyserver.study.running.compute import compute_unit
from manyserver.study.storage.store import Store

CONTENT: dict[str, Any] = {
    "title": "Small",
    "systems": {"one": {"pools": [{"fraction": 1, "speed": 1}]}},
    "policies": [{"name": "sq", "d": 2}],
    "sweep": {"arrival_rate": [0.5, 0.7], "n_servers": ["limit"]},
    "methods": {"mean_field": {}},
    "fits": [{"kind": "tail_growth"}],
}


class Project:
    """A configuration and results in a folder, built without Snakemake."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.results = folder / "results"
        self.store = Store(self.results / "points")
        self.write()

    def write(self, name: str = "small", **changes: Any) -> None:
        path = self.folder / "config" / "studies" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        # JSON is YAML.
        path.write_text(json.dumps({**CONTENT, **changes}))

    @property
    def plan(self) -> Plan:
        return Plan(self.folder / "config", {})

    def build(self, name: str = "small") -> None:
        """Compute the units, the cube and the fits."""
        files = []
        for unit_name, unit in self.plan.study(name).units.items():
            files.append(self.results / name / "units" / f"{unit_name}.jsonl")
            compute_unit(unit, self.store, files[-1], say=lambda line: None)
        cube = self.results / name / "cube.nc"
        self.call("cube", name, str(cube), *map(str, files))
        if self.plan.study(name).config.fits:
            self.call("fits", name, str(cube), str(cube.with_name("fits.csv")))

    def call(self, *arguments: str, code: int = 0, answer: str = "") -> str:
        """Run a command and return what it prints."""
        command = ["--config", str(self.folder / "config"), *arguments]
        result: Result = CliRunner().invoke(main, command, input=answer)
        assert result.exit_code == code, (result.output, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        return result.output

    def ask(self, verb: str, *arguments: str, **keywords: Any) -> list[str]:
        """Lines of a command that looks at the results."""
        said = self.call(verb, *arguments, "--results", str(self.results), **keywords)
        return said.splitlines()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A small study that has been built."""
    project = Project(tmp_path)
    project.build()
    return project
