"""Maps as SQL expressions and as ONNX models, so that a warehouse or a model server can apply them to its own rows.

A map builds one tree of `recalibrate.expressions`; here are the two writers of such trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from calibrant.data.validation import ROUNDING, SUM_TOLERANCE, fail
from calibrant.recalibrate.expressions import Expression, ScoreExpressions, function, total, within
from calibrant.recalibrate.inputs import Input

#: One text per class.
Names = list[str] | tuple[str, ...]

#: The maps that can be written.
WRITTEN = (
    "Auto, BayesianAverage, BayesianBinning, Beta, CentredIsotonic, Dirichlet, EnsembleTemperature, FeatureMap, "
    "Histogram, Identity, Isotonic, MatrixScaling, OneVsRest, Platt, Quadratic, ScalingBinning, Smoothed, Spline, "
    "StructuredMatrixScaling, StructuredVectorScaling, Temperature, VectorScaling, VennAbers"
)

#: Logits beyond this are infinite.
#: Derived: the largest double, 1.798e308, rounded down.
_LARGEST = 1.7e308
#: How strongly operators bind; what binds no stronger than its surroundings is put in parentheses.
#: Derived: the precedence of arithmetic in SQL.
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "negative": 3}


@dataclass(frozen=True)
class Dialect:
    """What differs between dialects of SQL: the type of double precision, the mark around the name of a column, ..."""

    double: str
    #: SQLite takes the name of a column that does not exist for a text if it is in double quotes.
    quote: str = '"'
    greatest: str = "GREATEST"
    least: str = "LEAST"
    #: Significant digits; if None, up to 17, as many as tell a number from all others; SQLite may then miss a bit.
    digits: int | None = None
    #: The type of text.
    text: str = "VARCHAR"
    #: Whether a backslash in a text escapes what follows.
    escapes: bool = False

    def literal(self, text: str) -> str:
        """A text, quoted."""
        if self.escapes:
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + text.replace("'", "''") + "'"

    def column(self, name: str) -> str:
        """The name of a column, quoted."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def number(self, value: float) -> str:
        """A number of double precision: one without an exponent would be a decimal."""
        text = repr(value) if self.digits is None else f"{value:.{self.digits - 1}e}"
        text = text if "e" in text else f"{text}e0"
        return f"({text})" if text.startswith("-") else text  # two signs would begin a comment

    def written(self, expression: Expression, columns: Sequence[str]) -> str:
        """The expression as SQL, with these texts for the columns."""
        known: dict[int, str] = {}

        def text(node: Expression) -> str:
            if id(node) not in known:
                known[id(node)] = self._text(node, columns, [text(part) for part in node.parts])
            return known[id(node)]

        return text(expression)

    def _text(self, node: Expression, columns: Sequence[str], parts: list[str]) -> str:
        if node.kind == "number":
            return self.number(node.value)
        if node.kind == "column":
            return columns[int(node.value)]
        if node.kind == "cast":
            return f"CAST({parts[0]} AS {self.double})"
        if node.kind in _BINDS:
            return _joined(node, parts)
        if node.kind == "case":
            branches = [f"WHEN {holds} THEN {value}" for holds, value in zip(parts[::2], parts[1::2], strict=False)]
            return f"CASE {' '.join([*branches, *([f'ELSE {parts[-1]}'] if len(parts) % 2 else [])])} END"
        if node.kind == "IN":
            return f"CAST({parts[0]} AS {self.text}) IN ({', '.join(map(self.literal, node.texts))})"
        if node.kind in ("holds", "IS NULL"):
            return parts[0] if node.kind == "holds" else f"{parts[0]} IS NULL"
        if node.kind in ("AND", "<=", ">=", "<", ">"):
            return f" {node.kind} ".join(parts)
        name = {"GREATEST": self.greatest, "LEAST": self.least}.get(node.kind, node.kind)
        return f"{name}({', '.join(parts)})"


def _joined(node: Expression, parts: list[str]) -> str:
    """An operator between its parts, in parentheses where they are needed to keep the order of evaluation."""
    own = _BINDS[node.kind]
    for k, part in enumerate(node.parts):
        binds = _BINDS.get(part.kind, 4)
        if binds < own or (binds == own and (k or own == 3)):
            parts[k] = f"({parts[k]})"
    return f"-{parts[0]}" if node.kind == "negative" else f" {node.kind} ".join(parts)


DIALECTS = {
    "ansi": Dialect("DOUBLE PRECISION"),
    "duckdb": Dialect("DOUBLE"),
    "postgres": Dialect("DOUBLE PRECISION", text="TEXT"),
    "spark": Dialect("DOUBLE", quote="`", text="STRING", escapes=True),
    "sqlite": Dialect("REAL", quote="`", greatest="MAX", least="MIN", digits=18, text="TEXT"),
}


@dataclass(frozen=True)
class FeatureInput:
    """A column beside the scores: its name, and whether it holds text."""

    name: str
    text: bool


class SqlMap:
    """A fitted map that can be written as SQL and as ONNX."""

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
            [0, 1], or a multiclass row that does not sum to 1.

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
        check_is_fitted(self)
        if dialect not in DIALECTS:
            fail(f"dialect must be one of {', '.join(sorted(DIALECTS))}, got {dialect!r}.", ValueError)
        if (column is None) == (expression is None):
            fail("Give either the name of the column or an expression.", TypeError)
        raw = self._raw_columns(column, expression, DIALECTS[dialect])
        columns = [*raw, *(DIALECTS[dialect].column(one.name) for one in self._feature_inputs())]
        texts = [DIALECTS[dialect].written(part, columns) for part in self._guarded(len(raw))]
        return texts[0] if len(raw) == 1 else texts

    def to_onnx(self) -> Any:
        """The map as an ONNX model, which gives what `predict_proba` gives, to rounding.

        Its input `scores`, of double precision, has the shape (n,), or (n, K) for a map that was fitted to K columns.
        Its output `probabilities` has the shape (n, K), the columns in the order of `classes_`; a row is NaN where
        `predict_proba` would refuse the score. The maps that can be written are those of `to_sql`, and a step function
        of many steps is a long graph: a runtime needs seconds to load thousands of steps. A map with features has one
        more input of shape (n,) for each, under its name: text for categories, where an empty text is missing unless it
        is a category itself, else numbers of double precision, where NaN is missing and booleans are 0 and 1.

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
        check_is_fitted(self)
        return onnx_model(self._guarded(self.n_features_in_), self.n_features_in_, self._feature_inputs())

    def _feature_inputs(self) -> list[FeatureInput]:
        """Columns beside the scores, in the order of their numbers."""
        return []

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
            fail(f"{type(self).__name__} of {size} classes needs {needed}; got {len(raw)}.")
        return raw

    def _guarded(self, number: int) -> list[Expression]:
        """The probabilities of all classes, or of the second for one column; missing where a score would be refused."""
        logits, spare = self.input == "logits", ROUNDING if self.clip else 0.0
        low, high = (-_LARGEST, _LARGEST) if logits else (0.0 - spare, 1.0 + spare)
        raw = [Expression("column", value=k) for k in range(number)]
        columns = [function("cast", column) for column in raw]
        accepted = [condition for column in raw for condition in (column >= low, column <= high)]
        if number > 1 and not logits:
            accepted.append(function("ABS", total(columns) - 1.0) <= SUM_TOLERANCE)
        if self.clip and not logits:
            columns = [within(column, 0.0, 1.0) for column in columns]
        made = predicted_expressions(self, ScoreExpressions(tuple(columns), logits=logits))
        result = [Expression("case", (function("AND", *accepted), function("cast", part))) for part in made]
        return result[1:] if number == 1 else result

    def _uniform_share(self) -> float:
        """Weight of the uniform distribution in the Laplace mixture."""
        return min(self.laplace / (self.weight_ + 1), 1.0) if self.laplace else 0.0

    def _expressions(self, scores: ScoreExpressions) -> list[Expression]:
        """The probabilities of all classes, before the Laplace mixture."""
        raise not_sql(self)


def predicted_expressions(inner: SqlMap, scores: ScoreExpressions) -> list[Expression]:
    """Probabilities of a map, its Laplace mixture included."""
    p, share = inner._expressions(scores), inner._uniform_share()
    return [(1 - share) * part + share / len(p) for part in p] if share else p


def not_sql(fitted: Any) -> TypeError:
    """The error of a map that has no expression, with the maps that have one."""
    return TypeError(f"{type(fitted).__name__} cannot be written as SQL; these maps can: {WRITTEN}. Use predict_proba.")


def _listed(name: str, given: str | Names | None) -> list[str]:
    listed = [given] if isinstance(given, str) else list(given or ())
    if not listed or not all(isinstance(text, str) and text for text in listed):
        fail(f"{name} must be a text, or one text per class, got {given!r}.", TypeError)
    return listed


#: The versions of the format and of its operators that are written: of 2021, which servers in use can read.
#: Reference: onnx/onnx, docs/Versioning.md, release 1.10.
_FORMAT, _OPERATORS = 8, 15
#: The operators that read text, and their version.
#: Reference: onnx/onnx, docs/Versioning.md, release 1.10.
_LEARNING, _LEARNING_OPERATORS = "ai.onnx.ml", 2

_NODES = {
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "negative": "Neg",
    "AND": "And",
    "<=": "LessOrEqual",
    ">=": "GreaterOrEqual",
    "<": "Less",
    ">": "Greater",
    "GREATEST": "Max",
    "LEAST": "Min",
    "LN": "Log",
    "EXP": "Exp",
    "ABS": "Abs",
}


def onnx_model(expressions: Sequence[Expression], columns: int, features: Sequence[FeatureInput] = ()) -> Any:
    """The model from `scores`, (n,) or (n, columns), to `probabilities` (n, K); one expression is the second class."""
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        message = "to_onnx needs onnx: pip install 'calibrant[onnx]'."
        raise ImportError(message) from error
    reserved = [one.name for one in features if one.name in ("scores", "probabilities")]
    if reserved:
        fail(f"A feature of an ONNX model cannot be called {reserved[0]!r}: rename it and fit again.", ValueError)
    graph = _Graph(columns, features)
    found = [graph.value(each) for each in expressions]
    if len(found) == 1:
        found = [graph.node("Sub", graph.constant(1.0), found[0]), found[0]]
    graph.stacked(found, "probabilities")
    shape: list[str | int] = ["n"] if columns == 1 else ["n", columns]
    info, kinds = helper.make_tensor_value_info, {False: TensorProto.DOUBLE, True: TensorProto.STRING}
    given = [info("scores", TensorProto.DOUBLE, shape), *(info(one.name, kinds[one.text], ["n"]) for one in features)]
    result = [info("probabilities", TensorProto.DOUBLE, ["n", len(found)])]
    made = helper.make_graph(graph.nodes, "recalibration", given, result, graph.constants)
    operators = [helper.make_opsetid("", _OPERATORS)]
    if any(one.text for one in features):
        operators.append(helper.make_opsetid(_LEARNING, _LEARNING_OPERATORS))
    return helper.make_model(made, producer_name="calibrant", opset_imports=operators, ir_version=_FORMAT)


class _Graph:
    """Nodes and constants, each of them once: expressions repeat their parts, a graph need not."""

    def __init__(self, columns: int, features: Sequence[FeatureInput] = ()) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple[Any, ...], str] = {}
        self._values: dict[int, str] = {}
        self._columns = ["scores"]
        if columns > 1:
            self._columns = [self.node("Gather", "scores", self.constant(k), axis=1) for k in range(columns)]
        self._columns += [one.name for one in features]
        self._texts = {one.name for one in features if one.text}

    def value(self, expression: Expression) -> str:
        """The name of the value of an expression."""
        if id(expression) not in self._values:
            self._values[id(expression)] = self._value(expression)
        return self._values[id(expression)]

    def _value(self, expression: Expression) -> str:
        kind = expression.kind
        if kind == "number":
            return self.constant(expression.value)
        if kind == "column":
            return self._columns[int(expression.value)]
        parts = [self.value(part) for part in expression.parts]
        if kind == "IN":
            return self._is_in(parts[0], expression.texts)
        if kind == "IS NULL":
            return self._is_in(parts[0], ("",)) if parts[0] in self._texts else self.node("IsNaN", parts[0])
        if kind == "holds":
            return self.node("Greater", parts[0], self.constant(0.5))
        if kind == "cast":
            return parts[0]  # all values are of double precision already
        if kind == "case":
            result = parts.pop() if len(parts) % 2 else self.constant(np.nan)  # a missing value is not a number here
            for holds, value in zip(parts[-2::-2], parts[::-2], strict=True):
                result = self.node("Where", holds, value, result)
            return result
        if kind in ("+", "AND"):
            result = parts[0]
            for part in parts[1:]:
                result = self.node(_NODES[kind], result, part)
            return result
        return self.node(_NODES[kind], *parts)

    def _is_in(self, column: str, texts: Sequence[str]) -> str:
        """Whether a column of text holds one of these."""
        ones = (1.0,) * len(texts)
        found = self.node(
            "LabelEncoder", column, domain=_LEARNING, keys_strings=tuple(texts), values_floats=ones, default_float=0.0
        )
        return self.node("Cast", found, to=9)  # a truth value

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The name of the value of an operator."""
        from onnx import helper

        key = (operator, *inputs, *attributes.items())
        if key not in self._known:
            self._known[key] = f"v{len(self._known)}"
            self.nodes.append(helper.make_node(operator, list(inputs), [self._known[key]], **attributes))
        return self._known[key]

    def constant(self, value: float | list[int]) -> str:
        """The name of a number of double precision, or of whole numbers."""
        from onnx import numpy_helper

        array = np.array(value)
        key = ("constant", array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"c{len(self._known)}"
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def stacked(self, values: Sequence[str], name: str) -> None:
        """The values as columns of a named result."""
        from onnx import helper

        columns = [self.node("Unsqueeze", value, self.constant([1])) for value in values]
        self.nodes.append(helper.make_node("Concat", columns, [name], axis=1))
