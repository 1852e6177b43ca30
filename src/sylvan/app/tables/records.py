"""Lines of a text table as they are written, so that a cell can be changed and all else stays, to the last blank.

A quote begins a quoted cell where a cell begins, after blanks, as for Python's csv and pandas; elsewhere it is a sign
like others (5" is five inches).
"""

from collections.abc import Iterable, Iterator


def records(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    """Yield each row as written, with its line end: a quoted cell may go on in the next line."""
    parts: list[str] = []  # of the row so far
    is_open = False
    for line in lines:
        parts.append(line)
        if is_open or '"' in line:
            is_open = _scan(line, delimiter, is_open)[1]
        if not is_open:
            yield "".join(parts)
            parts = []
    if parts:
        yield "".join(parts)


def cell_spans(record: str, delimiter: str) -> list[tuple[int, int]]:
    """Return where each cell of a row begins and ends, quotes included.

    >>> row = 'a; "b;c" ;5" d'
    >>> [row[first:last] for first, last in cell_spans(row, ";")]
    ['a', ' "b;c" ', '5" d']
    """
    return _scan(record.rstrip("\r\n"), delimiter)[0]


def _scan(text: str, delimiter: str, quoted: bool = False) -> tuple[list[tuple[int, int]], bool]:
    """Return the spans of cells, and whether the text ends within a quoted one; `quoted`: it begins within one."""
    spans, first, at, begins = [], 0, 0, not quoted
    while at < len(text):
        sign = text[at]
        if quoted:
            if sign == '"':
                if text[at + 1 : at + 2] == '"':
                    at += 1
                else:
                    quoted = False
        elif sign == delimiter:
            spans.append((first, at))
            first, begins = at + 1, True
        elif sign == '"' and begins:
            quoted, begins = True, False
        elif sign not in " \ufeff":
            begins = False
        at += 1
    return [*spans, (first, len(text))], quoted


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
