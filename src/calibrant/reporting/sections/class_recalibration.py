"""Recalibration of whole vectors of class probabilities, cross-validated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.predictions import Multiclass
from calibrant.inference.binary_error.inversion import Inversion
from calibrant.inference.intervals import interval
from calibrant.inference.sample import cluster_labels
from calibrant.numerics.arrays import Floats
from calibrant.numerics.folds import fold_of_rows
from calibrant.numerics.weights import effective_n, mean_and_error
from calibrant.recalibrate.cross_validation import HeldOut, Loss, row_losses
from calibrant.recalibrate.inputs import Scores
from calibrant.reporting.contents import MapRow, Recalibration, Value
from calibrant.reporting.folds import FOLDS
from calibrant.reporting.part import Part, headline_error
from calibrant.reporting.sections.gains import with_fit_error
from calibrant.reporting.sections.groups import DRAWS
from calibrant.reporting.sections.how_to_apply import class_code, class_columns, commands
from calibrant.reporting.sections.omission import CannotBuild
from calibrant.reporting.sections.ranking import Candidate, ranked
from calibrant.reporting.sections.recalibration import value_of
from calibrant.reporting.sections.reliability import confidence_band, corp_curve

#: Fewer rows cannot fit and judge a map.
FEWEST_ROWS = 100
#: Rows that a map needs for each of its parameters.
_ROWS_PER_PARAMETER = 5
#: Where rows times squared classes are more than this, one fold is held out instead of each in turn.
_WORK = 1e8
#: Of more classes the command, with an option each, would not be read.
_NAMED_CLASSES = 12


def class_recalibration(data: Multiclass, *, seed: int = 0) -> Recalibration:
    """Temperature, vector, matrix and Dirichlet scaling, each fitted on four fifths of the rows and judged on the rest.

    All of them map the whole vector; none looks at the confidence of the predicted class alone. Matrix and Dirichlet
    maps are tried where there are five rows for each of their parameters. `remaining` is the calibration error of the
    confidence of the predicted class after the map.
    """
    fold = _folds(data, seed)
    scores = Scores.of(data.y_prob, input="probabilities", clip=False)
    before = float(np.min(data.y_prob[np.arange(len(data)), data.y_true]))
    loss: Loss = "log_loss" if before > 0 else "brier"
    maps = _maps(len(data.classes), len(data))
    parts = FOLDS if len(data) * len(data.classes) ** 2 <= _WORK else 1
    tried = HeldOut.of(
        [one for one, _ in maps], scores, data.y_true, data.weight, fold, parts=min(parts, fold.max() + 1)
    )
    rows = np.flatnonzero(fold < parts)
    judge = _Judge(data.take(rows), tried.mass, loss)
    judged = [
        Candidate(type(one).__name__, parameters, judge.gain(p, parameters), p)
        for (one, parameters), p in zip(maps, tried.probabilities, strict=True)
    ]
    order = ranked(judged, lambda a, b: judge.error_of_difference(a.predicted, b.predicted))
    first, after = order[0][0], judge.top_label(order[0][0].predicted, seed)
    return Recalibration(
        loss="log loss" if loss == "log_loss" else "Brier score",
        loss_before=judge.mean_before,
        maps=tuple(_map_row(judge, one, effect, seed, first=one is first) for one, effect in order),
        after=replace(corp_curve(after.cells), confidence=confidence_band(after)),
        command=commands(first.name, class_columns(data.classes)) if len(data.classes) <= _NAMED_CLASSES else "",
        code=class_code(first.name),
    )


def _map_row(judge: _Judge, one: Candidate, effect: Any, seed: int, *, first: bool) -> MapRow:
    method = None if first else Inversion(draws=DRAWS)
    error = interval(headline_error, judge.top_label(one.predicted, seed).data, method=method)
    return MapRow(one.name, one.parameters, value_of(error), one.gain, effect)


def _folds(data: Multiclass, seed: int) -> NDArray[np.intp]:
    if len(data) < FEWEST_ROWS or len(np.unique(data.y_true)) < 2:
        message = f"Too few rows to fit or judge a map: it takes {FEWEST_ROWS} rows of two classes or more."
        raise CannotBuild(message)
    fold = fold_of_rows(len(data), [1] * FOLDS, seed=seed, cluster=data.group)
    if fold.max() == 0:
        message = "All rows belong to one group, so that no map can be judged on rows of another."
        raise CannotBuild(message)
    return fold


def _maps(classes: int, n: int) -> list[tuple[Any, float]]:
    """The maps that so many rows can fit, each with its number of parameters."""
    from calibrant.recalibrate.logistic import Temperature
    from calibrant.recalibrate.matrix import Dirichlet, MatrixScaling, VectorScaling

    vector, matrix = 2.0 * classes - 1, float((classes - 1) * (classes + 1))
    every = [(Temperature(), 1.0), (VectorScaling(), vector), (MatrixScaling(), matrix), (Dirichlet(), matrix)]
    return [(one, size) for one, size in every if size == 1 or _ROWS_PER_PARAMETER * size <= n]


class _Judge:
    """Losses of held-out rows before and after a map."""

    def __init__(self, data: Multiclass, mass: Floats, loss: Loss) -> None:
        self.data, self.mass, self.loss = data, mass, loss
        self.before = data.y_prob.astype(np.float64)
        self.losses_before = row_losses(self.before, data.y_true, loss)
        self.mean_before = float(self.losses_before @ mass / mass.sum())
        self.cluster = None if data.group is None else cluster_labels(data, len(data))

    def gain(self, after: Floats, parameters: float) -> Value:
        """By how much the loss falls, as a share of the loss before; see `gains.gain_share`."""
        losses = row_losses(after, self.data.y_true, self.loss)
        share = 1 - float(losses @ self.mass / self.mass.sum()) / self.mean_before
        rest = self.losses_before - losses - share * self.losses_before
        error = mean_and_error(rest, self.mass, self.cluster)[1]
        by_model = (self._error_if_true(p, after, share) for p in (self.before, after))
        size = effective_n(self.data.weight, len(self.data))
        if self.cluster is not None:
            size *= min((mean_and_error(rest, self.mass)[1] / max(error, 1e-300)) ** 2, 1.0)
        unit = 0.5 if self.loss == "log_loss" else float((self.before * (1 - self.before)).sum(axis=1).mean()) / 2
        excess = unit * np.sqrt(2 * parameters) / (size * self.mean_before)
        return with_fit_error(share, max(error, *by_model) / self.mean_before, excess)

    def error_of_difference(self, one: Floats, other: Floats) -> float:
        """The standard error of the difference of the gains of two maps."""
        difference = row_losses(one, self.data.y_true, self.loss) - row_losses(other, self.data.y_true, self.loss)
        return mean_and_error(difference, self.mass, self.cluster)[1] / self.mean_before

    def top_label(self, after: Floats, seed: int) -> Part:
        """The confidence of the predicted class after the map."""
        p = after / after.sum(axis=1, keepdims=True)
        labels, data = np.asarray(range(len(self.data.classes))), self.data
        return Part(Multiclass(labels[data.y_true], p, weight=data.weight, group=data.group).top_label(), seed)

    def _error_if_true(self, p: Floats, after: Floats, share: float) -> float:
        """The standard error of the gain if p were the probabilities of the classes."""
        classes = range(p.shape[1])
        columns = [np.full(len(p), k) for k in classes]
        rest = np.stack(
            [(1 - share) * row_losses(self.before, k, self.loss) - row_losses(after, k, self.loss) for k in columns],
            axis=1,
        )
        mean = np.einsum("ij,ij->i", p, rest)
        variance = np.einsum("ij,ij->i", p, (rest - mean[:, None]) ** 2)
        return float(np.sqrt(variance @ self.mass**2)) / float(self.mass.sum())
