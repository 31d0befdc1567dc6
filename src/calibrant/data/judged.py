"""Few gold labels and a judge's score of every row: the judge recalibrated, rectified outcomes, what to label next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.groups import group_names
from calibrant.data.predictions import Binary, Confidence, Predictions
from calibrant.data.validation import Mask, fail, frozen, read, typed
from calibrant.numerics.arrays import Codes, Floats, expit, log_odds
from calibrant.numerics.logistic.stacked import logistic_fits
from calibrant.numerics.random_draws import generator
from calibrant.numerics.rows import Rows

#: Fewer gold labels are refused.
#: Test: tests/data/test_judged.py::test_five_gold_labels_are_needed.
FEWEST_LABELS = 5

#: Precision of the coefficients of the recalibrated judge, and rows of each outcome that are added to the labels.
#: Test: tests/data/test_judged.py::test_the_forecast_is_the_ridge_regression_written_out.
RIDGE, PSEUDO_ROWS = 0.3, 0.5

#: Folds of labelled clusters.
#: Test: tests/data/test_judged.py::test_the_forecast_is_the_ridge_regression_written_out.
FOLDS = 10

#: A score of at most so many levels has a coefficient for each; a finer one is a piecewise linear curve of its rank
#: with so many pieces.
#: Test: tests/data/test_judged.py::test_scores_of_few_levels_have_a_coefficient_each.
MOST_LEVELS, PIECES = 12, 4

#: The share of the labels that is drawn with equal probabilities, so that a wrong forecast does limited harm.
#: Test: tests/data/test_judged.py::test_a_quarter_of_the_labels_is_drawn_with_equal_probabilities.
EQUAL_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class NextLabels:
    """Which rows to label next; see `Judged.next_labels`.

    Attributes
    ----------
    rows : array of int
        The numbers of the rows, ascending. Those that have a gold label already need no other.
    probability : array
        The probability with which each of them was drawn.
    weight : array
        For all rows, what to pass as `weight` once these have their labels; 0 where there is none.

    Examples
    --------
    >>> gold = [1, 0, 1, 1, 0, 1] + [None] * 14
    >>> found = Judged(gold, [0.6] * 20, judge=[1, 0] * 10).next_labels(5)
    >>> len(found.rows), bool((found.weight[found.rows] > 0).all())
    (5, True)
    """

    rows: Codes
    probability: Floats
    weight: Floats

    def __repr__(self) -> str:
        return f"<NextLabels, {len(self.rows):_} of {len(self.weight):_} rows>"


class Judged(Predictions):
    r"""Answers, each with a judge's score, and gold labels for a few of them.

    `gold` says whether an answer is right, and `p` is the confidence that it is. All rows have the score of a judge: a
    language model, a second annotator or a heuristic. The judge is recalibrated: m is its cross-fitted forecast of
    gold, and

    .. math:: \tilde y_i = m_i + R_i w_i (y_i - m_i), \qquad R_i = 1 \text{ where gold is known, else } 0,

    is the *rectified outcome*. Whatever the judge, its mean is that of gold if rows were labelled with probability
    proportional to :math:`1 / w_i`. `interval`, `by_group` and `compare` use it for `accuracy`, `observed_expected`,
    `calibration_slope` and calibration errors. A useless judge widens intervals by up to 10 %, and a wrong one does not
    bias them. A group without gold labels gets no number.

    Parameters
    ----------
    gold : array-like of 0 and 1, or bool, and missing values
        None or NaN where the label is missing. At least five labels are needed.
    p : array-like in [0, 1]
        The confidence that the answer is right.
    judge : array-like of numbers
        The judge's score of each row, on any scale and in either direction; missing where the judge gave none. Several
        judges are the columns of a matrix or frame.
    weight : array-like, optional
        For labelled rows: 1 / the probability with which the row was chosen to be labelled, up to a common factor;
        other entries are ignored. By default labelled rows are treated as a simple random sample.
    group : array-like, optional
        Rows that depend on each other, such as the answers to one question.
    by : array-like, or a mapping, list or frame of several, optional
        Columns, such as the model or the topic, in which the judge may be biased. `by_group` compares their groups.

    Notes
    -----
    The forecast is a ridge logistic regression of gold on the score, the log odds of p and a column for each group of
    `by`, fitted without the fold of each labelled cluster, and shrunk towards a constant as far as held-out gold labels
    suggest. Gold labels are treated as true. Nothing can correct for labels that were chosen because the rows looked
    interesting, rather than with known probabilities.

    References
    ----------
    Robins, Rotnitzky, Zhao (1994), Estimation of regression coefficients when some regressors are not always observed;
    Angelopoulos, Duchi, Zrnic (2023), PPI++: Efficient Prediction-Powered Inference.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> right = rng.random(2000) < p
    >>> score = np.where(rng.random(2000) < 0.9, right, ~right)  # agrees with nine of ten
    >>> gold = np.where(np.arange(2000) < 100, right, np.nan)
    >>> data = Judged(gold, p, judge=score)
    >>> data
    <Judged, n=2_000, 100 gold labels>
    >>> found = cal.interval(cal.accuracy, data)  # about 0.5
    >>> alone = cal.interval(cal.accuracy, data.labelled())
    >>> width, without = (one.interval.high - one.interval.low for one in (found, alone))
    >>> 0.5 in found.interval, width < 0.8 * without
    (True, True)
    """

    columns = ("gold", "y_prob", "scores", "label_weight", "by_codes", "_forecast")
    #: 0, 1, or NaN where it is not known.
    gold: Floats
    #: One column per judge; NaN where it gave no score.
    scores: Floats
    #: 0 where gold is not known; else proportional to 1 / the probability of being labelled.
    label_weight: Floats
    #: The number of each row's group in each column of `by`.
    by_codes: Codes
    #: What the columns are called, for code that is shown: gold, p, judge (a list), weight and group.
    names: dict[str, Any]
    _forecast: Floats | None = None

    def __init__(
        self,
        gold: ArrayLike,
        p: ArrayLike,
        *,
        judge: ArrayLike,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        by: Any = (),
    ) -> None:
        self._align(gold=gold, p=p, judge=judge, weight=weight, group=group)
        self.y_prob = validation.probabilities("p", p)
        self.gold = _with_gaps("gold", gold, len(self))
        rule = "must be 0, 1 or missing"
        validation.require("gold", self.gold, np.isnan(self.gold) | np.isin(self.gold, (0, 1)), rule)
        if self.known.sum() < FEWEST_LABELS:
            fail(
                f"gold holds {self.known.sum()} labels, but at least {FEWEST_LABELS} are needed; what can be said "
                "without any is in calibrant.without_labels."
            )
        self.scores = _with_gaps("judge", judge, len(self), columns=True)
        self.label_weight, self.sampled = self.known.astype(np.float64), weight is not None
        if weight is not None:
            given = _with_gaps("weight", weight, len(self))
            rule = "must be positive and finite where gold is known"
            remedy = " Pass 1 / the probability with which each row was chosen to be labelled."
            fits = ~self.known | ((given > 0) & np.isfinite(given))
            validation.require("weight", given, fits, rule, remedy=remedy)
            self.label_weight = np.where(self.known, given, 0.0)
        columns = _by_columns(by, len(self), self.require_same_rows)
        self.by_names = {name: names for name, (names, _) in columns.items()}
        codes = [index for _, index in columns.values()]
        self.by_codes = np.stack(codes, axis=1) if codes else np.zeros((len(self), 0), np.intp)
        one = {"gold": gold, "p": p, "weight": weight, "group": group}
        self.names = {name: None if values is None else _name(values, name) for name, values in one.items()}
        judges, number = getattr(judge, "column_names", getattr(judge, "columns", ())), self.scores.shape[1]
        numbered = [_name(judge, "judge" if number == 1 else f"judge {k + 1}") for k in range(number)]
        self.names["judge"] = [str(name) for name in judges] or numbered
        self._attach(None, group)
        self._freeze()

    def __len__(self) -> int:
        return len(self.y_prob)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.known.sum():_} gold labels>"

    @property
    def known(self) -> Mask:
        """Which rows have a gold label."""
        return ~np.isnan(self.gold)

    def rows(self) -> Rows:
        """Refused: most rows have no outcome."""
        fail(
            "Few rows of Judged data have an outcome, so this function cannot use them. calibrant.interval, by_group "
            "and compare take them with accuracy, observed_expected, calibration_slope and estimators of the "
            "calibration error such as averaged_error; data.labelled() are the rows with a gold label."
        )

    def take(self, rows: NDArray[Any]) -> Self:
        """The given rows, by number or mask; the recalibrated judge stays that of all rows."""
        self.forecast  # noqa: B018 - computed before rows are left out
        return super().take(rows)

    def labelled(self) -> Confidence:
        """The rows with a gold label, with their weights where these differ."""
        some = self.label_weight[self.known]
        weight = some if np.ptp(some) > 0 else None
        group = None if self.group is None else self.group[self.known]
        return Confidence.borrowing(self.gold[self.known], self.y_prob[self.known], weight=weight, group=group)

    def judge(self, number: int = 0) -> Binary:
        """Is the judge calibrated? Its scores as probabilities of gold, for the rows with a gold label and a score.

        Scores must lie in [0, 1]; where there are several judges, `number` says which.

        >>> Judged([1, 0, 1, 1, 0, None], [0.6] * 6, judge=[0.9, 0.2, 0.8, 0.4, 0.1, 0.7]).judge()
        <Binary, n=5>
        """
        if not 0 <= validation.whole("number", number, minimum=0) < self.scores.shape[1]:
            fail(f"There are {self.scores.shape[1]} judges, numbered from 0, got number={number}.", ValueError)
        score, data = self.scores[:, number], self.labelled()
        given = ~np.isnan(score)
        remedy = " Scores on another scale are not probabilities; if 0 to 10 means 0 to 1, divide by 10."
        inside = ~given | ((score >= 0) & (score <= 1))
        validation.require("judge", score, inside, "must lie in [0, 1] to be judged as a probability", remedy=remedy)
        some = data.take(given[self.known])
        return Binary.borrowing(some.y_true, score[self.known & given], weight=some.weight, group=some.group)

    @property
    def forecast(self) -> Floats:
        """The recalibrated judge: cross-fitted probabilities of gold, of all rows."""
        if self._forecast is None:
            self._forecast = frozen(_forecast(self))
        return self._forecast

    @property
    def rectified(self) -> Floats:
        """Rectified outcomes: their mean is that of gold, labelled rows standing for all of them."""
        if not self.known.any():
            fail("None of these rows has a gold label, so nothing is known about them: label some, see next_labels.")
        weight = self.label_weight * (len(self) / self.label_weight.sum())
        return np.asarray(self.forecast + weight * (np.nan_to_num(self.gold) - self.forecast))

    def next_labels(self, k: int, *, by: Any = None, seed: int = 0) -> NextLabels:
        r"""Which k rows to label next, drawn where the recalibrated judge is least sure.

        The probabilities of being drawn are proportional to :math:`\sqrt{m (1 - m)}` for three quarters of the labels
        and equal for the rest. `weight` makes one sample of the earlier labels and the new ones, each counted by its
        information, so that intervals stay valid however many times labels are added.

        Parameters
        ----------
        k : int
            How many rows.
        by : array-like, optional
            Groups, such as models, of which each gets the same expected number of labels.
        seed : int

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> right, score = rng.random(500) < 0.7, rng.random(500)
        >>> gold = np.where(np.arange(500) < 50, right, np.nan)
        >>> found = Judged(gold, np.full(500, 0.7), judge=score).next_labels(60)
        >>> gold[found.rows] = right[found.rows]  # after they were labelled
        >>> Judged(gold, np.full(500, 0.7), judge=score, weight=found.weight)
        <Judged, n=500, 105 gold labels>
        """
        k, n = validation.whole("k", k), len(self)
        if k > n:
            fail(f"k must be at most the number of rows, {n}, got {k}.", ValueError)
        variance = self.forecast * (1 - self.forecast)
        self.require_same_rows(by=by)
        level = np.zeros(n, np.intp) if by is None else group_names(by, length=n)[1]
        wish, rows = np.sqrt(variance), np.bincount(level)
        share = (1 - EQUAL_SHARE) * wish / np.bincount(level, wish)[level] + EQUAL_SHARE / rows[level]
        chance = _capped(share, k)
        chosen = _systematic_sample(chance, generator(validation.seed(seed), "next labels"))
        old = self.label_weight * (n / self.label_weight.sum())
        before, now = float((old**2 * variance).sum()), float((variance / chance).sum())
        weight = now / (before + now) * old
        weight[chosen] += before / (before + now) / chance[chosen]
        return NextLabels(chosen, chance[chosen], weight)


def _with_gaps(name: str, values: ArrayLike, length: int, *, columns: bool = False) -> Floats:
    """Numbers with NaN where they are missing, one per row; or as many columns as there are."""
    array, missing = read(name, values)
    numbers = typed(name, array, missing)
    if numbers.dtype.kind not in "fiub":
        if not numbers.size or (missing is not None and missing.all()):
            fail(f"{name} holds no values.")
        first = numbers[~missing][0] if missing is not None else numbers.flat[0]
        fail(f"{name} must hold numbers, got {numbers.dtype} values (first: {first!r}). Convert it to numbers first.")
    found = numbers.astype(np.float64)
    if missing is not None:
        found[missing] = np.nan
    if not columns:
        return validation.one_dimension(name, found, length)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) != length or not found.shape[1]:
        fail(f"{name} must have one value per row, or one column per judge, got shape {found.shape} for {length} rows.")
    validation.require(name, found, ~np.isinf(found).any(axis=1), "must be finite or missing")
    return found


def _name(column: Any, other: str) -> str:
    """The name of a column of a data frame; another for anything else."""
    return str(getattr(column, "name", None) or other)


def _by_columns(by: Any, length: int, check: Any) -> dict[str, tuple[list[Any], Codes]]:
    """The names of the groups and the number of each row's, for each column of `by`."""
    if hasattr(by, "columns") and hasattr(by, "__getitem__"):
        by = {str(name): by[name] for name in getattr(by, "column_names", by.columns)}
    elif isinstance(by, list | tuple) and not (len(by) and np.ndim(by[0]) == 0):
        by = {_name(values, f"by[{k}]"): values for k, values in enumerate(by)}
    elif not isinstance(by, Mapping):
        by = {_name(by, "by"): by}
    found = {}
    for name, values in by.items():
        check(**{str(name): values})
        found[str(name)] = group_names(values, name=f"by[{name!r}]", length=length)
    return found


def _features(data: Judged) -> Floats:
    """What gold is forecast from, centred; all but the groups of `by` in units of their standard deviation."""
    own: list[Floats] = []
    for score in data.scores.T:
        given = ~np.isnan(score)
        levels, index = np.unique(score[given], return_inverse=True)
        own.append((~given).astype(np.float64))
        if len(levels) <= MOST_LEVELS:
            own += [(score == level).astype(np.float64) for level in levels[1:]]
            own += [np.where(given, score, levels.mean())] if len(levels) > 2 else []
            continue
        rank = np.zeros(len(score))
        below = np.cumsum(np.bincount(index)) - np.bincount(index)
        rank[given] = below[index] / given.sum()
        own += [np.maximum(rank - k / PIECES, 0.0) for k in range(PIECES)]
        if levels[0] >= 0 and levels[-1] <= 1:
            own.append(np.where(given, log_odds(np.clip(np.where(given, score, 0.5), 1e-3, 1 - 1e-3)), 0.0))
    own.append(log_odds(np.clip(data.y_prob, 1e-3, 1 - 1e-3)))
    scaled = np.stack(own, axis=1)
    scaled -= scaled.mean(axis=0)
    spread = np.sqrt((scaled**2).mean(axis=0))
    parts = [scaled[:, spread > 1e-9] / spread[spread > 1e-9]]
    for codes in data.by_codes.T:
        seen = np.unique(codes[data.known])
        shares = np.bincount(codes, minlength=seen[-1] + 1)[seen] / len(data)
        parts.append((codes[:, None] == seen).astype(np.float64) - shares)
    return np.concatenate(parts, axis=1)


def _forecast(data: Judged) -> Floats:
    """Cross-fitted probabilities of gold, drawn towards a constant by the regression of gold on them, held out."""
    cluster = np.arange(len(data)) if data.group is None else np.unique(data.group, return_inverse=True)[1].reshape(-1)
    labelled, clusters = np.flatnonzero(data.known), np.unique(cluster[data.known])
    folds = min(FOLDS, len(clusters))
    if folds < 2:
        fail("All gold labels belong to one group, so nothing is known about others.")
    of_cluster = np.full(int(cluster.max()) + 1, -1)
    of_cluster[clusters] = generator(0, "folds of gold labels").permutation(len(clusters)) % folds
    fold, y, w = of_cluster[cluster], data.gold[labelled], data.label_weight[labelled]
    x = _features(data)
    weight = np.where(fold[labelled] == np.arange(folds)[:, None], 0.0, w)
    weight *= (weight.sum(axis=1) / (weight**2).sum(axis=1))[:, None]  # so that they add up to Kish's number of labels
    constant = ((weight @ y + PSEUDO_ROWS) / (weight.sum(axis=1) + 2 * PSEUDO_ROWS)).clip(1e-6, 1 - 1e-6)
    basis = np.concatenate([np.ones((len(labelled) + 1, 1)), np.vstack([x[labelled], np.zeros(x.shape[1])])], axis=1)
    ones = np.column_stack([weight * y, np.full(folds, PSEUDO_ROWS)])
    zeros = np.column_stack([weight * (1 - y), np.full(folds, PSEUDO_ROWS)])
    precision = np.concatenate([[1e-9], np.full(x.shape[1], RIDGE)])
    start = log_odds(constant)[:, None]
    offset = np.zeros(len(labelled) + 1)
    fits = logistic_fits(basis, offset, ones, zeros, precision[None], start=start, tolerance=1e-9).coefficients[:, 0]
    m, base = np.zeros(len(data)), np.full(len(data), float(constant.mean()))
    for b in fits:
        m += expit(b[0] + x @ b[1:]) / folds
    for k, b in enumerate(fits):
        own = np.flatnonzero(fold == k)
        m[own], base[own] = expit(b[0] + x[own] @ b[1:]), constant[k]
    moved, away = m[labelled] - base[labelled], y - base[labelled]
    size = float(w**2 @ moved**2)
    power = min(max(float(w**2 @ (moved * away)) / size, 0.0), 1.0) if size > 0 else 0.0
    return np.asarray((base + power * (m - base)).clip(1e-4, 1 - 1e-4))


def _capped(share: Floats, k: int) -> Floats:
    """Probabilities proportional to the shares, at most 1, whose sum is k."""
    chance = np.full(len(share), 1.0)
    free = np.arange(len(share))
    while True:
        own = share[free]
        chance[free] = (k - (len(share) - len(free))) * own / own.sum()
        if not (chance[free] > 1).any():
            return chance
        chance[free[chance[free] > 1]] = 1.0
        free = free[chance[free] < 1]


def _systematic_sample(chance: Floats, rng: np.random.Generator) -> Codes:
    """A sample of fixed size with these probabilities: a systematic one of the rows in random order."""
    order = rng.permutation(len(chance))
    steps = np.floor(np.cumsum(chance[order]) + rng.random() + 1e-9)
    return np.sort(order[np.flatnonzero(np.diff(steps, prepend=0.0) > 0)])
