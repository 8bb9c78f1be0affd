"""The command that runs benchmarks."""

import json
import pkgutil
from importlib import import_module
from pathlib import Path

import click

import benchmarks
from benchmarks.driver import Benchmark, NotHere, changes, markdown, measured

HERE = Path(__file__).parent


def found() -> dict[str, Benchmark]:
    """Return the benchmarks of all modules here, by name."""
    names = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    modules = (
        import_module(f"benchmarks.{name}")
        for name in names
        if name not in ("__main__", "command", "driver")
    )
    values = (value for module in modules for value in vars(module).values())
    return {value.name: value for value in values if isinstance(value, Benchmark)}


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help="A module or a table; repeatable.")
@click.option("--list", "listed", is_flag=True, help="Say what there is, and run nothing.")
@click.option("--quick", is_flag=True, help="Less of everything, kept in quick.json.")
@click.option(
    "--results",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON file to compare with, and to keep results in; a page of tables is beside it.",
)
def main(only: tuple[str, ...], listed: bool, quick: bool, results: Path | None) -> None:
    """Run benchmarks, keep what they measured, and compare it with the last run."""
    everything = found()
    chosen = {
        name: one
        for name, one in everything.items()
        if not only or name in only or name.partition(".")[0] in only
    }
    if not chosen:
        raise click.ClickException(f"no such benchmark; there are {', '.join(everything)}")
    if listed:
        for name, one in chosen.items():
            click.echo(f"{name:24} {' '.join(one.title.split())}")
        return
    results = results or HERE / ("quick.json" if quick else "results.json")
    entries = json.loads(results.read_text()) if results.exists() else {}
    told = []
    for name, one in chosen.items():
        click.echo(f"{name} ...", err=True)
        try:
            entry = measured(one, quick, lambda row: click.echo(f"  {row}", err=True))
        except (ModuleNotFoundError, NotHere) as error:
            click.echo(f"{name} is left out: {error}; try `uv run --group benchmark`", err=True)
            continue
        click.echo(markdown(one, entry))
        told += changes(one, entry, entries.get(name))
        entries[name] = entry
        # Kept at once, for who stops a long run; what is no longer there is dropped.
        entries = {known: entries[known] for known in everything if known in entries}
        lines = (f"{json.dumps(known)}: {json.dumps(entry)}" for known, entry in entries.items())
        results.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        pages = [markdown(everything[known], entry) for known, entry in entries.items()]
        results.with_suffix(".md").write_text("\n".join(pages))
    click.echo("\n".join(["Compared with the last run:", *told]))
