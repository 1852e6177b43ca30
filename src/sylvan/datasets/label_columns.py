"""Which columns of an ARFF file are labels: said by the user, by Mulan's XML file, or by MEKA's header."""

import os
import re
from collections.abc import Collection
from pathlib import Path
from xml.etree import ElementTree

_MEKA = re.compile(r"(?:^|[\s:])-C\s+(-?\d+)")

LabelChoice = str | os.PathLike[str] | Collection[str] | None


def label_columns(path: Path, relation: str, names: list[str], labels: LabelChoice) -> list[int]:
    """Return the positions of the label columns, ascending: the order of the file, not that of the XML.

    `labels` are names, or a Mulan XML file; None looks for that file beside the ARFF file at `path`, then for MEKA's
    ``-C n`` in its header, the `relation`. There is at least one position.
    """
    if labels is None:
        beside = path.with_name(path.name.removesuffix(".gz").removesuffix(".arff") + ".xml")
        if not beside.is_file():
            return _from_meka(path, relation, len(names))
        labels = beside
    if isinstance(labels, str | os.PathLike):
        source = str(labels)
        wanted = read_label_names(labels)
    else:
        source, wanted = "labels", list(labels)
    unknown = [name for name in wanted if name not in set(names)]
    if unknown or not wanted:
        problem = f"names labels that are no columns of {path.name}: {unknown}" if unknown else "names no label"
        raise ValueError(f"{source} {problem}.")
    return [position for position, name in enumerate(names) if name in set(wanted)]


def read_label_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names in a Mulan XML file, nested labels included, in the order of the file."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not a Mulan XML file: {error}.") from error
    # Tags carry a namespace in some files and none in others.
    found = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    return [name for name in found if name is not None]


def _from_meka(path: Path, relation: str, n_columns: int) -> list[int]:
    match = _MEKA.search(relation)
    if match is None:
        raise ValueError(
            f"{path}: nothing says which columns are labels. There are three ways: names, as labels=[...]; Mulan's "
            "list of labels, as labels='file.xml' or beside the ARFF file under the same name; MEKA's '-C n' in the "
            "@relation line."
        )
    if "weka.filters" in relation[match.end() :]:
        # Weka adds the filters that were applied; they may have moved the labels since -C was written.
        raise ValueError(
            f"{path}: the header has '-C {match.group(1)}', but Weka filters were applied after it and may "
            f"have moved columns. Give labels=[names] or labels='file.xml'."
        )
    count = int(match.group(1))
    if count == 0 or abs(count) >= n_columns:
        raise ValueError(f"{path}: the header has '-C {count}', which does not fit {n_columns} columns.")
    return list(range(count)) if count > 0 else list(range(n_columns + count, n_columns))
