"""The commands that answer questions about a project, and tidy it up."""

import json
import sys
from pathlib import Path

import click

from manyserver.commands.base import FILE, RESULTS, plan_of, say

__all__ = ["clean", "diff", "provenance", "status", "why"]


@click.command()
@click.argument("studies", nargs=-1)
@RESULTS
@click.pass_obj
def why(folder: Path, studies: tuple[str, ...], results: Path) -> None:
    """Say what the next run would compute and redraw, and why.

    STUDIES are names of studies, by default those in config.yaml.
    """
    from manyserver.inspection.why import summary
    from manyserver.inspection.why import why as answer

    plan = plan_of(folder, *studies)
    answers = [answer(plan, name, results) for name in plan.names]
    for one in answers:
        say(str(one))
    if not studies and (told := summary(plan, answers, results)):
        say(told)


@click.command()
@click.argument("studies", nargs=-1)
@RESULTS
@click.pass_obj
def status(folder: Path, studies: tuple[str, ...], results: Path) -> None:
    """Count the points that are stored, and estimate the time for the others.

    STUDIES are names of studies, by default those in config.yaml. The time is what computing takes
    on one core; making cubes, tables and figures adds some seconds for each.
    """
    from manyserver.inspection.status import status as count
    from manyserver.inspection.status import status_table

    plan = plan_of(folder, *studies)
    say(status_table(count(plan, results)))


@click.command()
@click.option("--unreferenced", is_flag=True, required=True, help="Points that no study uses.")
@click.option("--yes", is_flag=True, help="Remove them without asking.")
@RESULTS
@click.pass_obj
def clean(folder: Path, unreferenced: bool, yes: bool, results: Path) -> None:
    """List stored points that no study uses, and remove them if you agree."""
    from manyserver.inspection.clean import find_waste, remove_waste
    from manyserver.plan import Plan
    from manyserver.study.storage.store import Store

    # All studies that there are, whether or not config.yaml names them.
    plan, store = Plan(folder, {"studies": "all"}), Store(results / "points")
    waste = find_waste(plan, store)
    for item in waste:
        say(str(item))
    if not waste:
        say("every stored point is used by a study")
        return
    total = (
        f"{sum(item.points for item in waste)} points, {sum(i.size for i in waste) / 1e6:.2f} MB"
    )
    if yes or click.confirm(f"Remove {total}?"):
        remove_waste(plan, store)
        say(f"removed {total}")


@click.command()
@click.argument("file", type=FILE)
def provenance(file: Path) -> None:
    """Print where a cube, a figure, a table of fits or a unit comes from.

    FILE is one of these in the folder of the results.
    """
    from manyserver.inspection.provenance import provenance as told

    say(json.dumps(told(file), indent=2, ensure_ascii=False))


@click.command()
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    help="Probability that simulations of the same laws are called different.",
)
@click.option(
    "--relative",
    type=click.FloatRange(0),
    default=1e-9,
    show_default=True,
    help="Relative tolerance of values without half-widths.",
)
def diff(first: Path, second: Path, level: float, relative: float) -> None:
    """List where two cubes differ by more than their errors.

    FIRST and SECOND are files cube.nc. The exit status is 1 if they differ.
    """
    from manyserver.inspection.diff import compare_cubes, diff_report

    try:
        found = compare_cubes(first, second, level, relative)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise click.ClickException(f"{first} and {second} cannot be compared: {error}") from None
    say(diff_report(found, level, relative))
    sys.exit(0 if found.same else 1)
