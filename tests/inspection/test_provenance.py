import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.figure
import pytest

from manyserver import figures
from manyserver.inspection.provenance import stamp

if TYPE_CHECKING:
    from tests.inspection.conftest import Project


def told(project: "Project", path: Path) -> dict[str, object]:
    return dict(json.loads(project.call("provenance", str(path))))


def test_a_unit_and_the_store(project: "Project") -> None:
    (unit,) = (project.results / "small" / "units").rglob("*.jsonl")
    (stored,) = (project.results / "points").glob("*/*.jsonl")
    code = project.plan.study("small").points[0].code
    for path in (unit, stored):
        found = told(project, path)
        assert found["code_fingerprints"] == {"mean_field": [code]}
        assert set(found["library_versions"]) >= {"manyserver", "numpy", "python"}  # type: ignore[call-overload]
        points = found["points"]
        assert isinstance(points, list)
        ids = [point.id for point in project.plan.study("small").points]
        assert sorted(point["id"] for point in points) == sorted(ids)
        assert {"method", "system", "policy", "options", "seed", "status"} <= set(points[0])
        assert found["damaged_lines"] == 0


def test_a_cube_and_its_fits(project: "Project") -> None:
    cube = project.results / "small" / "cube.nc"
    found = told(project, cube)
    assert found["built_from"] == project.plan.cube_digest("small")
    assert found["points_by_status"] == {"ok": 2}
    fits = told(project, cube.with_name("fits.csv"))
    assert fits == stamp("small", cube, project.plan.fits_digest("small"))


def test_figures(project: "Project", tmp_path: Path) -> None:
    text = {"study": "small", "note": "a (b) \\ c"}
    png, pdf = figures.save(matplotlib.figure.Figure(), tmp_path / "figure", text)
    assert told(project, png) == text
    assert told(project, pdf) == text


@pytest.mark.parametrize("name", ["nothing.nc", "a.txt", "plain.png", "plain.pdf"])
def test_a_file_that_says_nothing(project: "Project", tmp_path: Path, name: str) -> None:
    figures.save(matplotlib.figure.Figure(), tmp_path / "plain")
    said = project.call("provenance", str(tmp_path / name), code=1)
    assert said.startswith(str(tmp_path / name))


def test_a_pipe_is_not_waited_for(project: "Project", tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "must be a file" in project.call("provenance", str(tmp_path / "pipe.csv"), code=1)
