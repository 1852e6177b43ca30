"""The group of all commands, and how errors are told."""

import os
import sys
import traceback
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from sylvan import __version__

#: name: (module, help in the list of commands)
_COMMANDS = {"bench": ("sylvan.cli.bench", "Compare methods by a protocol; statistics and a report.")}


class _Sylvan(click.Group):
    """Imports a command when it is used, and tells errors in one line unless --debug is given."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            close = get_close_matches(cmd_name, _COMMANDS, n=1)
            ctx.fail(f"There is no command {cmd_name!r}" + (f"; did you mean {close[0]!r}?" if close else "."))
        return getattr(import_module(_COMMANDS[cmd_name][0]), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_COMMANDS.items())])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except BrokenPipeError:  # whoever reads, such as `head`, has seen enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (nothing more is to be written at the end)
            sys.exit(0)
        except (Exception, KeyboardInterrupt) as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
                sys.exit(1)
            if isinstance(error, KeyboardInterrupt):
                click.echo("Stopped.", err=True)
                sys.exit(130)
            text = str(error).strip() or type(error).__name__
            click.echo(f"Error: {text}", err=True)
            sys.exit(1)


@click.command(cls=_Sylvan, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sylvan")
@click.option("--debug", is_flag=True, help="Show where an error came from.")
def sylvan(debug: bool) -> None:
    """Deep forests for tables whose labels are incomplete."""
