"""The group of all commands, and how errors are told."""

import os
import signal
import sys
import threading
import traceback
import warnings
from importlib import import_module
from typing import Any, NoReturn

import click

from sylvan import __version__
from sylvan._messages import did_you_mean
from sylvan.app.cli.terminal import in_options, say, visible
from sylvan.exceptions import FeatureWarning, NothingImputedWarning, TableError

#: name: (module, help in the list of commands), imported when they are used
_COMMANDS = {
    "look": ("sylvan.app.cli.look", "Show how a table would be read, and what is to be said about it."),
    "impute": ("sylvan.app.cli.impute", "Find labels that are missing in a table, and complete it."),
    "audit": ("sylvan.app.cli.audit", "Draw cells for people to decide. What do their answers say of all others?"),
    "review": ("sylvan.app.cli.review", "Decide about single cells on a page, and see what that brings."),
    "fit": ("sylvan.app.cli.fit", "Learn from a table and store the model."),
    "predict": ("sylvan.app.cli.predict", "Predict labels of new rows."),
    "evaluate": ("sylvan.app.cli.evaluate", "Measure a model on rows whose labels are known."),
    "explain": ("sylvan.app.cli.explain", "Show what a model has learned: features, rules, single rows."),
    "algorithms": ("sylvan.app.cli.listing", "List the algorithms and their parts."),
    "datasets": ("sylvan.app.cli.listing", "List data sets, or write one to a file."),
    "demo": ("sylvan.app.cli.listing", "Hide half of the labels of a built-in set, and find them again."),
    "bench": ("sylvan.app.cli.bench", "Compare methods by a protocol; statistics and a report."),
    "warmup": ("sylvan.app.cli.listing", "Compile what a first fit would, for images and clusters."),
    "completion": ("sylvan.app.cli.listing", "Print the lines that let your shell complete commands."),
}
_EXAMPLES = """
Examples:
  sylvan demo                                            see what it does
  sylvan look songs.csv                                  how would this table be read?
  sylvan impute songs.csv -l 'tag_*' -o completed.csv    which labels are missing?
  sylvan audit songs.csv -l 'tag_*' -n 60 -o audit.csv   how many are missing, how good is a list?
  sylvan review songs.csv -l 'tag_*'                     decide about single cells in a browser
  sylvan fit songs.csv -l 'tag_*' -o songs.sylvan        learn once,
  sylvan predict songs.sylvan new.csv -o tags.csv        predict often
  sylvan COMMAND --help                                  options, more examples
"""


class _Sylvan(click.Group):
    """Imports a command when it is used, and tells errors in one line unless --debug is given."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            ctx.fail(f"There is no command {cmd_name!r}{did_you_mean(cmd_name, _COMMANDS)}")
        return getattr(import_module(_COMMANDS[cmd_name][0]), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(_EXAMPLES)

    def main(self, args: Any = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run; what click says about usage in four lines is said in one."""
        if not extra.pop("standalone_mode", True):
            return super().main(args, prog_name, standalone_mode=False, **extra)
        try:
            sys.exit(super().main(args, prog_name, standalone_mode=False, **extra) or 0)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.ClickException as error:
            ctx = getattr(error, "ctx", None)
            where = f" (see: {ctx.command_path} --help)" if ctx is not None else ""
            _end(f"Error: {_one_line(error.format_message())}{where}", error.exit_code)
        except click.Abort:
            _end("Stopped.", 130)

    def invoke(self, ctx: click.Context) -> Any:
        sys.unraisablehook = repeat_interrupt
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                warnings.simplefilter("ignore", FutureWarning)
                warnings.showwarning = _warn
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except BrokenPipeError:  # whoever reads, such as `head`, has seen enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (nothing more is to be written at the end)
            sys.exit(0)
        except (Exception, KeyboardInterrupt) as error:
            code = 2 if isinstance(error, TableError) else 1  # what the user can mend in files and options, or not
            if ctx.params.get("debug"):
                for line in traceback.format_exc().splitlines():
                    click.echo(visible(line), err=True)
                sys.exit(code)
            if _interrupted(error):
                _end("Stopped.", 130)
            if isinstance(error, OSError) and error.strerror:
                text = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
            elif isinstance(error, MemoryError):
                text = "There is not enough memory. Fewer trees (--trees) or layers (--layers) need less."
            else:
                text = in_options(str(error).strip()) or type(error).__name__
            _end(f"Error: {_one_line(text)}", code)


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):  # wakes the main thread, too
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


def repeat_interrupt(lost: Any) -> None:
    """Repeat a Ctrl-C that came while a library was called back by C, where Python can only report it."""
    if lost.exc_type is not None and issubclass(lost.exc_type, KeyboardInterrupt):
        threading.Timer(0.05, _interrupt).start()
    else:
        sys.__unraisablehook__(lost)


def _interrupted(error: BaseException | None) -> bool:
    """Say whether Ctrl-C is behind an error: libraries may turn it into one of their own."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _end(text: str, code: int) -> NoReturn:
    say(text)
    sys.exit(code)


#: What the library says in terms of Python, in terms of commands.
_IN_COMMANDS: dict[type[Warning], str] = {
    FeatureWarning: "{} --drop leaves columns out.",
    NothingImputedWarning: "No label was sure enough to be suggested. --suggestions lists the best ones all the same; "
    "--algorithm auto, or --frequency top-rate, suggests more.",
}


def _warn(message: Any, category: type[Warning], *args: Any, **options: Any) -> None:
    text = in_options(_one_line(str(message)))
    say("Warning: " + _IN_COMMANDS.get(category, "{}").format(text))


@click.command(cls=_Sylvan, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="sylvan")
@click.option("--debug", is_flag=True, help="Show where an error came from.")
def sylvan(debug: bool) -> None:
    """Deep forests for tables whose labels are incomplete."""
