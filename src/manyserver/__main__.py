"""The commands ``python -m manyserver VERB``; each is one call into the package."""

import atexit
import gc
import sys
from pathlib import Path
from typing import Any

import click

from manyserver.commands import SECTIONS
from manyserver.commands.base import FILE
from manyserver.registry import PluginError
from manyserver.validation import ConfigError
from manyserver.version import __version__

OBJECTS = 50_000
"""New objects after which to look for garbage."""


class _Group(click.Group):
    """Lists the commands for people before those for the rules, and shows what is wrong with a
    configuration or a point without a traceback.
    """

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(str(one.name).ljust(width), one.get_short_help_str(200)) for one in commands]
                )

    def invoke(self, ctx: click.Context) -> Any:
        # Imports make many objects and hardly any garbage. To look at all of them again and again,
        # and once more at the end, would be a quarter of most commands.
        gc.set_threshold(OBJECTS, 20, 100)
        atexit.register(gc.freeze)
        from manyserver.inspection.provenance import UnknownFile
        from manyserver.study.running.verify import FailedPoints
        from manyserver.study.storage.damage import DamagedFile
        from manyserver.study.storage.locks import FolderInUse
        from manyserver.study.storage.store import WriteError

        try:
            return super().invoke(ctx)
        except (
            ConfigError,
            DamagedFile,
            FailedPoints,
            FolderInUse,
            PluginError,
            UnknownFile,
            WriteError,
        ) as error:
            click.echo(str(error), err=True)
        except OSError as error:
            # Of a file or folder that was named on the command line, or a disk that is full.
            known = error.filename is not None
            click.echo(f"{error.filename}: {error.strerror}" if known else str(error), err=True)
        sys.exit(1)


@click.group(cls=_Group)
@click.version_option(__version__)
@click.option(
    "--config",
    "folder",
    type=FILE,
    default=Path("config"),
    show_default=True,
    help="Folder with config.yaml and studies/.",
)
@click.pass_context
def main(ctx: click.Context, folder: Path) -> None:
    """Check parameter studies of large parallel-server systems, and look at their results.

    They are built by `snakemake --cores all`. Run this in the folder that has config/ and results/.
    """
    ctx.obj = folder


for _commands in SECTIONS.values():
    for _command in _commands:
        main.add_command(_command)


if __name__ == "__main__":
    main()
