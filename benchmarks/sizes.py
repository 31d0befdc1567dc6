"""How large the package is: what is published, and what an installation takes, in environments of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import ROOT, write_results

#: Extras whose installation is measured; each is added to the ones before it.
STEPS = ("", "[cli]", "[cli,plot]")


def megabytes(place: Path) -> float:
    """The size of a file, or of all files of a folder; bytecode is left out."""
    files = [place] if place.is_file() else [one for one in place.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files if one.suffix != ".pyc") / 1e6


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def published(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive of a clone, without what lies beside the files of the repository."""
    run("git", "clone", "-q", ROOT, folder / "clone")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "clone")
    (wheel,), (archive,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, archive


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, archive = published(folder)
        run(sys.executable, "-m", "venv", "--without-pip", folder / "use")
        library = next((folder / "use").glob("lib/python*/site-packages"))
        rows = [("the wheel", megabytes(wheel), ""), ("the source archive", megabytes(archive), "")]
        for extras in STEPS:
            target = ("--python", folder / "use" / "bin" / "python")
            run(sys.executable, "-m", "pip", *target, "install", "-q", f"{wheel}{extras}")
            packages = len(list(library.glob("*.dist-info")))
            rows.append((f"`pip install 'calibrant{extras}'`", megabytes(library), f"{packages} packages"))
        rows.append(("of which Calibrant", megabytes(library / "calibrant"), ""))
        run(folder / "use" / "bin" / "calibrant", "--version")
    lines = [
        "| what | MB | with |",
        "|---|---|---|",
        *(f"| {what} | {size:.1f} | {more} |" for what, size, more in rows),
    ]
    write_results("sizes", "Sizes", "python -m benchmarks.sizes", lines)


if __name__ == "__main__":
    main()
