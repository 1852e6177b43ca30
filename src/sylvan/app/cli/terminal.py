"""What is shown on a terminal. Text from files cannot steer it: control characters are shown as `\\x1b`."""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

# Controls, marks and overrides of the direction of writing, ends of lines and paragraphs, halves of characters.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Parameters of `read_training_table` as messages name them: drop='title', classes=True, positive=...
_PARAMETER = re.compile(
    r"\b(labels|label_file|id|drop|categorical|missing|blank|classes|separator|positive|negative|absent|zeros|"
    r"delimiter|decimal|encoding|sheet|dates)=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|True\b|\.\.\.)"
)


def visible(text: object) -> str:
    """Return text with control characters as escapes, so that a terminal shows them and does not obey."""
    return _CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode(), str(text))


def in_options(text: str) -> str:
    """Return a message about parameters of Python, "say drop='title'", as one about options, "say --drop 'title'"."""

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        name = "--label-separator" if name == "separator" else "--" + name.replace("_", "-")
        return name if value in ("True", "...") else f"{name} {value}"

    return _PARAMETER.sub(option, text)


def say(text: str, quiet: bool = False) -> None:
    """Print a line that is not part of the result; a terminal gets it in lines of its width."""
    text = visible(text)
    if sys.stderr.isatty():
        text = textwrap.fill(text, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    if not quiet:
        click.echo(text, err=True)


def show(text: object, bold: bool = False) -> None:
    """Print a line of the result; a terminal gets it in lines of its width."""
    console = Console()
    console.print(Text(visible(text), style="bold" if bold else ""), soft_wrap=not console.is_terminal)


def show_table(heads: Iterable[str], rows: Iterable[Iterable[Any]], justify: str, title: str = "") -> None:
    """Print a table; in `heads`, "\\n" begins a second line.

    Numbers get three digits, NaN is undefined, None is empty; a `rich.text.Text` is taken as it is. `justify` has an l
    (left, folded) or an r (right, never folded) for each column; the last one holds for all further columns.
    """
    table = Table()
    for at, head in enumerate(heads):
        right = justify[min(at, len(justify) - 1)] == "r"
        name = Text("\n".join(map(visible, head.split("\n"))))
        table.add_column(name, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(visible(_in_digits(cell))) for cell in row))
    if title:
        show(title, bold=True)  # in the table it would be cut to the table's width
    Console().print(table)


def _in_digits(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.3f}" if cell == cell else "undefined"
    return str(cell)


def print_json(data: Any) -> None:
    """Print JSON, names as they are; NaN, which JSON does not have, as null."""
    click.echo(json.dumps(plain(data), indent=2))


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def gigabytes(number: float) -> str:
    """Return bytes in words."""
    if number < 1e6:
        return f"{number / 1e3:.0f} kB"
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"


@contextmanager
def counting(what: str, total: int, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal; the yielded function advances it by a number and shows a text."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda *args: None
        return
    last = TextColumn("{task.fields[last]}", markup=False)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), last)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, last="")
        yield lambda number, text="": bar.update(task, advance=number, last=visible(text))
