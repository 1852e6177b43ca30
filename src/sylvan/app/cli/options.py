"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path

import click

from sylvan import ALGORITHMS
from sylvan._messages import did_you_mean

FILE = click.Path(dir_okay=False, path_type=Path)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


def with_examples(command: click.Command, text: str) -> click.Command:
    """Return a command whose help ends with examples, kept as they are."""

    def format_epilog(ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("\nExamples:\n" + "".join(f"  {line}\n" for line in text.strip().splitlines()))

    command.format_epilog = format_epilog  # type: ignore[method-assign]
    return command


def command(examples: str) -> Callable[[Callable], click.Command]:
    """Make a command with examples of a function."""
    return lambda function: with_examples(click.command()(function), examples)


def several(*options: Callable) -> Callable:
    """Return one decorator for several options."""

    def add(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return add


file_options = several(
    click.option("--delimiter", metavar="SIGN", help="What is between cells. Default: seen from the first line."),
    click.option("--decimal", metavar="SIGN", help="Decimal sign. Default: the model's, or as each column has it."),
    click.option("--sheet", metavar="NAME", help="Sheet of a workbook. Default: the first that is not empty."),
    click.option("--encoding", metavar="NAME", help="Encoding of text files. Default: the model's, or as the file is."),
)
data_options = several(
    click.argument("data", type=FILE),
    click.option("--labels", "-l", multiple=True, metavar="COLUMNS",
                 help="Label columns: names, 'tag_*', 'first:last', positions '65:72' or '-8:' (the last eight); with "
                      "commas. Default: those that begin with 'label:'."),
    click.option("--label-file", type=FILE, help="A second file with the labels, matched by --id or by order."),
    click.option("--id", "id", metavar="COLUMN", help="Column of row names. Default: 'id', if there is one. -: none."),
    click.option("--drop", multiple=True, metavar="COLUMNS", help="Columns to leave out."),
    click.option("--categorical", multiple=True, metavar="COLUMNS", help="Columns to take as categories."),
    click.option("--missing", multiple=True, metavar="TEXT", help="A mark of missing values, beside ? and NA."),
    click.option("--dates", type=click.Choice(["day-first", "month-first"]),
                 help="How dates such as 03/04/2021 are read. Default: day first, and a note."),
    click.option("--blank", type=click.Choice(["unknown", "zero"]),
                 help="What an empty label cell means. Default: unknown; in lists: zero."),
    click.option("--zeros", type=click.Choice(["unrecorded", "absent"]),
                 help="What a 0 means: nobody recorded the label, or it is known to be absent. Default: unrecorded, "
                      "unless 5 % or more of the cells without a 1 are empty."),
    click.option("--absent", multiple=True, metavar="WORD",
                 help="A word in label cells for labels that are known to be absent, where 0 is not recorded."),
    click.option("--positive", multiple=True, metavar="TEXT", help="A word for 1 in label cells, beside yes and true."),
    click.option("--negative", multiple=True, metavar="TEXT", help="A word for 0 in label cells, beside no and false."),
    click.option("--classes", is_flag=True, help="The label column holds one class for each row."),
    click.option("--label-separator", "separator", metavar="TEXT",
                 help="The label column holds lists of labels, with TEXT between them."),
    file_options,
)  # fmt: skip


def complete_algorithm(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete names of algorithms."""
    names = [name.replace("_", "-") for name in ALGORITHMS]
    return [name for name in names if name.startswith(incomplete.lower().replace("_", "-"))]


def algorithm_name(value: str) -> str:
    """Return the name of an algorithm as Python has it."""
    name = value.lower().replace("-", "_")
    if name not in ALGORITHMS:
        hint = did_you_mean(name, ALGORITHMS, f"; there are {', '.join(ALGORITHMS)}.")
        raise click.UsageError(f"There is no algorithm {value!r}{hint}")
    return name


model_options = several(
    click.option("--algorithm", "-a", default="auto", show_default=True,
                 callback=lambda ctx, param, value: algorithm_name(value), shell_complete=complete_algorithm,
                 metavar="NAME", help="`sylvan algorithms` lists them."),
    click.option("--frequency", multiple=True, metavar="WAY",
                 help="The share of the positives that was recorded, if you know it: 0.6, a range 0.4-0.8, LABEL=0.6 "
                      "(may be repeated). 1: nothing is missing. Or a way to estimate it: top-rate, percentile (as "
                      "published) or tice. By default, auto estimates it from how well labels can be ranked."),
    click.option("--effort", type=click.Choice(["quick", "normal", "thorough"]),
                 help="Of auto: quick takes a quarter of the time and memory, thorough two to four times as much."),
    click.option("--trees", type=click.IntRange(1), metavar="NUMBER", help="Trees in each forest."),
    click.option("--layers", type=click.IntRange(1), metavar="NUMBER", help="The largest number of layers."),
    click.option("--threshold", metavar="NUMBER",
                 help="Predict labels above this probability. Default: 0.5; auto learns it, or takes what is best for "
                      "'hamming', 'mcc', 'f1' or 'count' (as many as are expected). 'calibrated' is half the share "
                      "recorded, for algorithms that impute."),
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                 help="Any other parameter, such as min_samples_leaf=2 or impute__threshold=0.4."),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default="0", metavar="NUMBER",
                 help="The same seed gives the same model."),
    click.option("--jobs", "-j", type=int, default=-1, metavar="NUMBER", help="Cores to use. Default: all."),
    click.option("--checkpoint", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
                 help="Store finished layers there. The same command continues after a stop."),
    click.option("--with-rows", is_flag=True,
                 help="Store recorded labels and row names in the model file, for `sylvan explain MODEL ROW`."),
    click.option("--no-memory-check", is_flag=True, help="Try even if memory seems too small."),
)  # fmt: skip
decisions_option = click.option(
    "--decisions", "-d", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
    help="What people said of single cells, a CSV file with columns row (or the id), label, decision: confirmed, "
         "rejected or unsure. May be repeated.",
)  # fmt: skip
confidence_option = click.option("--confidence", type=SHARE, default=0.9, show_default="0.9", metavar="SHARE",
                                 help="How sure a certified list is to be as good as --precision says.")  # fmt: skip
force_option = click.option("--force", "-f", is_flag=True, help="Replace files that are there.")
safe_option = click.option(
    "--spreadsheet-safe/--as-is", "safe", default=None,
    help="Write text that a spreadsheet would take for a formula with a ' in front, or as it is. Default: a completed "
         "table is as it was, other files are safe.",
)  # fmt: skip
result_options = several(
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("--quiet", "-q", is_flag=True, help="Print errors and warnings only."),
)
