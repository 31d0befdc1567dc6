"""The page of findings is made from the explanations."""

from calibrant.reporting.model import EXPLANATIONS
from tools import findings_page


def test_the_page_has_one_section_per_code(tmp_path):
    text = findings_page.text()
    assert text.count("\n## CAL") == len(EXPLANATIONS)
    (tmp_path / "docs").mkdir()
    findings_page.main(tmp_path)
    assert (tmp_path / "docs" / "findings.md").read_text(encoding="utf8") == text
