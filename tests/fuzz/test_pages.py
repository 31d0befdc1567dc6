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


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "seed",
    [
        60017,  # a segment that was confirmed beside "no miscalibration was detected"
        60045,  # groups of one calibrated forecast each, all condemned
        60059,  # an interval printed as if it excluded the mean prediction
        60104,  # a segment whose interval includes its prediction
        60122,  # a horizon of a few calibrated forecasts, condemned at p = 6e-22
        60292,  # rows above and around a threshold that are off alone
        60396,  # an ECE inside of its interval, printed outside
        70732,  # a segment of nothing but events, whose interval ended at .9999999999999999
        80780,  # an error that remains, with other digits in the table of maps
        80856,  # a range of confidence that is off beside a test of whole vectors that does not reject
        131574,  # an ECE inside of its interval, printed below its rounded end
        131195,  # a horizon of one calibrated forecast, condemned at p = 1e-307
        81752,  # judges whose share of right answers had other digits
    ],
)
def test_pages_of_any_task_and_option_that_contradicted_themselves_do_not_any_more(seed):
    assert run_case("any pages", seed) is None
