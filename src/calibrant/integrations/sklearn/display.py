"""Reliability diagrams in the manner of scikit-learn's displays."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant.data.predictions import Binary
from calibrant.data.validation import fail


class ReliabilityDisplay:
    """Reliability diagram in the manner of scikit-learn's displays, as `CalibrationDisplay` is.

    Made by `from_estimator` or `from_predictions`, it keeps what it draws, and `plot` draws it again. It is the diagram
    of `calibrant.plot.reliability_diagram`: the isotonic curve with both bands, dots with intervals, and where the
    scores lie.

    Parameters
    ----------
    data : Binary
    estimator_name : str, optional
        Title of the diagram.
    pos_label : label, optional
        The label whose probability was predicted.

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
        Of the last `plot`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = ReliabilityDisplay.from_predictions(
    ...     ["no", "yes", "yes", "no"], [0.1, 0.8, 0.6, 0.4], pos_label="yes", name="A", ax=Figure().subplots()
    ... )
    >>> display.ax_.get_title(), display.data.y_true.tolist()
    ('A', [0, 1, 1, 0])
    """

    def __init__(self, data: Binary, *, estimator_name: str | None = None, pos_label: Any = None) -> None:
        self.data = data
        self.estimator_name = estimator_name
        self.pos_label = pos_label

    def plot(self, ax: Any = None, *, name: str | None = None, **style: Any) -> Self:
        """Draw the diagram on `ax`, or on new axes; `style` goes to `calibrant.plot.reliability_diagram`."""
        from calibrant.plot import reliability_diagram

        self.ax_ = reliability_diagram(self.data, ax=ax, **style)
        self.figure_ = self.ax_.figure
        title = self.estimator_name if name is None else name
        if title is not None:
            self.ax_.set_title(title)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The diagram of a fitted classifier of two classes, by default for the second of its `classes_`."""
        check_is_fitted(estimator)
        classes = list(estimator.classes_)
        if len(classes) != 2:
            use = "use plot.class_panels"
            fail(f"from_estimator draws classifiers of two classes, got {len(classes)}; {use}.", ValueError)
        label = classes[1] if pos_label is None else pos_label
        if label not in classes:
            fail(f"pos_label must be one of the classes {classes}, got {label!r}.", ValueError)
        if not hasattr(estimator, "predict_proba"):
            fail(f"{type(estimator).__name__} has no predict_proba; wrap it in RecalibratedClassifier.", TypeError)
        p = np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, classes.index(label)]
        title = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, p, sample_weight=sample_weight, pos_label=label, name=title, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """The diagram of predicted probabilities of `pos_label`, by default of the label 1."""
        labels = y_true if pos_label is None else (np.asarray(y_true) == pos_label).astype(np.int8)
        data = Binary(labels, y_prob, weight=sample_weight)
        return cls(data, estimator_name=name, pos_label=pos_label).plot(ax=ax, **style)
