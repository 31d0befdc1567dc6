"""Pages of random worlds that once contradicted themselves."""

import pytest

from tests.fuzz.__main__ import run_case


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "seed",
    [
        20107,  # a remaining error above its interval
        20273,  # an infinite slope
        20990,  # O:E of positive-unlabeled data that excludes 1 while nothing is significant
        21059,  # one score for all rows, and a wrong group
        21140,  # a remaining error far below its interval
    ],
)
def test_pages_that_contradicted_themselves_do_not_any_more(seed):
    assert run_case("pages", seed) is None
