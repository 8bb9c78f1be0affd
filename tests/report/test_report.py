"""The report: one page that needs nothing but itself, and says what the data say."""

import csv
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from tests.claims.kept import FOLDER
from tests.report.conftest import CONFIG, STUDIES

from manyserver import claims
from manyserver.__main__ import main
from manyserver.report import digest
from manyserver.report.numbers import answers, main_table
from manyserver.study.cube import read_cube

ON_THE_NETWORK = re.compile(r"""(?:src|href|url\(|import|fetch)\s*[=("']+\s*(?:https?:)?//""")


class Page(HTMLParser):
    """What a page holds: elements with their attributes, and the text of headings."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.append((self.open[-1], " ".join(data.split())))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


@pytest.fixture(scope="module")
def page(results: Path) -> Page:
    return Page((results / "report.html").read_text())


def test_it_needs_no_other_file_and_no_network(results: Path, page: Page) -> None:
    assert ON_THE_NETWORK.findall((results / "report.html").read_text()) == []
    assert all(str(image["src"]).startswith("data:image/png;base64,") for image in page.all("img"))
    assert all(str(link["href"]).startswith("#") for link in page.all("a"))
    assert page.all("script") == [{}] and [link["rel"] for link in page.all("link")] == ["icon"]
    (policy,) = (one for one in page.all("meta") if "http-equiv" in one)
    assert "default-src 'none'" in str(policy["content"])


def test_claims_come_first_and_all_are_there(results: Path, page: Page) -> None:
    headings = page.text("h2")
    assert headings[0] == "Claims" and len(headings) == 1 + len(STUDIES)
    rows = {row["id"]: row["data-verdict"] for row in page.all("tr") if "data-verdict" in row}
    assert set(rows) == set(claims.names())
    with (results / "claims.csv").open(newline="") as table:
        told = {row["name"]: row["verdict"] for row in csv.DictReader(table)}
    for name, verdict in told.items():
        assert claims.Verdict[str(rows[name]).upper()].value == verdict


def test_every_study_has_its_answer_figures_tables_times_and_provenance(page: Page) -> None:
    assert len(page.all("figure")) == len(STUDIES)
    assert sum("Times and provenance" in text for text in page.text("summary")) == len(STUDIES)
    said = " ".join(page.text("p"))
    assert said.count("The last computation took 1.5 s in 1 job, with 200 MB of memory") == 3
    assert (
        "in the limit of many servers, jobs stay shortest under Scheme 1, d = 10, 1.76864" in said
    )
    assert {"Mean sojourn times in the limit of many servers", "Fits, with 95 % half-widths"} <= {
        *page.text("summary")
    }


def test_tables_of_a_study_are_shown_with_their_half_widths(page: Page) -> None:
    assert "By load" in page.text("summary")
    assert {"load", "100", "limit"} <= {*page.text("th")} and "1.234 ± 0.012" in page.text("td")
    assert not any("half_width" in text or text == "here" for _, text in page.texts)


def test_it_can_be_used_without_eyes_and_mouse(page: Page) -> None:
    assert page.all("html")[0]["lang"] == "en"
    assert all(len(str(image["alt"])) > 60 for image in page.all("img"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [str(link["href"]).removeprefix("#") for link in page.all("a")]
    assert targets[0] == "main" and set(targets) <= set(ids)
    assert all("scope" in head for head in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    scrolled = [one for one in page.all("div") if one.get("class") == "wide"]
    assert scrolled and all(one["tabindex"] == "0" and "role" in one for one in scrolled)


def test_text_is_escaped(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results / "choices", folder / "choices")
    cube = read_cube(folder / "choices" / "cube.nc").assign_attrs(title="<script>alert(1)</script>")
    cube.to_netcdf(folder / "choices" / "cube.nc")
    arguments = ["--config", str(CONFIG), "report", "--results", str(folder)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    text = (folder / "report.html").read_text()
    assert "&lt;script&gt;alert(1)" in text and "<script>alert(1)" not in text
    assert 'id="claims"' not in text


def test_a_cube_of_another_kind_costs_the_others_nothing(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    strange = xr.Dataset({"sojourn_mean": ("policy", [1.0])}, {"policy": ["a"]}, {"title": "Odd"})
    strange.to_netcdf(folder / "choices" / "cube.nc")
    arguments = ["--config", str(CONFIG), "report", "--results", str(folder)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    said = Page((folder / "report.html").read_text())
    assert "Odd" in said.text("h2") and len(said.text("h2")) == 1 + len(STUDIES)
    assert any("could not be put into words" in text for text in said.text("p"))


def test_the_digest_follows_the_page_and_the_code() -> None:
    assert re.fullmatch(r"settings #\w{8} code #\w{8}", digest())


def kept(study: str) -> tuple[xr.Dataset, pd.DataFrame | None]:
    table = FOLDER / study / "fits.csv"
    cube = read_cube(FOLDER / study / "cube.nc")
    return cube, pd.read_csv(table) if table.exists() else None


def test_answers_follow_from_the_data() -> None:
    cube, _ = kept("fig4_optimised")
    best, winners, finite = answers(cube)
    assert "at arrival rate 0.9" in best.lower()
    assert "shortest under scheme2 d=(2,2), 1.7423, and longest under optimal_split, 7.7" in best
    assert winners.endswith(
        "hybrid_sq d=2 split=optimal at 15, sed d=(2,2) at 14, scheme2 d=(2,2) at 2."
    )
    assert finite.startswith("With 100 servers the simulated means are within 7.")
    worse = cube.copy(deep=True)
    worse["sojourn_mean"].loc[{"policy": "scheme2 d=(2,2)"}] = 99.0
    assert "shortest under hybrid_sq" in answers(worse)[0]
    assert "longest under scheme2 d=(2,2), 99" in answers(worse)[0]


def test_answers_name_what_is_alike_once() -> None:
    cube, fits = kept("pull_routers")
    means = cube["waiting_probability"] + 1
    alike = answers(cube.assign(sojourn_mean=means), fits)
    where = "load 0.7, in the limit of many servers, jobs stay"
    assert alike[0] == f"At {where} 1 under all policies."
    assert alike[1] == (
        "With 200 servers, simulated, at most 9.2 % of the jobs wait and 6.5 % are blocked."
    )
    means.loc[{"system": "C = (2/3, 4/3), buffer 5"}] += 0.5
    assert answers(cube.assign(sojourn_mean=means))[:2] == [
        f"no buffer bound; buffer 1; buffer 2; buffer 5: at {where} 1 under all policies.",
        f"C = (2/3, 4/3), buffer 5: at {where} 1.5 under all policies.",
    ]


def test_answers_of_the_regime() -> None:
    cube, fits = kept("halfin_whitt")
    assert fits is not None
    said = answers(cube, fits)
    assert "is 0.8064 with 102400 servers, and 0.8141 in the limit" in said[0]
    rows = fits[(fits["parameter"] == "exponent") & fits["standard_error"].notna()]
    off = (rows["estimate"] - rows["expected"]).abs() / rows["standard_error"]
    counts = f"Of {len(rows)} fitted values of “exponent”, {(off < 1.96).sum()} agree with theory"
    assert len(rows) > 10 and any(text.startswith(counts) for text in said)
    (gap,) = answers(kept("ergodicity")[0])
    assert gap.endswith("from 0.01379 at beta = 0.25 to 0.8805 at beta = 3.")


def test_the_table_holds_the_numbers_of_the_cube() -> None:
    cube, _ = kept("fig3_finite_size")
    table = main_table(cube)
    assert table is not None
    assert table.columns == ("Policy, by arrival rate", "0.2", "0.3", "0.5", "0.7", "0.9")
    for row in table.rows:
        expected = cube["sojourn_mean"].sel(
            method_name="mean_field", n_servers=np.inf, policy=row[0]
        )
        np.testing.assert_allclose([float(cell) for cell in row[1:]], expected[0], rtol=1e-5)
    few = cube.sel(n_servers=[10.0], method_name=["simulation"])
    simulated = main_table(few)
    assert simulated is not None and simulated.caption == "Mean sojourn times with 10 servers"
    assert all("±" in cell for row in simulated.rows for cell in row[1:])
