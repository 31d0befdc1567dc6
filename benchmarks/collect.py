"""Gather results/*.md of the benchmarks into one RESULTS.md; `reproduce.final_table` writes that of the reproductions.

python -m benchmarks.collect [folder ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TITLES = {"benchmarks": "Benchmarks"}


def collected(folder: Path) -> str:
    """All results of a folder, one heading level lower, in the order of their names."""
    parts = [
        f"# {TITLES.get(folder.name, folder.name)}",
        "",
        "Written by the scripts named below; gathered by `benchmarks/collect.py`.",
    ]
    for path in sorted((folder / "results").glob("*.md")):
        text = path.read_text(encoding="utf8").strip()
        lowered = [f"#{line}" if line.startswith("#") else line for line in text.splitlines()]
        parts += [
            "",
            *(line.replace("](", "](results/") if "](" in line and "://" not in line else line for line in lowered),
        ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:] or list(TITLES):
        (ROOT / name / "RESULTS.md").write_text(collected(ROOT / name), encoding="utf8")
