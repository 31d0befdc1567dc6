"""Pooled cells keep the sums of the sample."""

import pytest

import calibrant as cal
from calibrant.inference.sample import Sample
from calibrant.simulate import PAPER_WORLDS


def test_cells_keep_all_sums():
    data = PAPER_WORLDS["resnet110_c10"].sample(40_000)
    large, small = (Sample.of(d, needed_by="").pooled() for d in (data, cal.BinTable.of(data, cal.table.Distinct())))
    assert large.n == small.n == large.effective_n == 40_000
    assert float(large.share @ large.predicted) == pytest.approx(float(small.share @ small.predicted))
