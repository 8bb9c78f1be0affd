"""The commands ``python -m manyserver VERB``; each is one call into the package."""

import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

import click

from manyserver.study.validation import ConfigError
from manyserver.version import __version__

_FILE = click.Path(path_type=Path)


class _Group(click.Group):
    """Shows what is wrong with a configuration or a point without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        from manyserver.study.compute import FailedPoints

        try:
            return super().invoke(ctx)
        except (ConfigError, FailedPoints) as error:
            click.echo(str(error), err=True)
            sys.exit(1)


def _say(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()


@click.group(cls=_Group)
@click.version_option(__version__)
@click.option(
    "--config",
    "folder",
    type=_FILE,
    default=Path("config"),
    show_default=True,
    help="Folder with config.yaml and studies/.",
)
@click.pass_context
def main(ctx: click.Context, folder: Path) -> None:
    """Build parameter studies of large parallel-server systems, step by step."""
    ctx.obj = folder


class _Progress:
    """Writes every line to a log, and now and then one to the terminal."""

    SECONDS = 10.0

    def __init__(self, name: str, log: TextIO):
        self.name = name
        self.log = log
        self.last = time.monotonic()

    def __call__(self, line: str) -> None:
        click.echo(line, file=self.log)
        self.log.flush()
        if time.monotonic() - self.last >= self.SECONDS:
            self.last = time.monotonic()
            click.echo(f"{self.name}: {line}", err=True)


def _plan(folder: Path, *studies: str) -> Any:
    from manyserver.plan import Plan, read_workflow_config

    return Plan(folder, {"studies": studies} if studies else read_workflow_config(folder))


@main.command()
@click.argument("studies", nargs=-1)
@click.pass_obj
def check(folder: Path, studies: tuple[str, ...]) -> None:
    """Check STUDIES (default: those in config.yaml) and say how large they are."""
    plan = _plan(folder, *(Path(study).stem for study in studies))
    for name in plan.names:
        study = plan.study(name)
        for note in study.notes:
            _say(note)
        reasons = Counter(point.left_out for point in study.points if point.left_out)
        left_out = "".join(f", {n} left out as {why}" for why, n in sorted(reasons.items()))
        _say(f"{name}: {len(study.points)} points in {len(study.units)} units{left_out}")


@main.command()
@click.argument("study")
@click.argument("unit")
@click.argument("output", type=_FILE)
@click.option("--store", type=_FILE, default=Path("results/points"), show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--log", type=click.File("w", lazy=False), default="-", help="Where to tell all.")
@click.pass_obj
def unit(
    folder: Path, study: str, unit: str, output: Path, store: Path, threads: int, log: TextIO
) -> None:
    """Compute the points of a UNIT of STUDY that the store does not have; write OUTPUT."""
    from manyserver.study.compute import compute_unit, use_kernel_cache
    from manyserver.study.store import Store
    from manyserver.study.sweep import read_study

    chosen = read_study(folder / "studies" / f"{study}.yaml").units[unit]
    use_kernel_cache(chosen.points[0].method, Path(".cache/numba"))
    # Python would wait for the points being computed; those that are done are stored already.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    compute_unit(chosen, Store(store), output, threads, _Progress(f"{study} {unit}", log))


@main.command()
@click.argument("study")
@click.argument("output", type=_FILE)
@click.argument("units", nargs=-1, required=True, type=_FILE)
@click.pass_obj
def cube(folder: Path, study: str, output: Path, units: tuple[Path, ...]) -> None:
    """Put the files of the UNITS of STUDY side by side in the NetCDF file OUTPUT."""
    from manyserver.study.cube import build_cube, write_cube
    from manyserver.study.sweep import read_study

    built = build_cube(read_study(folder / "studies" / f"{study}.yaml"), units)
    write_cube(built, output)
    _say(f"{output}: {dict(built.sizes)}")


@main.command()
@click.argument("study")
@click.argument("cube", type=_FILE)
@click.argument("output", type=_FILE)
@click.pass_obj
def fits(folder: Path, study: str, cube: Path, output: Path) -> None:
    """Fit rates to the CUBE of STUDY and write the table OUTPUT."""
    import pandas as pd
    import xarray as xr

    from manyserver.study import fits as kinds
    from manyserver.study.store import replacing

    tables = []
    with xr.open_dataset(cube, engine="netcdf4") as data:
        for title, kind, options in _plan(folder, study).fits(study):
            table = kinds.compute(kind, data, options)
            table.insert(0, "name", title)
            tables.append(table)
    with replacing(output) as temporary:
        pd.concat(tables).to_csv(temporary, index=False)
    _say(f"{output}: {sum(len(table) for table in tables)} fits")


@main.command()
@click.argument("study")
@click.argument("figure")
@click.argument("cube", type=_FILE)
@click.argument("stem", type=_FILE)
@click.pass_obj
def figure(folder: Path, study: str, figure: str, cube: Path, stem: Path) -> None:
    """Draw a FIGURE of STUDY from its CUBE into STEM.png and STEM.pdf."""
    import xarray as xr

    from manyserver import figures
    from manyserver.study.store import replacing

    kind, options = _plan(folder, study).figure(study, figure)
    with xr.open_dataset(cube, engine="netcdf4") as data:
        drawn = figures.draw(kind, data, options)
    with replacing(Path(f"{stem}.png")) as png, replacing(Path(f"{stem}.pdf")):
        # The temporary names differ in their suffix alone, which is what `save` adds.
        figures.save(drawn, png.with_suffix(""))
    _say(f"{stem}.png and .pdf")


@main.command()
@click.argument("folder", type=_FILE, default=Path("workflow/schemas"))
def schema(folder: Path) -> None:
    """Write the JSON schemas of config.yaml and of a study's file into FOLDER."""
    from manyserver.plan import schemas

    for name, text in schemas().items():
        (folder / f"{name}.schema.json").write_text(text)


if __name__ == "__main__":
    main()
