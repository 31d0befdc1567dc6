"""The demonstration runs and writes what it says."""

import warnings

from calibrant.cli.reports import run_demo


def test_the_demo_trains_writes_and_reports(tmp_path):
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pages = run_demo(tmp_path / "demo", say=said.append)
    assert [page.name for page in pages] == ["classifier.html", "regressor.html", "positives.html"]
    assert all(page.stat().st_size > 10_000 for page in pages)
    assert "too extreme" in said[0]
