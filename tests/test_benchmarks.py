"""The benchmarks are complete and their page is the newest: what `make bench` would otherwise find out late."""

from benchmarks import latency
from benchmarks.collect import ROOT, collected


def test_every_public_function_has_a_line_in_the_table_of_latencies():
    assert latency.missing(latency.estimator_cases() | latency.inference_cases() | latency.fit_cases()) == set()


def test_the_page_of_results_has_the_newest_tables():
    assert (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf8") == collected(ROOT / "benchmarks")
