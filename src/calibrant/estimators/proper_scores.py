"""Proper scores of probabilities (Brier, log loss), accuracy and the AUC."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.data.judged import Judged
from calibrant.data.positive_unlabeled import PositiveUnlabeled
from calibrant.data.predictions import Binary, Column, Columns, Confidence, Multiclass, Predictions, binary
from calibrant.data.validation import as_number, fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import row_blocks
from calibrant.results.estimate import Estimate
from calibrant.results.target import estimates
from calibrant.table.binning import EqualWidth
from calibrant.table.bintable import BinTable, Data, fine, require_fine, require_kind
from calibrant.table.task import Unlabeled

Score = Literal["brier", "log_loss"]


def brier_losses(task: Predictions) -> Floats:
    """The squared distance of each row's probabilities from its outcome."""
    if isinstance(task, Multiclass):
        return np.concatenate([_vector_brier(task, rows) for rows in row_blocks(*task.y_prob.shape)])
    if isinstance(task, Binary) and task.label_shares is not None:
        p, share = task.y_prob.astype(np.float64), task.label_shares
        return np.asarray(share * (1 - p) ** 2 + (1 - share) * p**2)
    rows = probability_rows(task)
    return np.asarray((rows.predicted.astype(np.float64) - rows.observed) ** 2)


def log_loss_losses(task: Predictions, *, floor: float = 0.0) -> Floats:
    """Minus the log of the floored probability of each row's outcome; 0 for rows of no weight."""
    if isinstance(task, Multiclass):
        parts = [_vector_log_losses(task, rows, floor) for rows in row_blocks(*task.y_prob.shape)]
        losses = np.concatenate(parts)
    else:
        rows = task.linear_rows() if isinstance(task, Binary) else probability_rows(task)
        observed = rows.observed.astype(np.float64)
        losses = log_losses(floored(rows.predicted.astype(np.float64), floor), observed, 1 - observed)
    return losses if task.weight is None else np.where(task.weight > 0, losses, 0.0)


@estimates("mean score", losses=brier_losses)
def brier(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Brier score, the mean squared error of the probabilities.

    .. math:: \frac1W\sum_i w_i (p_i - y_i)^2, \qquad
              \frac1W\sum_i w_i \lVert p_i - e_{y_i}\rVert^2 \text{ for multiclass data}

    On positive-unlabeled data it is mean_U(p²) - 2 π mean_P(p) + π, which is unbiased for the same number.

    References
    ----------
    Brier (1950), Verification of Forecasts Expressed in Terms of Probability.

    Examples
    --------
    >>> brier([0, 1], [0.5, 1.0])
    <Brier score 0.125, n=2, mean>
    """
    if isinstance(data, BinTable):
        return _table_brier(data)
    task = binary(data, y_prob)
    if isinstance(task, PositiveUnlabeled):
        return _table_brier(BinTable.of(task, EqualWidth(1)))
    return Estimate(_mean(brier_losses(task), task), name="Brier score", method="mean", n=len(task))


@estimates("mean score", losses=log_loss_losses)
def log_loss(data: Data = None, y_prob: Column = None, *, floor: float = 0.0, **columns: Unpack[Columns]) -> Estimate:
    r"""Logarithmic score: the mean of minus the log of the probability that was predicted for the outcome.

    .. math:: -\frac1W\sum_i w_i \log p'_i(y_i), \qquad p' = \min(\max(p, \varepsilon), 1 - \varepsilon)

    where :math:`\varepsilon` is `floor`. By default it is 0 and nothing is clipped: one outcome of predicted
    probability 0 makes the mean infinite. The result then counts these rows and names the first, in ``details`` as
    "infinite_rows", "first_infinite_row" and "message".

    On positive-unlabeled data it is -π mean_P(logit p') - mean_U(log(1 - p')), which is unbiased for the same number.

    Parameters
    ----------
    data : Binary, Multiclass, PositiveUnlabeled, fine BinTable, or y_true
    floor : float in [0, 0.5)
        Probabilities are moved into [floor, 1 - floor] before logarithms are taken, so that no row of a binary task
        costs more than -log(floor). For multiclass data this is done to all probabilities of a row, and the row is then
        rescaled to the sum it had. `method` and ``details["floor"]`` name the floor.

    References
    ----------
    Good (1952), Rational Decisions.

    Examples
    --------
    >>> log_loss([0, 1], [0.5, 1.0])
    <Log loss 0.3466, n=2, mean>
    >>> log_loss([0, 0], [0.5, 1.0])
    <Log loss inf, n=2, mean, infinite for 1 row>
    >>> log_loss([0, 0], [0.5, 1.0], floor=1e-6)
    <Log loss 7.254, n=2, mean, floor=1e-06>
    """
    floor = check_floor(floor)
    if isinstance(data, BinTable):
        return _table_log_loss(fine(data, None, needed_by="log_loss"), floor)
    task = binary(data, y_prob)
    if isinstance(task, PositiveUnlabeled):
        return _table_log_loss(fine(task, None, needed_by="log_loss"), floor)
    losses = log_loss_losses(task, floor=floor)
    infinite = infinite_rows(losses)
    first = int(infinite[0]) if len(infinite) else None
    method, details = log_provenance("mean", floor, infinite=len(infinite), first=first)
    return Estimate(_mean(losses, task), name="Log loss", method=method, n=len(task), details=details)


def right_answers(task: Predictions) -> NDArray[np.bool_]:
    """Whether each row was right: the answer, the most probable class, or the more probable of two outcomes."""
    if isinstance(task, Multiclass):
        task = task.top_label()
        return np.asarray(task.y_true == 1)
    if isinstance(task, Confidence):
        return np.asarray(task.correct == 1)
    if not isinstance(task, Binary):
        fail(f"accuracy needs binary or multiclass predictions, or judged answers, not {task!r}.")
    return np.asarray((task.y_prob >= 0.5) == (task.y_true == 1))


@estimates("accuracy")
def accuracy(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Accuracy: the share of right answers.

    .. math:: \frac1W \sum_i w_i r_i, \qquad r_i = 1 \text{ where row } i \text{ is right, else } 0

    For `Confidence` and `Judged` data, whose rows are answers, r is whether the answer is right; for `Multiclass` data,
    whether the most probable class was observed; for `Binary` data, whether the outcome was the more probable one (1
    where y_prob is at least one half). Its interval is by `calibrant.inference.MidP`; that of judged answers uses all
    rows, see `Judged`. How often an event happens is not an accuracy: see `observed_expected`.

    Examples
    --------
    >>> accuracy([0, 1, 1, 0], [0.2, 0.6, 0.4, 0.3])
    <Accuracy 0.75, n=4, mean>
    >>> import calibrant as cal
    >>> cal.interval(accuracy, cal.Multiclass([0, 1] * 50, [[0.7, 0.3]] * 100))
    <Accuracy 0.5 [0.4022, 0.5978] at 95%, n=100, mean>
    """
    if isinstance(data, BinTable):
        fail("accuracy needs the predictions themselves, not a table of them.")
    task = binary(data, y_prob)
    if isinstance(task, Judged):
        value, words = float(task.rectified.mean()), f"{task.known.sum():_} gold labels"
        return Estimate(min(max(value, 0.0), 1.0), name="Accuracy", method=words, n=len(task))
    value = _mean(right_answers(task).astype(np.float64), task)
    return Estimate(value, name="Accuracy", method="mean", n=len(task))


@estimates("ranking")
def auc(data: Data = None, y_prob: Column = None, **columns: Unpack[Columns]) -> Estimate:
    r"""Area under the ROC curve: the probability that a positive outranks a negative, ties counting half.

    On positive-unlabeled data the comparison is with the whole population, of which the share π is positive, and

    .. math:: \mathrm{AUC} = \frac{\mathrm P(p_P > p_U) + \frac12 \mathrm P(p_P = p_U) - \pi/2}{1 - \pi}.

    References
    ----------
    Menon, van Rooyen, Ong, Williamson (2015), Learning from Corrupted Binary Labels via Class-Probability Estimation.

    Examples
    --------
    >>> auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    <AUC 0.875, n=4, exact>
    >>> import calibrant as cal
    >>> auc(cal.PositiveUnlabeled([0.4, 0.8], [0.1, 0.4, 0.4, 0.8], prior=0.5))
    <AUC 0.875, n=6, exact>
    """
    cells = fine(data, y_prob, needed_by="auc")
    positives, negatives = cells.outcome_weights
    below = np.cumsum(negatives) - negatives / 2
    if not (positives.any() and negatives.any()):
        fail("auc needs both outcomes, but all rows have the same.", ValueError)
    value = float(positives @ below) / float(positives.sum() * negatives.sum())
    return Estimate(value, name="AUC", method="exact", n=cells.n)


#: What `log_provenance` may say in the details of a result.
PROVENANCE = ("floor", "infinite_rows", "first_infinite_row", "message")


def check_floor(floor: float) -> float:
    """`floor` as a float in [0, 0.5)."""
    value = as_number(floor)
    if not 0 <= value < 0.5:
        fail(f"floor must lie in [0, 0.5), got {floor!r}.", ValueError)
    return value


def floored(p: Floats, floor: float) -> Floats:
    """Probabilities no nearer to 0 and 1 than `floor`; multiclass rows are then scaled to the sum they had.

    For two classes the scale is 1, so that both forms agree.
    """
    if floor == 0:
        return p
    raised = np.clip(p, floor, 1 - floor)
    if p.ndim == 1 or p.shape[1] == 1:
        return raised
    return raised * (p.sum(axis=1, keepdims=True) / raised.sum(axis=1, keepdims=True))


def log_losses(p: Floats, positives: Floats, negatives: Floats) -> Floats:
    """-positives log p - negatives log(1 - p), with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(positives > 0, -positives * np.log(p), 0.0)
        misses = np.where(negatives > 0, -negatives * np.log1p(-p), 0.0)
    total: Floats = hits + misses
    return total


def infinite_rows(losses: Floats) -> NDArray[np.intp]:
    """Numbers of the rows whose loss is infinite."""
    if np.isfinite(losses.sum()):  # a sum takes a fraction of the time of a comparison
        return np.empty(0, np.intp)
    return np.flatnonzero(np.isinf(losses))


def log_provenance(
    method: str, floor: float, *, infinite: int | None = 0, first: int | None = None
) -> tuple[str, dict[str, Any]]:
    """Method and details of a mean log score: its floor, or its `infinite` rows (None: unknown) and the `first`."""
    if floor > 0:
        return f"{method}, floor={floor:g}", {"floor": floor}
    if infinite == 0:
        return method, {}
    rows = "some rows" if infinite is None else f"{infinite} row{'s' if infinite > 1 else ''}"
    where = "" if first is None else f" (first: row {first})"
    message = (
        f"The log score is infinite for {rows}{where}, whose outcome had a predicted probability (or density) of 0. "
        "Pass floor=1e-6, for instance, to raise probabilities to at least that: no score then exceeds 13.8."
    )
    details = {"infinite_rows": infinite, "first_infinite_row": first, "message": message}
    return f"{method}, infinite for {rows}", details


def _vector_brier(task: Multiclass, rows: slice) -> Floats:
    """Squared distances of some rows from their outcomes."""
    p = task.y_prob[rows].astype(np.float64, copy=False)
    shares = task.label_shares
    hit = p[np.arange(len(p)), task.y_true[rows]] if shares is None else np.einsum("ij,ij->i", p, shares[rows])
    losses: Floats = np.einsum("ij,ij->i", p, p) - 2 * hit + 1
    return losses


def _vector_log_losses(task: Multiclass, rows: slice, floor: float) -> Floats:
    """Minus the log of the floored probability of the outcome, of some rows."""
    p = floored(task.y_prob[rows].astype(np.float64, copy=False), floor)
    if task.label_shares is None:
        hit = p[np.arange(len(p)), task.y_true[rows]]
        return log_losses(hit, np.ones_like(hit), np.zeros_like(hit))
    losses = log_losses(p.ravel(), task.label_shares[rows].ravel(), np.zeros(p.size))
    return np.asarray(losses.reshape(p.shape).sum(axis=1))


def _table_log_loss(cells: BinTable, floor: float) -> Estimate:
    positives, negatives = cells.outcome_weights
    p = floored(cells.task.mean_score(cells), floor)
    certain, excluded, rounding = p == 1, p == 0, cells.task.rounding * cells.total
    if positives[excluded].sum() > rounding or negatives[certain].sum() > rounding:
        value = float("inf")
    else:
        some = ~(certain | excluded)  # scores of 0 and 1 are taken together, where a tiny weight counts as none
        value = float(-(positives[some] @ np.log(p[some])) - negatives[some] @ np.log1p(-p[some]))
    method, details = log_provenance(_mean_of(cells), floor, infinite=_infinite_rows(cells, value))
    return Estimate(value / cells.total, name="Log loss", method=method, n=cells.n, details=details)


def _infinite_rows(cells: BinTable, value: float) -> int | None:
    """How many rows make the sum infinite; None where a table cannot tell (weighted or unlabeled rows)."""
    if np.isfinite(value):
        return 0
    if isinstance(cells.task, Unlabeled) or not np.array_equal(cells.weight, cells.count):
        return None
    score = cells.predicted_mean
    return round(float(cells.observed[score == 0].sum() + (cells.weight - cells.observed)[score == 1].sum()))


def probability_rows(task: Predictions) -> Any:
    """The rows of probabilities and their outcomes."""
    rows = task.rows()
    if rows.predicted is not rows.key:
        fail(f"{type(task).__name__} predictions have no probability score of this kind.", ValueError)
    return rows


def _mean(values: Floats, task: Predictions) -> float:
    return float(values.mean() if task.weight is None else np.average(values, weights=task.weight))


def _table_brier(table: BinTable) -> Estimate:
    """The score from sums: outcomes are 0 or 1, so that their squares are the outcomes themselves."""
    if not np.isfinite(table.predicted_squares).all():
        require_fine(table, needed_by="brier")
    require_kind(table, needed_by="brier")
    scale = table.observed_scale
    total = float(table.predicted_squares.sum() - scale * (2 * table.product.sum() - table.observed.sum()))
    return Estimate(total / table.total, name="Brier score", method=_mean_of(table), n=table.n)


def _mean_of(table: BinTable) -> str:
    return f"{table.task.name} mean" if isinstance(table.task, Unlabeled) else "mean"
