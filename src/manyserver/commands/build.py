"""The commands of which a run of the workflow consists."""

import signal
import traceback
from collections import Counter
from collections.abc import Sized
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyserver.commands.base import FILE, RESULTS, plan_of, say

if TYPE_CHECKING:
    import xarray as xr
    from pydantic import BaseModel

__all__ = ["check", "cube", "figures", "fits", "schema", "tables", "unit", "verify"]


@click.command()
@click.argument("studies", nargs=-1)
@RESULTS
@click.pass_obj
def check(folder: Path, studies: tuple[str, ...], results: Path) -> None:
    """Say what is wrong with studies, or what they need.

    STUDIES are names of studies, by default those in config.yaml.
    """
    from manyserver.inspection.status import needed, status

    plan = plan_of(folder, *studies)
    for found in status(plan, results):
        study = plan.study(found.study)
        for note in study.notes:
            say(note)
        reasons = Counter(point.left_out for point in study.points if point.left_out)
        left_out = "".join(f", {n} left out as {why}" for why, n in sorted(reasons.items()))
        size = f"{_counted(study.points, 'point')} in {_counted(study.units, 'unit')}{left_out}"
        say(f"{found.study}: {size}; {needed(plan, found)}")


def _counted(things: Sized, name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


@click.command()
@click.argument("study")
@click.argument("unit")
@click.argument("output", type=FILE)
@click.option(
    "--store",
    type=FILE,
    default=Path("results/points"),
    show_default=True,
    help="Folder with the points that are computed.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Points computed at a time.",
)
@click.option("--log", type=FILE, help="Where to tell all; by default the terminal.")
@click.pass_obj
def unit(
    folder: Path, study: str, unit: str, output: Path, store: Path, threads: int, log: Path | None
) -> None:
    """Compute the points of a UNIT of STUDY that the store does not have; write OUTPUT."""
    from manyserver.study.config.names import study_path
    from manyserver.study.running.compute import KERNELS, compute_unit, use_kernel_cache
    from manyserver.study.storage.store import Store
    from manyserver.study.study import read_study

    chosen = read_study(study_path(folder, study)).unit(unit)
    use_kernel_cache(chosen.method, KERNELS)
    # Python would wait for the points being computed; those that are done are stored already.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with ExitStack() as stack:
        stream = None if log is None else stack.enter_context(log.open("w"))
        compute_unit(
            chosen,
            Store(store),
            output,
            threads,
            partial(say, file=stream),
            None if log is None else log.with_suffix(".json"),
        )


@click.command()
@click.argument("study")
@click.argument("output", type=FILE)
@click.argument("units", nargs=-1, required=True, type=FILE)
@click.pass_obj
def cube(folder: Path, study: str, output: Path, units: tuple[Path, ...]) -> None:
    """Put the files of the UNITS of STUDY side by side in the NetCDF file OUTPUT."""
    from manyserver.study.cube import build_cube, write_cube

    plan = plan_of(folder, study)
    built = build_cube(plan.study(study), units)
    built.attrs["built_from"] = plan.cube_digest(study)
    write_cube(built, output)
    say(f"{output}: {dict(built.sizes)}")


@click.command()
@click.argument("study")
@click.argument("cube", type=FILE)
@click.argument("output", type=FILE)
@click.pass_obj
def fits(folder: Path, study: str, cube: Path, output: Path) -> None:
    """Fit rates to the CUBE of STUDY and write the table OUTPUT."""
    import pandas as pd

    from manyserver import fits as kinds
    from manyserver.inspection.provenance import table_stamp
    from manyserver.study.cube import read_cube
    from manyserver.study.whole_files import replacing

    tables = []
    plan = plan_of(folder, study)
    data = read_cube(cube)
    for title, kind, options in plan.fits(study):
        try:
            table = kinds.compute(kind, data, options)
        except Exception as error:
            table = kinds.failure(kind, _told(error))
        table.insert(0, "name", title)
        tables.append(table)
    found = pd.concat(tables)
    found["provenance"] = table_stamp(study, cube, plan.fits_digest(study))
    with replacing(output) as temporary:
        found.to_csv(temporary, index=False)
    say(f"{output}: {sum(len(table) for table in tables)} fits")


@click.command()
@click.argument("study")
@click.argument("cube", type=FILE)
@click.argument("output", type=FILE)
@click.pass_obj
def tables(folder: Path, study: str, cube: Path, output: Path) -> None:
    """Write the tables of STUDY from its CUBE into the folder OUTPUT, as CSV and LaTeX."""
    import pandas as pd

    from manyserver.fits import FAILED
    from manyserver.inspection.provenance import table_stamp
    from manyserver.study.cube import read_cube
    from manyserver.study.whole_files import replacing
    from manyserver.tables import cells, to_csv, to_latex

    plan = plan_of(folder, study)
    data = read_cube(cube)
    for name in plan.table_names(study):
        try:
            table = cells(data, plan.table(study, name))
            flat, text = to_csv(table), to_latex(table)
        except Exception as error:
            reason = _told(error)
            flat = pd.DataFrame([{"name": name, "note": f"{FAILED}{reason}"}])
            text = f"% {FAILED}{reason}\n"
        flat["provenance"] = table_stamp(study, cube, plan.table_digest(study, name))
        with (
            replacing(output / f"{name}.csv") as csv_file,
            replacing(output / f"{name}.tex") as tex_file,
        ):
            flat.to_csv(csv_file, index=False)
            tex_file.write_text(text)
        say(f"{output / name}.csv and .tex")


@click.command()
@click.argument("study")
@click.argument("cube", type=FILE)
@click.argument("output", type=FILE)
@click.argument("figures", nargs=-1)
@click.pass_obj
def figures(folder: Path, study: str, cube: Path, output: Path, figures: tuple[str, ...]) -> None:
    """Draw FIGURES of STUDY from its CUBE into the folder OUTPUT, as PNG and PDF.

    Without FIGURES, all are drawn but those that are there as they would be drawn.
    """
    from manyserver.inspection.provenance import is_current, stamp
    from manyserver.study.cube import read_cube

    plan = plan_of(folder, study)
    titles = figures or plan.figure_titles(study)
    chosen = {title: plan.figure(study, title) for title in titles}
    data = read_cube(cube)
    for title, (kind, options) in chosen.items():
        told = stamp(study, cube, plan.figure_digest(study, title)) | {"figure": title}
        stem = output / title
        files = [output / f"{title}.{suffix}" for suffix in ("png", "pdf")]
        if not figures and all(is_current(file, cube, told) for file in files):
            continue
        _draw(kind, options, data, stem, told)
        say(f"{stem}.png and .pdf")


def _draw(
    kind: str, options: "BaseModel", cube: "xr.Dataset", stem: Path, told: dict[str, str]
) -> None:
    from manyserver import figures
    from manyserver.study.whole_files import replacing

    with replacing(Path(f"{stem}.png")) as png, replacing(Path(f"{stem}.pdf")):
        # The temporary names differ in their suffix alone, which is what `save` adds.
        target = png.with_suffix("")
        try:
            figures.save(figures.draw(kind, cube, options), target, told)
        except OSError:
            raise
        except Exception as error:
            # One figure that fails must not cost the others.
            reason = _told(error)
            figures.save(figures.failure(reason), target, {**told, "failed": reason})


def _told(error: Exception) -> str:
    """Write the traceback of a product that failed into the log, and return the reason."""
    traceback.print_exception(error)
    return " ".join(f"{type(error).__name__}: {error}".split())


@click.command()
@click.argument("study")
@click.argument("output", type=FILE)
@click.argument("units", nargs=-1, required=True, type=FILE)
@click.option("--allow-failures", is_flag=True, help="Accept points that failed.")
@click.pass_obj
def verify(
    folder: Path, study: str, output: Path, units: tuple[Path, ...], allow_failures: bool
) -> None:
    """Fail if points or products of STUDY failed, by the files of its UNITS; else say so in OUTPUT.

    The products lie beside OUTPUT.
    """
    from manyserver.inspection.products import failed_products
    from manyserver.study.running import verify as check
    from manyserver.study.whole_files import replacing

    plan = plan_of(folder, study)
    products = failed_products(plan, study, output.parents[1])
    text = check.verify(plan.study(study), units, products, accept=allow_failures)
    with replacing(output) as temporary:
        temporary.write_text(f"{text}\n")
    say(text)


@click.command()
@click.argument("output", type=FILE, default=Path("workflow/schemas"))
@click.pass_obj
def schema(folder: Path, output: Path) -> None:
    """Write what the keys of studies mean: tables in config/README.md, schemas into OUTPUT.

    OUTPUT is a folder; the JSON schemas of config.yaml and of studies in it are for editors.
    """
    from manyserver.reference import schemas, with_tables

    for name, text in schemas().items():
        (output / f"{name}.schema.json").write_text(text)
    page = folder / "README.md"
    page.write_text(with_tables(page.read_text()))
