"""Explanations of findings, here and in the documentation."""

from pathlib import Path

import pytest
from tools.findings_page import PATH, text

from calibrant.reporting.explanations import EXPLANATIONS

DOCS = Path(__file__).parents[2] / PATH


def test_the_documentation_says_the_same():
    assert DOCS.read_text(encoding="utf8") == text(), "run: python -m tools.findings_page"


@pytest.mark.parametrize("code", EXPLANATIONS)
def test_every_explanation_is_whole(code):
    found = EXPLANATIONS[code]
    assert found.title
    assert found.meaning.endswith(".")
    assert found.what_to_do.endswith(".")
    assert f"## {code}\n" in text()
