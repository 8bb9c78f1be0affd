"""What the report is made of."""

import base64
import csv
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyserver import figures
from manyserver.claims.base import Verdict
from manyserver.claims.table import plus_minus
from manyserver.inspection.provenance import provenance
from manyserver.plan import Plan, mark
from manyserver.report.numbers import READ, Table, answers, main_table
from manyserver.study.fingerprint import fingerprint
from manyserver.study.points import canonical
from manyserver.validation import ConfigError
from manyserver.version import __version__

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["digest", "report"]

PAGE = Path(__file__).with_name("page")
HIDDEN = ("name", "fit", "method", "load")
"""Labels of fits that the table of the report leaves out."""


@dataclass(frozen=True)
class Picture:
    """A figure: its title, what it shows, and the file as a data URL."""

    title: str
    shows: str
    url: str


@dataclass(frozen=True)
class Claim:
    """A row of the table of claims."""

    name: str
    paper: str
    number: str
    stated: bool
    statement: str
    verdict: str
    value: str
    expected: str
    study: str
    cell: str
    note: str


@dataclass(frozen=True)
class Part:
    """What the report says of a study."""

    name: str
    title: str
    description: str
    answers: list[str]
    pictures: list[Picture]
    tables: list[Table]
    times: str
    provenance: dict[str, str]


def digest() -> str:
    """Short digest of all that the report depends on but the files of the results."""
    pages = {path.name: path.read_text() for path in sorted(PAGE.iterdir())}
    return mark(canonical(pages), fingerprint(__name__))


def report(plan: Plan, results: Path) -> str:
    """Return the page.

    Parameters
    ----------
    plan : Plan
        Of the project; all studies that are built are told of, whether or not they are in it.
    results : pathlib.Path
        Folder of the results.
    """
    import jinja2

    loader = jinja2.FileSystemLoader(PAGE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    found = _claims(results / "claims.csv")
    counts = Counter(one.verdict for one in found)
    names = [name for name in plan.available if (results / name / "cube.nc").exists()]
    parts = [_part(plan, name, results / name) for name in names]
    return environment.get_template("report.html").render(
        version=__version__,
        claims=found,
        papers=sorted({one.paper for one in found}),
        counts=[(one.value, one.name.lower(), counts[one.value]) for one in Verdict],
        kinds={one.value: one.name.lower() for one in Verdict},
        refuted=[one for one in found if one.verdict == Verdict.REFUTED.value],
        parts=parts,
        names=names,
        style=(PAGE / "style.css").read_text(),
        script=(PAGE / "script.js").read_text(),
    )


def _claims(path: Path) -> list[Claim]:
    if not path.exists():
        return []
    with path.open(newline="") as rows:
        return [
            Claim(
                row["name"],
                row["paper"],
                row["number"],
                row["stated"] == "True",
                row["statement"],
                row["verdict"],
                plus_minus(float(row["value"]), float(row["half_width"])) if row["value"] else "",
                row["expected"].replace("+-", "±").replace("<=", "≤").replace(">=", "≥"),
                row["study"],
                row["cell"],
                row["note"],
            )
            for row in csv.DictReader(rows)
        ]


def _part(plan: Plan, name: str, folder: Path) -> Part:
    import pandas as pd
    import xarray as xr

    with xr.open_dataset(folder / "cube.nc", engine="netcdf4") as opened:
        cube = opened[[name for name in READ if name in opened]].load()
    table = folder / "fits.csv"
    fits = pd.read_csv(table) if table.exists() else None
    try:
        said, numbers = answers(cube, fits), main_table(cube)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        # One study must not cost the others.
        said, numbers = [f"Its numbers could not be put into words: {error}."], None
    tables = [numbers, *_written(folder / "tables"), None if fits is None else _fits_table(fits)]
    return Part(
        name,
        str(cube.attrs.get("title", name)),
        str(cube.attrs.get("comment", "")),
        said,
        list(_pictures(plan, name, folder)),
        [one for one in tables if one is not None],
        _times(folder / "benchmarks"),
        _provenance(folder / "cube.nc"),
    )


def _pictures(plan: Plan, name: str, folder: Path) -> Iterable[Picture]:
    try:
        titles = plan.figure_titles(name)
    except ConfigError:
        return  # The study was edited since, and cannot be read.
    for title in titles:
        path = folder / "figures" / f"{title}.png"
        if path.exists():
            kind, _ = plan.figure(name, title)
            shows = " ".join(figures.load(kind).title.replace("`", "").split())
            data = base64.b64encode(path.read_bytes()).decode()
            yield Picture(title.replace("_", " "), shows, f"data:image/png;base64,{data}")


def _written(folder: Path) -> Iterable[Table]:
    """Yield the tables that the study asks for, from their files."""
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        if rows:
            heads = [name for name in rows[0] if not name.endswith(("half_width", "provenance"))]
            found = tuple(tuple(_written_cell(row, head) for head in heads) for row in rows)
            yield Table(path.stem.replace("_", " ").capitalize(), tuple(heads), found)


def _written_cell(row: dict[str, str], head: str) -> str:
    width = f"{head} half_width"
    if width not in row or not row[head]:
        return row[head]
    return plus_minus(float(row[head]), float(row[width] or 0))


def _fits_table(fits: "pd.DataFrame") -> Table:
    """Return the fits with their labels, without what is the same in all rows."""
    labels = [
        column
        for column in fits.columns[: fits.columns.get_loc("quantity")]
        if column not in HIDDEN and fits[column].nunique() > 1
    ]
    heads = [*labels, "quantity", "parameter", "estimate", "expected", "note"]
    rows = [
        tuple(_cell(row, column) for column in heads)
        for row in fits.astype(object).where(fits.notna(), None).to_dict("records")
    ]
    words = tuple(head.replace("_", " ") for head in heads)
    return Table("Fits, with 95 % half-widths", (words[0].capitalize(), *words[1:]), tuple(rows))


def _cell(row: dict[Any, Any], column: str) -> str:
    value = row[column]
    if value is None:
        return ""
    if column == "estimate":
        return plus_minus(float(value), 1.96 * float(row["standard_error"] or math.nan))
    if isinstance(value, float):
        return "limit" if math.isinf(value) else f"{value:.5g}"
    return str(value)


def _times(folder: Path) -> str:
    """Say how long the jobs of a study took, as Snakemake measured it; empty if it did not."""
    seconds, megabytes = [], []
    for path in sorted(folder.rglob("*.tsv")):
        with path.open(newline="") as rows:
            for row in csv.DictReader(rows, delimiter="\t"):
                seconds.append(float(row["s"]))
                megabytes.append(_number(row["max_rss"]))
    if not seconds:
        return ""
    jobs = f"{len(seconds)} job{'' if len(seconds) == 1 else 's'}"
    return (
        f"The last computation took {sum(seconds):.1f} s in {jobs}, with {max(megabytes):.0f} MB "
        "of memory at most; points that were stored cost nothing."
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _provenance(cube: Path) -> dict[str, str]:
    told = provenance(cube)
    wanted = ("source", "built_from", "history", "code_fingerprints", "library_versions")
    found = {name.replace("_", " "): _plain(told[name]) for name in wanted if name in told}
    if "points_by_status" in told:
        counts = {k: n for k, n in told["points_by_status"].items() if k != "not asked for"}
        found["points by status"] = _plain(counts)
    return found


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        parts = (f"{k} {', '.join(v) if isinstance(v, list) else v}" for k, v in value.items())
        return "; ".join(parts)
    return str(value)
