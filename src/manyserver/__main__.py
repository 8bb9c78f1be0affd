"""The commands ``python -m manyserver VERB``; each is one call into the package."""

import sys
from pathlib import Path
from typing import Any

import click

from manyserver.commands import COMMANDS
from manyserver.commands.base import FILE
from manyserver.study.validation import ConfigError
from manyserver.version import __version__


class _Group(click.Group):
    """Shows what is wrong with a configuration, a point or a file without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        from manyserver.inspection.provenance import UnknownFile
        from manyserver.study.locks import FolderInUse
        from manyserver.study.store import WriteError
        from manyserver.study.verify import FailedPoints

        try:
            return super().invoke(ctx)
        except (ConfigError, FailedPoints, FolderInUse, UnknownFile, WriteError) as error:
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
    """Build parameter studies of large parallel-server systems, step by step."""
    ctx.obj = folder


for _command in COMMANDS:
    main.add_command(_command)


if __name__ == "__main__":
    main()
