"""The command that draws the figures of a study."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import xarray as xr
from matplotlib.figure import Figure

from manyserver.figures import queue_tails
from manyserver.inspection.products import failed_products

if TYPE_CHECKING:
    from tests.inspection.conftest import Project

FIRST = {"kind": "queue_tails", "name": "first"}
SECOND = {"kind": "queue_tails", "name": "second"}


def draw(project: "Project", *titles: str) -> list[str]:
    """Names of the figures that the command draws."""
    folder = project.results / "small"
    said = project.call(
        "figures", "small", str(folder / "cube.nc"), str(folder / "figures"), *titles
    )
    drawn = [line for line in said.splitlines() if line.endswith(".png and .pdf")]
    return [Path(line.removesuffix(".png and .pdf")).name for line in drawn]


def test_only_figures_that_are_not_as_they_would_be_are_drawn(project: "Project") -> None:
    project.write(figures=[FIRST, SECOND])
    assert draw(project) == ["first", "second"]
    assert draw(project) == []
    assert draw(project, "second") == ["second"]

    figures = project.results / "small" / "figures"
    (figures / "first.pdf").unlink()
    assert draw(project) == ["first"]
    (figures / "second.png").write_bytes(b"")
    assert draw(project) == ["second"]
    project.write(figures=[{**FIRST, "width": "column"}, SECOND])
    assert draw(project) == ["first"]

    # A cube that is newer, even if it is the same.
    os.utime(project.results / "small" / "cube.nc")
    assert draw(project) == ["first", "second"]


def test_a_figure_that_fails_does_not_cost_the_others(
    project: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(figures=[FIRST, SECOND])

    def fail_once(
        kind: queue_tails.QueueTailsFigure, cube: xr.Dataset, options: queue_tails.Options
    ) -> Figure:
        monkeypatch.undo()
        raise ArithmeticError("no value")

    monkeypatch.setattr(queue_tails.QueueTailsFigure, "draw", fail_once)
    assert draw(project) == ["first", "second"]
    first = project.results / "small" / "figures" / "first.png"
    told = {str(first): "ArithmeticError: no value"}
    assert failed_products(project.plan, "small", project.results) == told

    assert draw(project) == ["first"]
    assert failed_products(project.plan, "small", project.results) == {}
    assert draw(project) == []
