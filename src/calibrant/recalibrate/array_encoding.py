"""Arrays and bytes as JSON: base64 of their bytes, little-endian, with type and shape."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Kinds of numbers that are stored: floats, whole numbers with and without sign, truth values.
KINDS = "fiub"


def encoded_array(array: NDArray[Any]) -> dict[str, Any]:
    """An array of numbers.

    >>> encoded_array(np.array([1, 2], np.int8))
    {'__array__': '|i1', 'shape': [2], 'base64': 'AQI='}
    """
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {"__array__": little.dtype.str, "shape": list(array.shape), "base64": encoded_bytes(little.tobytes())}


def decoded_array(value: dict[str, Any]) -> NDArray[Any]:
    """The array that `encoded_array` wrote.

    >>> decoded_array({"__array__": "|i1", "shape": [2], "base64": "AQI="})
    array([1, 2], dtype=int8)
    """
    kind = np.dtype(value["__array__"])
    if kind.kind not in KINDS:
        message = f"a map holds no arrays of type {kind}"
        raise ValueError(message)
    array = np.frombuffer(decoded_bytes(value["base64"]), kind).reshape(value["shape"])
    return array.astype(kind.newbyteorder("="))


def encoded_bytes(content: bytes) -> str:
    """Any bytes as text."""
    return base64.b64encode(content).decode()


def decoded_bytes(text: str) -> bytes:
    """The bytes that `encoded_bytes` wrote.

    >>> decoded_bytes("dHJlZXM=")
    b'trees'
    """
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        message = "an array is not valid base64"
        raise ValueError(message) from error
