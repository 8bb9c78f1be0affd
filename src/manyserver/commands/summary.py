"""The commands that sum up all studies that are built."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyserver.commands.base import RESULTS, plan_of, say

if TYPE_CHECKING:
    from manyserver.claims.results import Results

__all__ = ["claims", "report"]


@click.command()
@RESULTS
def claims(results: Path) -> None:
    """Decide the statements of the papers by the studies that are built.

    Writes claims.csv and claims.md into the folder of the results, and prints those that are
    refuted. For example: manyserver claims
    """
    from manyserver.claims import Verdict, findings, studies
    from manyserver.claims.results import read_results
    from manyserver.claims.table import as_table, counted, markdown, number_of, place_of
    from manyserver.study.whole_files import replacing

    built = read_results(results, studies())
    found = findings(built)
    with replacing(results / "claims.csv") as csv:
        as_table(found, _provenance(results, built)).to_csv(csv, index=False)
    with replacing(results / "claims.md") as page:
        page.write_text(markdown(found))
    say(f"{results / 'claims.csv'}: {counted(found)}")
    for one in found:
        if one.verdict is Verdict.REFUTED and one.evidence is not None:
            say(f"refuted: {one.claim.statement}")
            claimed = f"{number_of(one)}, claimed {one.evidence.expected}"
            say(f"  {claimed}; {place_of(one)}; {one.note}")


@click.command()
@RESULTS
@click.pass_obj
def report(folder: Path, results: Path) -> None:
    """Write one page of HTML with the claims and all studies that are built.

    The page report.html, in the folder of the results, needs no other file. For example:
    manyserver report
    """
    from manyserver.report import report as page
    from manyserver.study.whole_files import replacing

    text = page(plan_of(folder), results)
    with replacing(results / "report.html") as temporary:
        temporary.write_text(text, encoding="utf-8")
    say(f"{results / 'report.html'}: {len(text) / 1e6:.1f} MB")


def _provenance(results: Path, built: "Results") -> dict[str, str]:
    """Return what the table tells of the cube of each study; of none under the empty name."""
    from manyserver.inspection.provenance import table_stamp
    from manyserver.plan import Plan
    from manyserver.version import __version__

    digest = Plan.claims_digest()
    return {
        "": f"source manyserver {__version__}; built_from {digest}",
        **{name: table_stamp(name, results / name / "cube.nc", digest) for name in built.cubes},
    }
