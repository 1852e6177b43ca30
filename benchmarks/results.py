"""Keep results in the repository, and write the pages and the claims that are made of them.

    python benchmarks/results.py C.db     keep this file, write docs/results/C.md with its pictures, renew the claims
    python benchmarks/results.py          pages and claims of all that is kept

What is kept is a copy, packed: the file itself is only read, and a run may be writing to it.
"""

import argparse
import lzma
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from claims import CLAIMS, renew

from sylvan.bench import read_results
from sylvan.bench.markdown import write_markdown
from sylvan.bench.protocol import QUICK

PAGES = Path(__file__).parents[1] / "docs" / "results"
# The folders of an absolute path, which may name a user.
FOLDERS = re.compile(r"(?<![\w.:/])/(?:[\w.@+~-]+/)+")


def keep(source, target):
    """Pack a copy of a file of results, without scores of single layers (most of it) and without folders."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        address = f"{source.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as there, closing(sqlite3.connect(copy)) as here:
            there.backup(here)
            here.create_function("bare", 1, lambda text: text and FOLDERS.sub("", text))
            here.execute("DELETE FROM layers")
            here.execute("UPDATE cells SET error = bare(error), warnings = bare(warnings)")
            here.execute("UPDATE meta SET value = bare(value)")
            here.commit()
            here.execute("VACUUM")
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def read(kept):
    """Read a packed file of results."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        copy.write_bytes(lzma.decompress(kept.read_bytes()))
        return read_results(copy)


def main(arguments=None, pages=PAGES):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=Path, help="files of results, called like their pages")
    files = parser.parse_args(arguments).results
    data = pages / "data"
    for file in files:  # errors here, before anything is written
        if read_results(file).protocol.title.endswith(QUICK):
            parser.error(f"{file} is of a quick run, which pages and claims do not rest on: run without --quick.")
    for file in files:
        keep(file, data / f"{file.stem}.db.xz")
    results = {kept.name.removesuffix(".db.xz"): read(kept) for kept in sorted(data.glob("*.db.xz"))}
    for name in [file.stem for file in files] or results:
        print(write_markdown(results[name], pages / f"{name}.md"))
    readme = pages / "README.md"
    known = {name: found for name, found in results.items() if name in CLAIMS}
    readme.write_text(renew(readme.read_text(encoding="utf-8"), known), encoding="utf-8")
    print(readme)


if __name__ == "__main__":
    main()
