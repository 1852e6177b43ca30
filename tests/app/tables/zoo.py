# ruff: noqa: RUF001 (signs that people write)
"""Messy files as people have them, each with what is true of it."""

import csv
import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

N = 40
_RNG = np.random.default_rng(5)
DEPTH = np.round(_RNG.uniform(1, 9000, N), 2)
LEAD = np.round(_RNG.uniform(0.1, 9, N), 2)
SOIL = np.array(["mud", "sand", "Kies"])[_RNG.integers(0, 3, N)]
TAKEN = pd.to_datetime("2019-01-15") + pd.to_timedelta(_RNG.integers(0, 900, N), unit="D")
Y = (_RNG.random((N, 3)) < 0.4).astype(int)
Y[0], Y[1] = [1, 0, 1], [0, 0, 0]
LABELS = ["algae", "fish", "Würmer"]
IDS = [f"W-{at:03d}" for at in range(N)]


@dataclass
class Animal:
    """A file: its rows as text, and how they are written; what is true; what the user says beside --labels."""

    columns: dict[str, list[Any]]
    labels: str = "algae:Würmer"
    ending: str = ".csv"
    delimiter: str = ","
    encoding: str = "utf-8"
    newline: str = "\n"
    quoting: int = csv.QUOTE_MINIMAL
    head: str = ""  # before the names of columns
    options: dict[str, Any] = field(default_factory=dict)
    X: dict[str, np.ndarray] = field(default_factory=dict)  # columns as they must be read
    Y: np.ndarray = field(default_factory=lambda: Y)
    ids: list[str] | None = None
    writer: Any = None
    header: list[str] | None = None  # if other than the names of columns
    asks: str = ""  # what a message must say, if the file cannot be read without a word

    def write(self, folder):
        path = folder / f"table{self.ending}"
        if self.writer is not None:
            self.writer(self, path)
            return path
        text = io.StringIO(newline="")
        out = csv.writer(text, delimiter=self.delimiter, lineterminator=self.newline, quoting=self.quoting)
        out.writerow(list(self.columns) if self.header is None else self.header)
        out.writerows(zip(*self.columns.values()))
        path.write_bytes((self.head + text.getvalue()).encode(self.encoding))
        return path


def base(**changed):
    """Return columns of text: depth, lead, soil and the labels; `changed` ones are others, None leaves one out."""
    columns = {"depth": [f"{x}" for x in DEPTH], "lead": [f"{x}" for x in LEAD], "soil": SOIL.tolist()}
    columns |= changed
    return {name: cells for name, cells in columns.items() if cells is not None}


def bits(one="1", zero="0", values=Y):
    return {name: [one if cell else zero for cell in values[:, at]] for at, name in enumerate(LABELS)}


def comma(numbers):
    return [f"{x}".replace(".", ",") for x in numbers]


def thousands(numbers, group, point):
    return [f"{x:,.2f}".replace(",", "\0").replace(".", point).replace("\0", group) for x in numbers]


def lists(join, empty="", quote="", brackets=("", "")):
    rows = []
    for line in Y:
        names = [f"{quote}{LABELS[at]}{quote}" for at in np.flatnonzero(line)]
        rows.append(brackets[0] + join.join(names) + brackets[1] if names or brackets[0] else empty)
    return rows


TRUE = {"depth": DEPTH, "lead": LEAD}


def zoo():
    """Return all animals by name."""
    found = {}
    for name, delimiter in (("comma", ","), ("semicolon", ";"), ("tab", "\t"), ("bar", "|")):
        found[f"{name} separated"] = Animal(base() | bits(), delimiter=delimiter, X=TRUE)
        found[f"{name} separated, decimal commas"] = Animal(
            base(depth=comma(DEPTH), lead=comma(LEAD)) | bits(), delimiter=delimiter, X=TRUE
        )
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        found[encoding] = Animal(base() | bits(), encoding=encoding, X=TRUE)
    found["windows line ends"] = Animal(base() | bits(), newline="\r\n", X=TRUE)
    found["old spreadsheet"] = Animal(
        base(depth=comma(DEPTH), lead=comma(LEAD)) | bits("ja", "nein"), delimiter=";", encoding="cp1252", X=TRUE,
        newline="\r\n", head="sep=;\r\n",
    )  # fmt: skip
    found["a title"] = Animal(base() | bits(), delimiter=";", head="Monitoring of rivers, 2021\n\n", X=TRUE)
    found["a title, filled up"] = Animal(base() | bits(), delimiter=";", head="Rivers of 2021;;;\n", X=TRUE)
    found["remarks"] = Animal(base() | bits(), head="# depth in m\n# lead in mg/l; by ICP\n", X=TRUE)
    found["all quoted"] = Animal(base() | bits(), quoting=csv.QUOTE_ALL, X=TRUE)
    found["blanks around cells"] = Animal(base(lead=[f" {x} " for x in LEAD]) | bits(" 1", "0 "), X=TRUE)
    found["tsv"] = Animal(base() | bits(), ending=".tsv", delimiter="\t", X=TRUE)
    found["txt"] = Animal(base() | bits(), ending=".txt", delimiter=";", X=TRUE)
    # numbers in disguise
    disguises = {
        "per cent": [f"{x} %" for x in LEAD], "per cent, close": [f"{x}%" for x in LEAD],
        "a unit": [f"{x} mg/l" for x in LEAD], "money": [f"€ {x}" for x in LEAD], "dollars": [f"${x}" for x in LEAD],
        "micrograms": [f"{x}µg" for x in LEAD], "minus signs": [f"\u2212{x}" for x in LEAD],
        "n.d.": ["n.d." if at == 3 else f"{x}" for at, x in enumerate(LEAD)],
        "dashes": ["-" if at == 3 else f"{x}" for at, x in enumerate(LEAD)],
        "errors of spreadsheets": ["#DIV/0!" if at == 3 else f"{x}" for at, x in enumerate(LEAD)],
        "k. A.": ["k. A." if at == 3 else f"{x}" for at, x in enumerate(LEAD)],
        "limits": ["<0.01" if at == 3 else f"{x}" for at, x in enumerate(LEAD)],
        "limits with commas": ["< 0,01" if at == 3 else x for at, x in enumerate(comma(LEAD))],
        "e": [f"{x:.3e}" for x in LEAD],
    }  # fmt: skip
    for name, cells in disguises.items():
        truth = -LEAD if name == "minus signs" else LEAD.copy()
        if "limits" in name:
            truth[3] = 0.01
        elif any(cell in ("n.d.", "-", "#DIV/0!", "k. A.") for cell in cells):
            truth[3] = np.nan
        found[name] = Animal(base(lead=cells) | bits(), delimiter=";", X={"depth": DEPTH, "lead": truth})
    for name, group, point in (
        ("English", ",", "."),
        ("German", ".", ","),
        ("Swiss", "'", "."),
        ("French", "\u202f", ","),
    ):
        found[f"{name} thousands"] = Animal(
            base(depth=thousands(DEPTH, group, point)) | bits(), delimiter=";", X={"depth": DEPTH}
        )
    # dates
    for name, form in (
        ("ISO", "%Y-%m-%d"), ("German", "%d.%m.%Y"), ("British", "%d/%m/%Y"), ("American", "%m/%d/%Y"),
        ("English", "%d %b %Y"), ("short German", "%d.%m.%y"), ("with hours", "%Y-%m-%d %H:%M"),
    ):  # fmt: skip
        cells = base(taken=TAKEN.strftime(form).tolist())
        days = (TAKEN - pd.Timestamp(0)).days.to_numpy(dtype=float)
        found[f"{name} dates"] = Animal(
            cells | bits(), X={"taken (days)": days, "taken (month)": TAKEN.month.to_numpy()}
        )
    # ids and indexes
    found["an index of pandas"] = Animal({"": [str(at) for at in range(N)]} | base() | bits(), X=TRUE, ids="numbers")
    found["sample_id"] = Animal({"sample_id": IDS} | base() | bits(), X=TRUE, ids=IDS)
    found["mail_id of numbers"] = Animal({"mail_id": [str(7000 + at) for at in range(N)]} | base() | bits(), X=TRUE)
    found["codes without a telling name"] = Animal({"what": IDS} | base() | bits(), X=TRUE, ids=IDS)
    found["an id of leading zeros"] = Animal({"id": [f"{at:05d}" for at in range(N)]} | base() | bits(), X=TRUE)
    found["names of rows by R"] = Animal(
        {"": IDS} | base() | bits(), header=[*base(), *LABELS], X=TRUE, ids=IDS, quoting=csv.QUOTE_ALL
    )
    found["a column without a name"] = Animal(base() | {"": [""] * N} | bits(), X=TRUE)
    found["remarks"] = Animal(
        base(remark=[f"{s} on the ground, seen by {a} people" for s, a in zip(SOIL, range(N))]) | bits(),
        X=TRUE | {"remark has 'mud'": (SOIL == "mud").astype(float)},
    )
    # words in label cells
    for one, zero in (
        ("yes", "no"), ("Yes", "No"), ("TRUE", "FALSE"), ("ja", "nein"), ("oui", "non"), ("sí", "no"), ("Y", "N"),
        ("present", "absent"), ("+", "-"), ("1.0", "0.0"), ("x", "0"), ("detected", "not detected"), ("✓", "✗"),
    ):  # fmt: skip
        found[f"{one} and {zero}"] = Animal(base() | bits(one, zero), X=TRUE)
    for one in ("x", "1", "X", "✓"):
        found[f"{one} and nothing"] = Animal(base() | bits(one, ""), X=TRUE)
    # lists
    for name, cells in {
        "a;b": lists(";"), "a; b": lists("; "), "a,b": lists(","), "a, b": lists(", "), "a|b": lists("|"),
        "a/b": lists("/"), "['a', 'b']": lists(", ", quote="'", brackets="[]"), "[]": lists(",", brackets="[]"),
        '["a","b"]': lists(",", quote='"', brackets="[]"), "{a,b}": lists(",", brackets="{}"),
    }.items():  # fmt: skip
        found[f"lists {name}"] = Animal(base() | {"seen": cells}, labels="seen", delimiter="\t", ending=".tsv", X=TRUE)
    # workbooks and Parquet
    found["workbook"] = Animal(base(depth=DEPTH, lead=LEAD) | bits(1, 0), ending=".xlsx", writer=_workbook, X=TRUE)
    found["workbook, titles above"] = Animal(
        base(depth=DEPTH, lead=LEAD) | bits("x", None), ending=".xlsx", writer=_titles, X=TRUE
    )
    found["workbook, dates and truth values"] = Animal(
        base(taken=[each.to_pydatetime() for each in TAKEN]) | bits(True, False), ending=".xlsx", writer=_workbook,
        X={"taken (month)": TAKEN.month.to_numpy()},
    )  # fmt: skip
    found["workbook, ids"] = Animal(
        {"sample": IDS} | base() | bits(1, 0), ending=".xlsx", writer=_workbook, X=TRUE, ids=IDS
    )
    found["workbook, an empty sheet first"] = Animal(
        base() | bits(1, 0), ending=".xlsx", writer=lambda a, path: _workbook(a, path, before="notes"), X=TRUE
    )
    found["parquet"] = Animal(base(depth=DEPTH) | bits(1, 0), ending=".parquet", writer=_parquet, X=TRUE)
    found["parquet, dates"] = Animal(
        base(taken=TAKEN) | bits(True, False), ending=".parquet", writer=_parquet,
        X={"taken (year)": TAKEN.year.to_numpy()},
    )  # fmt: skip
    # what needs a word
    whole = np.round(DEPTH * 1000)
    either = [f"{x / 1000:.3f}".replace(".", ",") if x < 1e6 else "1,500" for x in whole]
    found["? thousands or decimals"] = Animal(base(depth=either) | bits(), delimiter=";", asks="decimal")
    found["? two units"] = Animal(base(lead=[f"{x} {'mg' if at % 3 else 'g'}" for at, x in enumerate(LEAD)]) | bits(),
                                  asks="drop")  # fmt: skip
    found["? a strange word among numbers"] = Animal(
        base(lead=["weg" if at == 3 else f"{x}" for at, x in enumerate(LEAD)]) | bits(), asks="missing"
    )
    found["? strange words for labels"] = Animal(base() | bits("aye", "nay"), asks="positive")
    found["? one class a row"] = Animal(
        base() | {"kind": [LABELS[at % 3] for at in range(N)]}, labels="kind", asks="classes"
    )
    return found


def _workbook(animal, path, before=None, titles=()):
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    if before:
        sheet.title = before
        sheet = book.create_sheet("data")
    for line in titles:
        sheet.append(line)
    sheet.append(list(animal.columns))
    for row in zip(*animal.columns.values()):
        sheet.append([each.item() if isinstance(each, np.generic) else each for each in row])
    book.save(path)


def _titles(animal, path):
    _workbook(animal, path, titles=[["Water samples 2019"], [], ["by", "the office"]])


def _parquet(animal, path):
    pd.DataFrame(animal.columns).to_parquet(path)
