"""Benchmarks: ratios measured in one run, against reading, sorting and other packages."""
