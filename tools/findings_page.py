"""The page of the documentation that explains the findings of a report, from the explanations themselves.

Run as ``python -m tools.findings_page``.
"""

from __future__ import annotations

from pathlib import Path

from calibrant.reporting.model import EXPLANATIONS
from tools.project import ROOT

PATH = "docs/findings.md"
HEAD = """# Findings of a report

Every finding has a code. A *problem* needs action, a *caution* limits what can be concluded, a *note* is information.
Reports show the same explanations (`python -m tools.findings_page` writes this page).
"""


def text() -> str:
    """The whole page."""
    parts = [HEAD]
    for code, found in EXPLANATIONS.items():
        parts.append(f"## {code}\n\n**{found.title}.** {found.meaning}\n\n**Remedy.** {found.what_to_do}\n")
    return "\n".join(parts)


def main(root: Path = ROOT) -> None:
    """Write the page."""
    (root / PATH).write_text(text(), encoding="utf8")


if __name__ == "__main__":
    main()
