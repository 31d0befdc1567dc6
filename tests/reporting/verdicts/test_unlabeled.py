"""Every row of the truth table of positive and unlabeled rows."""

from dataclasses import replace

import pytest

from calibrant.reporting.verdicts.evidence import Unlabeled, VerdictTest, Words
from calibrant.reporting.verdicts.unlabeled import UNLABELED
from calibrant.results.estimate import Value

SURE, UNSURE = VerdictTest("score test", 1e-6), VerdictTest("score test", 0.4)
BASE = Unlabeled(
    n=8700, words=Words("compound"), test=SURE, positives=700, unlabeled=8000, prior=0.19, largest_prior=0.36,
    predicted=0.141, ratio=Value(1.35, 1.31, 1.38), error=Value(0.060, 0.047, 0.067),
    priors=(0.11, 0.14, 0.19, 0.27),
    errors=(Value(0.034, 0.021, 0.04), Value(0.032, 0.013, 0.039), Value(0.06, 0.047, 0.067),
            Value(0.128, 0.122, 0.131)),
)  # fmt: skip
START = "If 19 % of the unlabeled compounds are positive, predicted probabilities are"

TABLE = [
    (BASE, "P1", "not calibrated", "problem", "too low",
     f"{START} too low by 6.0 percentage points (95 % interval 4.7 to 6.7). No share from 11 to 27 % would "
     "make them calibrated, if labelled positives are a random sample of all positives: the error is smallest at "
     "14 % (3.2 points, 1.3 to 3.9)."),
    (replace(BASE, errors=(*BASE.errors[:1], Value(0.01, 0.0, 0.03), *BASE.errors[2:])), "P1",
     "not calibrated", "problem", "too low",
     f"{START} too low by 6.0 percentage points (95 % interval 4.7 to 6.7). The conclusion depends on that share: for "
     "shares near 14 % the interval includes 0."),
    (replace(BASE, predicted=0.19, ratio=Value(1.0, 0.98, 1.02), priors=(), errors=()), "P1",
     "not calibrated", "problem", "mixed", f"{START} wrong by 6.0 percentage points (95 % interval 4.7 to 6.7)."),
    (replace(BASE, predicted=0.25, ratio=Value(0.76, 0.74, 0.78), priors=(), errors=()), "P1",
     "not calibrated", "problem", "too high", f"{START} too high by 6.0 percentage points (95 % interval 4.7 to 6.7)."),
    (replace(BASE, error=Value(0.02, 0.0, 0.05), priors=(), errors=()), "P1", "not calibrated", "caution", "too low",
     f"{START} too low, but the size of the error is uncertain: anywhere from 0 to 5 percentage points."),
    (replace(BASE, test=UNSURE, prior=0.5, largest_prior=0.8, error=Value(0.03, 0.0, 0.07), priors=(0.4, 0.6),
             errors=(Value(0.03), Value(0.11))), "P2", "not significant", "caution", None,
     "No significant miscalibration detected if 50 % are positive; the error is at most 7 points. For shares "
     "from 40 to 60 "
     "% the estimate lies between 3.0 and 11 points."),
    (replace(BASE, prior=0.5), "P3", "cannot be judged", "problem", None,
     "The assumed share of 50 % is too large: these data allow at most 36 %."),
    (replace(BASE, positives=14, test=UNSURE, error=Value(0.1, 0, 0.21)), "P4", "too few", "caution", None,
     "Too few labelled positives to judge: 14. An error of up to 21 points cannot be ruled out."),
    (replace(BASE, positives=0), "B0", "cannot be judged", "caution", None,
     "Nothing to judge: no row has both a prediction and an outcome."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "rule", "state", "severity", "direction", "text"),
    TABLE,
    ids=[f"{k}-{r[1]}" for k, r in enumerate(TABLE)],
)
def test_each_row(evidence, rule, state, severity, direction, text):
    found = UNLABELED.verdict(evidence)
    assert str(found) == text
    assert (found.rule, found.state, found.severity, found.direction) == (rule, state, severity, direction)


def test_the_answers_name_the_assumptions():
    found = UNLABELED.verdict(BASE)
    assert found.how_sure.startswith(
        "Strong evidence, given the assumed share: score test, p < 0.001. The share itself"
    )
    assert "random sample of all positives" in found.what_it_means
    assert found.what_to_do.startswith("Check the share first.")
    assert UNLABELED.verdict(replace(BASE, prior=0.5)).what_to_do.startswith("Lower the assumed share")
    assert UNLABELED.verdict(replace(BASE, tolerance=0.08)).severity == "note"


def test_thirty_labelled_positives_are_judged():
    states = [UNLABELED.verdict(replace(BASE, positives=n, test=UNSURE)).state for n in (29, 30)]
    assert states == ["too few", "not significant"]
