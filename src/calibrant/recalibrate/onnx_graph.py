"""Maps as ONNX graphs, so that a model server can apply them.

The SQL expression of a map is its one description outside Python. A graph is that expression, read back: what `to_sql`
is tested for holds of the graph too, and a map that can be written as SQL needs nothing more to become a graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

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
    """Recursive descent through one expression, of the grammar that `sql_dialects` writes."""

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
