"""Results of three studies, and the report of them."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from tests.claims.kept import FOLDER

from manyserver import figures
from manyserver.__main__ import main
from manyserver.plan import Plan

CONFIG = Path(__file__).parents[2] / "config"
STUDIES = ("choices", "fig3_finite_size", "halfin_whitt")


@pytest.fixture(scope="package")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three studies, with a figure each, times, and the claims."""
    folder = tmp_path_factory.mktemp("results")
    for study in STUDIES:
        shutil.copytree(FOLDER / study, folder / study)
        titles = Plan(CONFIG, {"studies": [study]}).figure_titles(study)
        (folder / study / "figures").mkdir()
        figures.save(Figure(figsize=(1, 1)), folder / study / "figures" / titles[0])
        times = folder / study / "benchmarks" / "mean_field" / "limit.tsv"
        times.parent.mkdir(parents=True)
        times.write_text("s\tmax_rss\n1.5\t200\n")
    table = folder / "choices" / "tables" / "by_load.csv"
    table.parent.mkdir()
    table.write_text("load,100,100 half_width,limit,provenance\n0.5,1.2345,0.012,,here\n")
    for command in ("claims", "report"):
        arguments = ["--config", str(CONFIG), command, "--results", str(folder)]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
    return folder
