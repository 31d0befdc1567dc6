"""A Bayesian average of corrections of the log odds, centred at no correction: safe with few rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Self

import numpy as np

from calibrant.numerics.arrays import Floats
from calibrant.numerics.broken_line import broken_line
from calibrant.numerics.special import expit
from calibrant.recalibrate.base import BinaryRecalibrator, Sample
from calibrant.recalibrate.inputs import BinomialCells, Scores, pooled_log_odds
from calibrant.recalibrate.log_odds_corrections import LARGEST, Corrections, Family, fit_families
from calibrant.recalibrate.mixture_weights import certainty_floor
from calibrant.recalibrate.sql_scores import SqlScores

#: Rows are pooled into at most this many groups of neighbouring log odds.
_GROUPS = 200

#: What a correction counts that turns the order of the scores round: models that are wrong in this way are rare, small
#: samples that look so are not.
_REVERSED = 0.1

#: The power of the marginal likelihoods. Members are fitted by their modes, which few rows flatter: below 1, a sample
#: that looks wrong by chance does less harm, and no correction needs less prior weight to be as safe.
_POWER = 0.7

#: The least weight of a member that is used.
_MIN_WEIGHT = 1e-4

#: How far the lines between the points of the map are from the average, in log odds: a log loss of less than 1e-7.
_TOLERANCE = 1e-3

#: So many maps are fitted at once.
_TOGETHER = 16

#: Rising log odds, the weight of the rows there, and of those with the outcome 1.
_Pooled = tuple[Floats, Floats, Floats]


class BayesianAverage(BinaryRecalibrator):
    r"""Bayesian average of corrections of the log odds, from none over affine to wavy ones.

    .. math:: q = \sum_m w_m \operatorname{expit}(x + \Phi_m(x)\, \hat b_m), \qquad x = \operatorname{logit} p,
              \qquad b_m \sim N(0, S_m), \qquad w_m \propto \pi_m \Bigl(\int L(b)\, dN(b; 0, S_m)\Bigr)^{0.7}

    Every correction has a prior centred at zero, is fitted by its mode, and counts by its prior weight times its
    marginal likelihood (Laplace's approximation), to a power below 1 because modes fit the sample too well. Without
    data the map is the identity, and it leaves it only as far as the rows say so: there is nothing to choose, and few
    rows cannot do much harm.

    **Never certain without evidence.** n rows do not move a probability closer to 0 or 1 than
    :math:`\tfrac12/(n+1)`, unless it was predicted there already:
    :math:`\min(p, \tfrac{1}{2(n+1)}) \le q \le \max(p, 1 - \tfrac{1}{2(n+1)})`.

    Level and slope are measured at the centre of information, where a change of one does not change the other, in units
    of the spread of the log odds; beyond the scores that were fitted, by more than one such unit, corrections are
    constant.

    Parameters
    ----------
    input, laplace, clip
        As for all maps: see `Recalibrator`.

    Attributes
    ----------
    members_ : list of str
        What is averaged.
    member_weight_ : array
        Posterior probability of each.

    References
    ----------
    MacKay (1992), The Evidence Framework Applied to Classification Networks. Hoeting, Madigan, Raftery, Volinsky
    (1999), Bayesian Model Averaging. Grünwald, van Ommen (2017), Inconsistency of Bayesian Inference for Misspecified
    Linear Models, and a Proposal for Repairing It (powers of the likelihood below 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> fitted = BayesianAverage().fit(p, rng.random(5000) < p**2)
    >>> bool(abs(fitted.predict_proba([0.5])[0, 1] - 0.25) < 0.02)
    True

    Twenty rows without an event say little about a score of 0.3:

    >>> few = BayesianAverage().fit(np.linspace(0.005, 0.015, 20), np.zeros(20), classes=[0, 1])
    >>> bool(0.2 < few.predict_proba([0.3])[0, 1] < 0.3)
    True
    """

    def _fit_cells(self, cells: BinomialCells) -> None:
        _fit_pooled([(self, _pooled(cells))])

    @classmethod
    def _fit_each(cls, samples: Iterable[tuple[Self, Sample]]) -> Iterator[Self]:
        rest = iter(samples)
        while some := [(inner, _pooled(BinomialCells.of_rows(*given))) for inner, given in islice(rest, _TOGETHER)]:
            _fit_pooled(some)
            yield from (inner for inner, _ in some)

    def _average(self, corrections: Corrections, families: list[Family], fits: list[tuple[Floats, Floats]]) -> None:
        """Set the fitted attributes from the fits of all families."""
        scores = []
        for family, (coefficients, evidence) in zip(families, fits, strict=True):
            turned = np.where(family.slope(coefficients) < 0, np.log(_REVERSED), 0.0)
            scores.append(np.log(family.weight) + _POWER * evidence + turned)
        score = np.concatenate(scores)
        share = np.exp(score - score.max())
        self.members_ = [name for family in families for name in family.members]
        self.member_weight_ = share / share.sum()
        fitted = [coefficients for coefficients, _ in fits]
        self.log_odds_, self.corrected_ = broken_line(
            lambda at: _averaged(corrections, at, fitted, self.member_weight_),
            corrections.corners,
            tolerance=_TOLERANCE,
        )

    def _map(self, scores: Scores) -> Floats:
        x = np.clip(scores.log_odds, -LARGEST, LARGEST)
        p, floor = expit(x), certainty_floor(self.weight_)
        q = expit(np.interp(x, self.log_odds_, self.corrected_))
        return np.clip(q, np.minimum(p, floor), np.maximum(p, 1 - floor))

    def _map_sql(self, scores: SqlScores) -> str:
        corrected = scores.interpolated(self.log_odds_, self.corrected_, of="log_odds")
        q = scores.dialect.expit(corrected, largest=float(np.abs(self.corrected_).max()))
        p = scores.dialect.expit(scores.log_odds_within(-LARGEST, LARGEST), largest=LARGEST)
        return scores.dialect.kept_from_certainty(q, p, certainty_floor(self.weight_))


def _pooled(cells: BinomialCells) -> _Pooled:
    x = np.clip(cells.log_odds, -LARGEST, LARGEST)
    return pooled_log_odds(x, cells.weight, cells.positive, groups=_GROUPS)


def _fit_pooled(maps: Sequence[tuple[BayesianAverage, _Pooled]]) -> None:
    """Fit each map to its own log odds; all at once, because most of the time of a single fit is that of calls."""
    corrections = [Corrections.of(x, weight) for _, (x, weight, _) in maps]
    families = [list(unit.families(unit.scores)) for unit in corrections]
    outcomes = [(positive, weight - positive) for _, (_, weight, positive) in maps]
    fits = iter(
        fit_families(
            [family for own in families for family in own],
            [seen for own, seen in zip(families, outcomes, strict=True) for _ in own],
        )
    )
    for (inner, _), unit, own in zip(maps, corrections, families, strict=True):
        inner._average(unit, own, list(islice(fits, len(own))))


def _averaged(corrections: Corrections, x: Floats, coefficients: list[Floats], member_weight: Floats) -> Floats:
    """Log odds of the mean probability of the members that count."""
    logits, first = [], 0
    used = member_weight > _MIN_WEIGHT
    for family, fitted in zip(corrections.families(x), coefficients, strict=True):
        some, first = used[first : first + len(fitted)], first + len(fitted)
        if some.any():
            logits.append(family.offset + fitted[some] @ family.basis.T)
    z, share = np.concatenate(logits), member_weight[used]
    return np.asarray(np.log(share @ expit(z)) - np.log(share @ expit(-z)))
