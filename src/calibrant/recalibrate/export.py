"""Maps as SQL expressions and as ONNX models, so that a warehouse or a model server can apply them to its own rows.

The SQL expression of a map is its one description outside Python. A graph is that expression, read back: what `to_sql`
is tested for holds of the graph too, and a map that can be written as SQL needs nothing more to become a graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from calibrant.data.validation import ROUNDING, SUM_TOLERANCE, InvalidPredictions
from calibrant.recalibrate.inputs import Input
from calibrant.recalibrate.sql_expressions import DIALECTS, Dialect, SqlScores, require_short, total

#: One text per class.
Names = list[str] | tuple[str, ...]

#: The maps that can be written.
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
    "OneVsRest",
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


#: The versions of the format and of its operators that are written: of 2021, which servers in use can read.
_FORMAT, _OPERATORS = 8, 15

_TOKEN = re.compile(r"\s*(\d[\d.]*(?:e[+-]?\d+)?|[A-Za-z_]\w*|<=|>=|[-+*/(),<>])")
_SUMS = {"+": "Add", "-": "Sub"}
_PRODUCTS = {"*": "Mul", "/": "Div"}
_COMPARISONS = {"<=": "LessOrEqual", ">=": "GreaterOrEqual", "<": "Less", ">": "Greater"}
_FUNCTIONS = {"GREATEST": "Max", "LEAST": "Min", "LN": "Log", "EXP": "Exp", "ABS": "Abs"}


def onnx_model(expressions: Sequence[str], columns: Sequence[str]) -> Any:
    """The model that has the values of SQL expressions as its columns.

    Parameters
    ----------
    expressions : sequence of str
        In the dialect "ansi"; one stands for the second of two classes.
    columns : sequence of str
        What the columns of scores are called in them.

    Returns
    -------
    onnx.ModelProto
        From `scores` (n,), or (n, K) for several columns, to `probabilities` (n, K), in double precision.
    """
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        message = "to_onnx needs onnx: pip install 'calibrant[onnx]'."
        raise ImportError(message) from error
    graph = _Graph(columns)
    found = [_Reader(text, graph).value() for text in expressions]
    if len(found) == 1:
        found = [graph.node("Sub", graph.number(1.0), found[0]), found[0]]
    graph.stacked(found, "probabilities")
    shape: list[str | int] = ["n"] if len(columns) == 1 else ["n", len(columns)]
    made = helper.make_graph(
        graph.nodes,
        "recalibration",
        [helper.make_tensor_value_info("scores", TensorProto.DOUBLE, shape)],
        [helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n", len(found)])],
        graph.constants,
    )
    operators = [helper.make_opsetid("", _OPERATORS)]
    return helper.make_model(made, producer_name="calibrant", opset_imports=operators, ir_version=_FORMAT)


class _Graph:
    """Nodes and constants, each of them once: expressions repeat their parts, a graph need not."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple[Any, ...], str] = {}
        self.columns = {columns[0]: "scores"}
        if len(columns) > 1:
            self.columns = {
                name: self.node("Gather", "scores", self._constant(np.array(k)), axis=1)
                for k, name in enumerate(columns)
            }

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of the value of an operator."""
        from onnx import helper

        key = (operator, *inputs, *attributes.items())
        if key not in self._known:
            self._known[key] = f"v{len(self._known)}"
            self.nodes.append(helper.make_node(operator, list(inputs), [self._known[key]], **attributes))
        return self._known[key]

    def number(self, value: float) -> str:
        """The name of a number of double precision."""
        return self._constant(np.array(value, dtype=np.float64))

    def stacked(self, values: Sequence[str], name: str) -> None:
        """The values as columns of a named result."""
        from onnx import helper

        axis = self._constant(np.array([1]))
        columns = [self.node("Unsqueeze", value, axis) for value in values]
        self.nodes.append(helper.make_node("Concat", columns, [name], axis=1))

    def _constant(self, value: Any) -> str:
        from onnx import numpy_helper

        key = ("constant", value.dtype.str, value.shape, value.tobytes())
        if key not in self._known:
            self._known[key] = f"c{len(self._known)}"
            self.constants.append(numpy_helper.from_array(value, self._known[key]))
        return self._known[key]


class _Reader:
    """Recursive descent through one expression, of the grammar that `sql_expressions` writes."""

    def __init__(self, text: str, graph: _Graph) -> None:
        self.graph, self._tokens = graph, _tokens(text)
        self._next = next(self._tokens)

    def value(self) -> str:
        """A sum."""
        return self._chain(_SUMS, self._product)

    def _product(self) -> str:
        return self._chain(_PRODUCTS, self._factor)

    def _chain(self, operators: dict[str, str], part: Any) -> str:
        """Parts between operators of the same rank, from left to right."""
        found: str = part()
        while self._next in operators:
            operator = operators[self._take()]
            found = self.graph.node(operator, found, part())
        return found

    def _factor(self) -> str:
        token = self._take()
        if token == "-":
            return self.graph.node("Neg", self._factor())
        if token[0].isdigit():
            return self.graph.number(float(token))
        if token == "(":
            return self._closed(self.value())
        if token == "CASE":
            return self._case()
        if token == "CAST":
            return self._cast()
        if token in _FUNCTIONS:
            return self._function(token)
        if token not in self.graph.columns:
            raise _unreadable(token)
        return self.graph.columns[token]

    def _case(self) -> str:
        """Branches; without ELSE the value is missing where none holds, which is not a number here."""
        if self._next == "WHEN":
            self._take("WHEN")
            holds = self._condition()
            self._take("THEN")
            value = self.value()
            return self.graph.node("Where", holds, value, self._case())
        if self._take() == "END":
            return self.graph.number(np.nan)
        value = self.value()
        self._take("END")
        return value

    def _condition(self) -> str:
        found = self._comparison()
        while self._next == "AND":
            self._take()
            found = self.graph.node("And", found, self._comparison())
        return found

    def _comparison(self) -> str:
        left = self.value()
        return self.graph.node(_COMPARISONS[self._take()], left, self.value())

    def _cast(self) -> str:
        """All values are of double precision already."""
        self._take("(")
        value = self.value()
        for word in ("AS", "DOUBLE", "PRECISION"):
            self._take(word)
        return self._closed(value)

    def _function(self, name: str) -> str:
        self._take("(")
        arguments = [self.value()]
        while self._next == ",":
            self._take()
            arguments.append(self.value())
        return self._closed(self.graph.node(_FUNCTIONS[name], *arguments))

    def _closed(self, value: str) -> str:
        self._take(")")
        return value

    def _take(self, expected: str | None = None) -> str:
        token = self._next
        if expected is not None and token != expected:
            raise _unreadable(token)
        self._next = next(self._tokens, "")
        return token


def _tokens(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise _unreadable(text[place : place + 20])
        place = found.end()
        yield found[1]


def _unreadable(text: str) -> ValueError:
    """The error of a text that is not of the grammar: none that a map writes has it."""
    return ValueError(f"{text!r} cannot be read in an expression of SQL.")
