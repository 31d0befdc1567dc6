"""Maps as SQL expressions and ONNX models, so that a warehouse or a model server can apply them to its own rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from numpy.typing import NDArray

from calibrant.data.class_probabilities import SUM_TOLERANCE
from calibrant.data.validation import ROUNDING, InvalidPredictions
from calibrant.recalibrate.inputs import Input
from calibrant.recalibrate.sql_dialects import DIALECTS, Dialect, require_short, total
from calibrant.recalibrate.sql_scores import SqlScores

#: One text per class.
Names = list[str] | tuple[str, ...]

#: The maps that can be written; `Partition` for two classes.
WRITTEN = (
    "Auto",
    "BayesianAverage",
    "BayesianBinning",
    "Beta",
    "CentredIsotonic",
    "Dirichlet",
    "EnsembleTemperature",
    "Histogram",
    "Identity",
    "Isotonic",
    "MatrixScaling",
    "NadarayaWatson",
    "OneVsRest",
    "Partition",
    "Platt",
    "Quadratic",
    "ScalingBinning",
    "Smoothed",
    "Spline",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "Temperature",
    "VectorScaling",
    "VennAbers",
)

#: Logits beyond this are infinite.
_LARGEST = 1.7e308


class SqlMap:
    """A fitted map that can be written as SQL, and by way of it as ONNX.

    `_sql` is to `to_sql` what `_predict` is to `predict_proba`.
    """

    input: Input
    laplace: float
    clip: bool
    classes_: NDArray[Any]
    n_features_in_: int
    weight_: float

    @overload
    def to_sql(self, column: str, *, dialect: str = ...) -> str: ...

    @overload
    def to_sql(self, column: Names, *, dialect: str = ...) -> list[str]: ...

    @overload
    def to_sql(self, *, expression: str, dialect: str = ...) -> str: ...

    @overload
    def to_sql(self, *, expression: Names, dialect: str = ...) -> list[str]: ...

    def to_sql(
        self,
        column: str | Names | None = None,
        *,
        expression: str | Names | None = None,
        dialect: str = "duckdb",
    ) -> str | list[str]:
        """The map as an SQL expression, which gives what `predict_proba` gives, to rounding.

        Parameters
        ----------
        column : str, or sequence of str
            The column of scores, whose name is quoted; or one column per class, in the order of `classes_` (those named
            after the classes in any order).
        expression : str, or sequence of str
            SQL in place of names of columns, e.g. ``"t.score / 100"``. It is written verbatim, many times: never build
            it from untrusted text, and put what is expensive or random into a subquery.
        dialect : {"duckdb", "sqlite", "spark", "postgres", "ansi"}
            SQLite needs its mathematical functions (since 3.35; part of Python's builds) for maps that are not made
            of steps or lines.

        Returns
        -------
        str, or list of str
            The probability of the second class (the event), for one column; one expression per class for several.
            It is NULL where the score is, and where `predict_proba` would refuse it: not a number, infinite, outside
            [0, 1], or a row of several classes that does not sum to 1.

        Raises
        ------
        TypeError
            The map cannot be written as SQL.

        Examples
        --------
        >>> import calibrant as cal
        >>> isotonic = cal.recalibrate.Isotonic().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
        >>> import duckdb
        >>> rows = duckdb.sql("SELECT unnest([0.0, 0.15, 0.4, NULL]) AS p")
        >>> rows.select(isotonic.to_sql("p")).fetchall()
        [(0.25,), (0.375,), (0.75,), (None,)]
        >>> cal.recalibrate.Histogram(bins=cal.EqualWidth(2)).fit([0.2, 0.7], [0, 1]).to_sql("p", dialect="sqlite")
        ... # doctest: +ELLIPSIS
        'CASE WHEN `p` >= 0... AND `p` <= 1... THEN CAST(CASE WHEN CAST(`p` AS REAL) <= 5.0... END AS REAL) END'
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if dialect not in DIALECTS:
            message = f"dialect must be one of {', '.join(sorted(DIALECTS))}, got {dialect!r}."
            raise ValueError(message)
        if (column is None) == (expression is None):
            message = "Give either the name of the column or an expression."
            raise TypeError(message)
        written = DIALECTS[dialect]
        raw = self._raw_columns(column, expression, written)
        guard = _guard(raw, written, logits=self.input == "logits", clip=self.clip)
        made = self._mixed_sql(self._sql(self._sql_scores(raw, written)), written)
        require_short(sum(map(len, made)))
        result = [f"CASE WHEN {guard} THEN {written.as_double(part)} END" for part in made]
        return result[1] if len(raw) == 1 else result

    def to_onnx(self) -> Any:
        """The map as an ONNX model, which gives what `predict_proba` gives, to rounding.

        Its input `scores`, of double precision, has the shape (n,), or (n, K) for a map that was fitted to K columns.
        Its output `probabilities` has the shape (n, K), the columns in the order of `classes_`; a row is NaN where
        `predict_proba` would refuse the score. The maps that can be written are those of `to_sql`, and a step function
        of many steps is as long a graph as it is an expression: a runtime needs seconds to load thousands of steps, and
        for `NadarayaWatson` fitted to logits most of a minute.

        Returns
        -------
        onnx.ModelProto
            `onnx.save(model, "map.onnx")` writes a file.

        Raises
        ------
        ImportError
            The package onnx is missing.
        TypeError
            The map cannot be written.
        """
        from sklearn.utils.validation import check_is_fitted

        from calibrant.recalibrate.onnx_graph import onnx_model

        check_is_fitted(self)
        names = [f"s{k}" for k in range(self.n_features_in_)]
        if len(names) == 1:
            return onnx_model([self.to_sql(expression=names[0], dialect="ansi")], names)
        return onnx_model(self.to_sql(expression=names, dialect="ansi"), names)

    def _raw_columns(self, column: str | Names | None, expression: str | Names | None, dialect: Dialect) -> list[str]:
        """The SQL of the columns, one or one per class."""
        if expression is not None:
            raw = [f"({text})" for text in _listed("expression", expression)]
        else:
            names, labels = _listed("column", column), [str(label) for label in self.classes_]
            raw = [dialect.column(name) for name in (labels if sorted(names) == sorted(labels) else names)]
        size = len(self.classes_)
        if len(raw) != size and (size > 2 or len(raw) != 1):
            needed = f"{size} columns, one per class" if size > 2 else "one column, or two"
            message = f"{type(self).__name__} of {size} classes needs {needed}; got {len(raw)}."
            raise InvalidPredictions(message)
        return raw

    def _sql_scores(self, raw: Sequence[str], dialect: Dialect) -> SqlScores:
        columns = [dialect.as_double(part) for part in raw]
        if self.clip and self.input != "logits":
            columns = [dialect.within(part, 0.0, 1.0) for part in columns]
        return SqlScores(tuple(columns), logits=self.input == "logits", dialect=dialect)

    def _mixed_sql(self, p: Sequence[str], dialect: Dialect) -> list[str]:
        """The Laplace mixture of predicted probabilities."""
        share = self._uniform_share()
        if not share:
            return list(p)
        return [f"({dialect.number(1 - share)} * {part} + {dialect.number(share / len(p))})" for part in p]

    def _uniform_share(self) -> float:
        """Weight of the uniform distribution in the Laplace mixture."""
        return min(self.laplace / (self.weight_ + 1), 1.0) if self.laplace else 0.0

    def _sql(self, scores: SqlScores) -> list[str]:
        """The probabilities of all classes, before the Laplace mixture."""
        raise not_sql(self)


def predicted_sql(inner: SqlMap, scores: SqlScores) -> list[str]:
    """Probabilities of a map inside another, its Laplace mixture included."""
    return inner._mixed_sql(inner._sql(scores), scores.dialect)


def not_sql(fitted: Any) -> TypeError:
    """The error of a map that has no expression, with the maps that have one."""
    return TypeError(
        f"{type(fitted).__name__} cannot be written as SQL; these maps can: {', '.join(WRITTEN)}. Use predict_proba."
    )


def _listed(name: str, given: str | Names | None) -> list[str]:
    listed = [given] if isinstance(given, str) else list(given or ())
    if not listed or not all(isinstance(text, str) and text for text in listed):
        message = f"{name} must be a text, or one text per class, got {given!r}."
        raise TypeError(message)
    return listed


def _guard(raw: Sequence[str], dialect: Dialect, *, logits: bool, clip: bool) -> str:
    """The condition that `predict_proba` would accept the row."""
    spare = ROUNDING if clip else 0.0
    low, high = (-_LARGEST, _LARGEST) if logits else (-spare if clip else 0.0, 1 + spare)
    conditions = [f"{part} >= {dialect.number(low)} AND {part} <= {dialect.number(high)}" for part in raw]
    if len(raw) > 1 and not logits:
        gap = f"{total(map(dialect.as_double, raw))} - {dialect.number(1)}"
        conditions.append(f"ABS({gap}) <= {dialect.number(SUM_TOLERANCE)}")
    return " AND ".join(conditions)
