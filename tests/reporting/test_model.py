"""A report is saved by the ending of its path."""

import pytest


def test_saving_is_by_ending_and_atomic(over, tmp_path):
    for name in ("report.html", "report.json", "report.md"):
        assert over.save(tmp_path / name).stat().st_size > 500
    with pytest.raises(ValueError, match=r"\.html, \.json or \.md"):
        over.save(tmp_path / "report.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json", "report.md"]
