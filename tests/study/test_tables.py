"""Tables of a variable over the axes of a cube."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.study.conftest import mistakes
from tests.study.test_cube import built

from manyserver.__main__ import main
from manyserver.plan import Plan
from manyserver.study.config.tables import TableConfig
from manyserver.study.cube import write_cube
from manyserver.study.study import read_study
from manyserver.tables import cells, to_csv, to_latex

TABLE: dict[str, Any] = {"name": "both", "rows": ["load", "d"], "columns": ["n_servers", "policy"]}
STUDY: dict[str, Any] = {
    "systems": {"one": {"pools": [{"fraction": 1, "speed": 1}]}},
    "policies": [{"name": "sq", "d": "d", "label": "SQ(d)_1"}, {"name": "random"}],
    "sweep": {"load": [0.3, 0.5], "n_servers": [2, "limit"], "d": [1, 2]},
    "methods": {"exact": {}, "simulation": {"precision": 0.05}, "mean_field": {}},
    "figures": [],
    "fits": [],
    "tables": [TABLE],
}


def test_every_cell_is_a_value_of_the_cube(write_study: Any, tmp_path: Path) -> None:
    cube = built(read_study(write_study(STUDY)), tmp_path)
    table = cells(cube, TableConfig(**TABLE))
    assert list(table.index) == [("0.3", "1"), ("0.3", "2"), ("0.5", "1"), ("0.5", "2")]
    for load in (0.3, 0.5):
        for d in (1, 2):
            here = cube.sel(load=load, d=d).squeeze("system")
            row = table.loc[(str(load), str(d))]
            simulated = here.sel(method_name="simulation", n_servers=2, policy="SQ(d)_1")
            assert row["2", "SQ(d)_1", "value"] == simulated.sojourn_mean.item()
            assert row["2", "SQ(d)_1", "half_width"] == simulated.sojourn_mean_half_width.item()
            limit = here.sel(method_name="mean_field", n_servers=np.inf, policy="random")
            assert row["limit", "random", "value"] == limit.sojourn_mean.item()
            assert row["limit", "random", "half_width"] == 0
    flat = to_csv(table)
    assert list(flat.columns)[:4] == ["load", "d", "2 SQ(d)_1", "2 SQ(d)_1 half_width"]
    text = to_latex(table, "Mean sojourn times")
    assert r"\caption{Mean sojourn times}" in text
    assert r"SQ(d)\_1" in text
    exact = cells(cube.sel(method_name=["exact"]), TableConfig(**TABLE))
    assert set(exact.columns.get_level_values("n_servers")) == {"2"}


def test_axes_of_several_values_must_be_told(write_study: Any, tmp_path: Path) -> None:
    cube = built(read_study(write_study({**STUDY, "methods": {"exact": {}}})), tmp_path)
    with pytest.raises(ValueError, match="d: has 2 values; must be in rows or columns"):
        cells(cube, TableConfig(name="t", rows=("load",), columns=("policy", "n_servers")))
    with pytest.raises(ValueError, match="'r' is not in the cube; must be one of system, policy"):
        cells(cube, TableConfig(name="t", rows=("r",), columns=("policy",)))
    with pytest.raises(ValueError, match="quantity = 'sojourn': is no variable"):
        cells(cube, TableConfig(name="t", rows=("load",), columns=("d",), quantity="sojourn"))


def test_the_command_writes_both_files(write_study: Any, tmp_path: Path) -> None:
    bad = {"name": "bad", "rows": ["load"], "columns": ["n_servers"]}
    path = write_study({**STUDY, "methods": {"exact": {}}, "tables": [TABLE, bad]})
    write_cube(built(read_study(path), tmp_path), tmp_path / "cube.nc")
    given = ["--config", str(path.parents[1]), "tables", "small", str(tmp_path / "cube.nc")]
    folder = tmp_path / "tables"
    folder.mkdir()
    said = CliRunner().invoke(main, [*given, str(folder)])
    assert said.exit_code == 0, said.output
    table = pd.read_csv(folder / "both.csv")
    assert len(table) == 4
    assert "study small" in table.provenance[0]
    assert (folder / "both.tex").read_text().startswith(r"\begin{tabular}")
    # One that fails does not cost the other.
    assert pd.read_csv(folder / "bad.csv").note[0].startswith("failed: ValueError: policy: has 2")


def test_mistakes_are_told_before_anything_is_computed(write_study: Any) -> None:
    changes = {"tables": [{**TABLE, "rows": ["laod"], "columns": ["policy"]}] * 2}
    assert mistakes(write_study({**STUDY, **changes})) == (
        "tables[1].name: 'both' occurs twice; must be unique",
    )
    changes = {"tables": [{**TABLE, "rows": ["laod"]}]}
    (line,) = mistakes(write_study({**STUDY, **changes}))
    assert line.startswith("tables[0].rows = 'laod': is not in this study; did you mean 'load'?")


def test_products_of_a_plan(write_study: Any) -> None:
    plan = Plan(write_study(STUDY).parents[1])
    assert {"small/tables/both.csv", "small/tables/both.tex"} <= set(plan.products("small"))
