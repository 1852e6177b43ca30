"""Lines of a text table as they are written, so that a cell can be changed and all else stays, to the last blank."""

from collections.abc import Iterable, Iterator


def records(lines: Iterable[str]) -> Iterator[str]:
    """Yield each row as written, with its line end: a quoted cell may go on in the next line."""
    record = ""
    for line in lines:
        record += line
        if record.count('"') % 2 == 0:
            yield record
            record = ""
    if record:
        yield record


def cell_spans(record: str, delimiter: str) -> list[tuple[int, int]]:
    """Return where each cell of a row begins and ends, quotes included.

    >>> row = 'a; "b;c" ;d'
    >>> [row[first:last] for first, last in cell_spans(row, ";")]
    ['a', ' "b;c" ', 'd']
    """
    body = record.rstrip("\r\n")
    spans, first, quoted = [], 0, False
    for at, sign in enumerate(body):
        if sign == '"':
            quoted = not quoted
        elif sign == delimiter and not quoted:
            spans.append((first, at))
            first = at + 1
    return [*spans, (first, len(body))]


def with_cell(record: str, span: tuple[int, int], text: str, delimiter: str) -> str:
    """Return a row with another text in one cell, in quotes if the old one was, or if it must be.

    >>> with_cell("1, no,x", (2, 5), "yes", ",")
    '1, yes,x'
    """
    old = record[span[0] : span[1]]
    bare = old.strip()
    if bare.startswith('"') or any(sign in text for sign in (delimiter, '"', "\r", "\n")):
        text = '"' + text.replace('"', '""') + '"'
    before = old[: len(old) - len(old.lstrip())]
    return record[: span[0]] + before + text + (old[len(old.rstrip()) :] if bare else "") + record[span[1] :]
