"""Predictions where only some positives are labelled and no row is known to be negative."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data import validation
from calibrant.data.groups import groups
from calibrant.data.predictions import Predictions
from calibrant.data.validation import fail, frozen
from calibrant.numerics.rows import Rows

Scenario = Literal["case-control", "single-sample"]


class PositiveUnlabeled(Predictions):
    """Probabilities of labelled positives and of unlabeled rows, with a known share of positives.

    Parameters
    ----------
    positive, unlabeled : array-like in [0, 1]
        Predicted probabilities of labelled positives, and of unlabeled rows. The positives must be labelled without
        regard to their score (selected completely at random).
    prior : float in (0, 1)
        The share of positives in the population; see `calibrant.pu.estimate_prior`.
    scenario : {"case-control", "single-sample"}
        Case-control: two samples; the unlabeled rows are drawn from the whole population. Single-sample: one sample
        from the population, of which some positives were labelled, and `unlabeled` are its other rows. The attribute
        `unlabeled` then holds the whole sample, including the labelled rows.
    label_frequency : float in (0, 1]
        Single-sample only, instead of `prior`: the share of positives that were labelled.
    weight, group : array-like, optional
        Row weights and cluster ids: those of the positives, then those of `unlabeled`.
    clip : bool
        As for `Binary`.

    Examples
    --------
    >>> PositiveUnlabeled([0.8, 0.9], [0.1, 0.4, 0.8], prior=0.4)
    <PositiveUnlabeled, n=5>
    >>> data = PositiveUnlabeled([0.8], [0.1, 0.4, 0.8], label_frequency=0.5, scenario="single-sample")
    >>> data.prior, data.unlabeled
    (0.5, array([0.8, 0.1, 0.4, 0.8]))
    """

    def __init__(
        self,
        positive: ArrayLike,
        unlabeled: ArrayLike,
        *,
        prior: float | None = None,
        scenario: Scenario = "case-control",
        label_frequency: float | None = None,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        clip: bool = False,
    ) -> None:
        if scenario not in get_args(Scenario):
            fail(f"scenario must be 'case-control' or 'single-sample', got {scenario!r}.")
        self.scenario, self.nested = scenario, scenario == "single-sample"
        self.positive = validation.probabilities("positive", positive, clip=clip)
        self.unlabeled = validation.probabilities("unlabeled", unlabeled, clip=clip)
        if self.nested:
            self.unlabeled = np.concatenate([self.positive, self.unlabeled])
        self._attach(weight, group)
        if self.weight is not None and not (self.positive_weight.any() and self.unlabeled_weight.any()):
            fail("weight must not be all zero on the positives or on the unlabeled rows.")
        self.prior = self._share_of_positives(prior, label_frequency)
        self.label_frequency = None if label_frequency is None else float(label_frequency)
        self.positive, self.unlabeled = frozen(self.positive), frozen(self.unlabeled)
        self._freeze()

    @classmethod
    def from_labels(
        cls,
        labelled: ArrayLike,
        y_prob: ArrayLike,
        *,
        scenario: Scenario,
        prior: float | None = None,
        label_frequency: float | None = None,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        clip: bool = False,
    ) -> PositiveUnlabeled:
        """The same from one column of scores, and one that says which rows are labelled: 1 and 0, 1 and -1, or bool.

        >>> PositiveUnlabeled.from_labels([1, -1, -1], [0.8, 0.1, 0.4], scenario="case-control", prior=0.3)
        <PositiveUnlabeled, n=3>
        """
        index = validation.require_aligned(labelled=labelled, y_prob=y_prob, weight=weight, group=group)
        p = validation.probabilities("y_prob", y_prob, clip=clip)
        mark = validation.column("labelled", labelled, length=len(p))
        validation.require("labelled", mark, np.isin(mark, (1, 0, -1)), "must be 1 (positive) or 0 or -1")
        known = mark == 1
        if known.all() or not known.any():
            fail(f"labelled must mark some rows and leave some, but it marks {int(known.sum())} of {len(p)}.")
        order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
        weights, unit = validation.weights_and_unit("weight", weight, length=len(p))
        clusters = None if group is None else groups("group", group, length=len(p))
        about: dict[str, Any] = {"prior": prior, "scenario": scenario, "label_frequency": label_frequency}
        about["weight"] = None if weights is None else weights[order]
        about["group"] = None if clusters is None else clusters[order]
        made = cls(p[known], p[~known], **about)
        made._index, made._weight_unit = None if index is None else index[order], unit
        return made

    def __len__(self) -> int:
        return len(self.unlabeled) if self.nested else len(self.positive) + len(self.unlabeled)

    def take(self, rows: NDArray[Any]) -> PositiveUnlabeled:
        """The given rows, by number or mask, numbered as the weights are: the positives, then the other rows.

        The prior stays (or the label frequency, where that was given): they must be a random part of the rows.
        """
        number = np.arange(len(self))[rows]
        split = len(self.positive)
        first, rest = number[number < split], number[number >= split]
        if len(first) == 0 or len(rest) == 0:
            fail(f"take needs positives and unlabeled rows, got {len(first)} and {len(rest)} of them.")
        order = np.concatenate([first, rest])
        about: dict[str, Any] = {"scenario": self.scenario, "label_frequency": self.label_frequency}
        about["prior"] = None if self.label_frequency is not None else self.prior
        about["weight"] = None if self.weight is None else self.weight[order]
        about["group"] = None if self.group is None else self.group[order]
        some = PositiveUnlabeled(self.positive[first], self.unlabeled[rest if self.nested else rest - split], **about)
        some._index = None if self._index is None else self._index[order]
        some._weight_unit = self._weight_unit
        return some

    @property
    def positive_weight(self) -> Any:
        """Weights of the positives, or None."""
        return None if self.weight is None else self.weight[: len(self.positive)]

    @property
    def unlabeled_weight(self) -> Any:
        """Weights of the sample of the population, or None."""
        return None if self.weight is None else self.weight[len(self) - len(self.unlabeled) :]

    def rows(self) -> Rows:
        """Refused: no row has both a weight in the population and an outcome. Tables are made from `parts`."""
        fail(
            "Positive-unlabeled rows have no outcome each, so this function cannot use them. These can: ece, mce, "
            "label_binned_ece, debiased_ece, sweep_ece, ks_error, variational_error, kernel_error, brier, log_loss, "
            "auc, and what calibrant.pu holds."
        )

    def parts(self) -> tuple[Rows, Rows]:
        """The sample of the population (weights and predictions), and the positives (outcomes)."""
        p, q = self.unlabeled, self.positive
        ones, more = (np.broadcast_to(np.int8(1), some.shape) for some in (p, q))
        population = Rows(p, p, ones, self.unlabeled_weight, "population")
        return population, Rows(q, q, more, self.positive_weight, "positives", not self.nested)

    def _share_of_positives(self, prior: float | None, label_frequency: float | None) -> float:
        if (prior is None) == (label_frequency is None):
            fail("Give the prior, or for a single sample either the prior or the label_frequency.")
        if prior is not None:
            return validation.fraction("prior", prior)
        if not self.nested or label_frequency is None:
            fail("label_frequency has a meaning only with scenario='single-sample'; give the prior.")
        if not 0 < label_frequency <= 1:
            fail(f"label_frequency must lie in (0, 1], got {label_frequency!r}.")
        share = len(self.positive) / len(self.unlabeled)
        if self.weight is not None:
            share = float(self.positive_weight.sum()) / float(self.unlabeled_weight.sum())
        if share >= label_frequency:
            fail(
                f"label_frequency is {label_frequency:g}, but {share:g} of all rows are labelled: more than all rows "
                "would be positive."
            )
        return share / label_frequency
