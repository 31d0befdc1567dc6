"""Maps as JSON files; loading one executes nothing it names.

Classes are looked up by name among the public ones of two packages, never imported from the file; arrays are base64
of their bytes, little-endian, with type and shape. Whatever is wrong with a file is an `InvalidFile`.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from calibrant._atomic_write import replacing
from calibrant._version import __version__
from calibrant.data.saved_files import InvalidFile, layout_version, parsed_json, reading_back
from calibrant.data.validation import fail
from calibrant.table.binning import Edges, EqualMass, EqualWidth

#: What the files call themselves, and the versions of their layout this release reads; it writes the last one.
#: Version 1 had other names of some parameters; 1 and 2 kept the trees of boosted maps in files of their own.
#: Derived: the layouts that were ever written.
FORMAT, READABLE = "calibrant-map", (1, 2, 3)

_OPTIONS: dict[str, type] = {"EqualMass": EqualMass, "EqualWidth": EqualWidth, "Edges": Edges}
#: Packages whose classes a file may name; nothing else is ever looked up.
_ROOMS = ("recalibrate", "pu")
#: Parameters and fields that files of layout version 1 call by other names, per class.
_RENAMED = {"EqualMass": {"n": "n_bins"}, "EqualWidth": {"n": "n_bins"}, "PerGroup": {"least": "min_rows"}}
_CLASSES: dict[str, type] = {}

Class = TypeVar("Class", bound=type)


def register(cls: Class) -> Class:
    """Make `load` find a map of your own (a decorator); it finds those of this package already."""
    _CLASSES[cls.__name__] = cls
    return cls


class Stored:
    """A scikit-learn estimator that can be saved: its parameters and attributes that end in an underscore."""

    #: Fitted attributes that may hold infinite numbers; NaN is never right.
    _may_be_infinite: ClassVar[frozenset[str]] = frozenset()
    #: Whether a loaded map can be tried at once; a network first needs its weights.
    _can_be_tried: ClassVar[bool] = True

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map to one JSON file, atomically; `calibrant.recalibrate.load` reads it."""
        check_is_fitted(self)
        body = encode(self)
        document = {"format": FORMAT, "version": READABLE[-1], "calibrant": __version__}
        document |= {"checksum": _checksum(body), "map": body}
        with replacing(path) as place:
            place.write_bytes(json.dumps(document, indent=1, allow_nan=False).encode())

    def _params(self) -> dict[str, Any]:
        """The parameters to be saved."""
        return self.get_params(deep=False)  # type: ignore[attr-defined]

    def _fitted(self) -> dict[str, Any]:
        """The fitted attributes."""
        return {name: value for name, value in vars(self).items() if _is_fitted_name(name)}

    def _state(self) -> dict[str, Any]:
        """The fitted attributes in types that can be saved; `_restore` takes them back."""
        return self._fitted()

    def _restore(self, state: dict[str, Any]) -> Self:
        for name in state:
            if not _is_fitted_name(name):
                fail(f"{name!r} is not the name of a fitted attribute", ValueError)
        vars(self).update(state)
        return self

    def _use_weights(self, model_path: str | None, *, download: bool) -> None:
        """Where the weights of a network come from, as the caller of `load` says; most maps have none."""

    def _check_restored(self) -> None:
        """Raise unless the fitted attributes are what a fit can give."""
        for name, value in self._fitted().items():
            _require_finite(value, name, infinite=name in self._may_be_infinite)

    def _try(self) -> None:
        """Raise unless the map gives valid results for a few inputs."""


def load(path: str | os.PathLike[str], *, model_path: str | None = None, download: bool = False) -> Any:
    """Read a map that was written by `save`.

    Nothing that the file names is imported, read or downloaded. Every number is checked to be finite, and the map is
    tried on a few scores, so that what loads also predicts.

    Parameters
    ----------
    path : path
    model_path : str, optional
        Weights of the network, for the maps of foundation models (`TabICL`, `TabPFN`). A map never says itself where
        they are: files of weights can execute code. If None, the cache of the library is searched.
    download : bool
        Whether the library of a foundation model may download its weights.

    Raises
    ------
    InvalidFile
        The file is damaged, is not a map, comes from a newer release, or holds what no fit can give.

    Examples
    --------
    >>> import tempfile, calibrant as cal
    >>> platt = cal.recalibrate.Platt().fit([0.2, 0.4, 0.6, 0.7], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     platt.save(f"{folder}/map.json")
    ...     cal.recalibrate.load(f"{folder}/map.json")
    Platt()
    """
    source = Path(path)
    document = parsed_json(source.read_bytes(), source, "a map written by save()")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        fail(f"{source} is not a map written by save(): its format is not {FORMAT!r}.", InvalidFile)
    version = layout_version(document.get("version"), READABLE, source, document.get("calibrant"))
    body = _undamaged(source, document, version)
    with reading_back(source, "a valid map"):
        loaded = decode(_with_current_names(body) if version == 1 else body)
        _check(loaded, model_path, download=download)
    return loaded


def _check(loaded: Any, model_path: str | None, *, download: bool) -> None:
    if not isinstance(loaded, Stored):
        fail(f"it holds a {type(loaded).__name__}, not a map", TypeError)
    parts = list(_maps_within(loaded))
    for part in parts:
        part._use_weights(model_path, download=download)
        if part is loaded or part._fitted():  # an inner map may be a template that was never fitted
            part._check_restored()
    if all(part._can_be_tried for part in parts):
        with np.errstate(all="ignore"):
            loaded._try()


def _maps_within(value: Any) -> Iterator[Stored]:
    """A map and all maps in its parameters and attributes."""
    if isinstance(value, Stored):
        yield value
        value = vars(value)
    if isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _maps_within(item)


def _undamaged(source: Path, document: dict[str, Any], version: int) -> Any:
    """The map's part of the document, if it matches its checksum."""
    body = document.get("map")
    files = {} if version == 3 else document.get("beside" if version == 1 else "files")
    if document.get("checksum") != _checksum(body if version == 3 else [body, files]):
        fail(f"{source} is damaged: its contents do not match their checksum.", InvalidFile)
    if files:
        message = f"{source} keeps its trees in other files, which this release does not read: fit and save it again."
        raise InvalidFile(message)
    return body


def encode(value: Any) -> Any:
    """`value` in types JSON has; maps, options, arrays, bytes and tuples become small tagged objects."""
    if isinstance(value, Stored):
        package, *rest = type(value).__module__.split(".")
        room = rest[0] if package == "calibrant" and rest[0] in _ROOMS else None  # of one that was registered
        name = {"__map__": type(value).__name__, "room": room}
        return name | {"params": encode(value._params()), "state": encode(value._state())}
    if dataclasses.is_dataclass(value) and type(value).__name__ in _OPTIONS:
        fields = {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"__option__": type(value).__name__, "fields": fields}
    if isinstance(value, np.ndarray):
        if value.dtype.kind in KINDS:
            return encoded_array(value)
        items = [encode(item) for item in value.tolist()]
        return {"__array__": "list", "text": value.dtype.kind == "U", "items": items}
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, bytes):
        return {"__bytes__": encoded_bytes(value)}
    if isinstance(value, tuple):
        return {"__tuple__": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    message = f"A {type(value).__name__} cannot be saved as JSON."
    raise TypeError(message)


def decode(value: Any) -> Any:
    """The value that `encode` wrote."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "__map__" in value:
        loaded = _known_class(value["__map__"], value.get("room"))(**decode(value["params"]))
        return loaded._restore(decode(value["state"]))
    if "__option__" in value:
        if value["__option__"] not in _OPTIONS:
            fail(f"This release ({__version__}) has no option called {value['__option__']!r}.", ValueError)
        return _OPTIONS[value["__option__"]](**decode(value["fields"]))
    if "__array__" in value:
        if value["__array__"] != "list":
            return decoded_array(value)
        return np.array([decode(item) for item in value["items"]], dtype=str if value["text"] else object)
    if "__bytes__" in value:
        return decoded_bytes(value["__bytes__"])
    if "__tuple__" in value:
        return tuple(decode(item) for item in value["__tuple__"])
    if "__float__" in value:
        return float(value["__float__"])
    return {key: decode(item) for key, item in value.items()}


def _require_finite(value: Any, name: str, *, infinite: bool) -> None:
    """Refuse NaN, and infinite numbers where they are not expected, also within lists and dictionaries."""
    if isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _require_finite(item, f"{name}[{key!r}]", infinite=infinite)
    elif isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        wrong = np.isnan(value) if infinite else ~np.isfinite(value)
        if np.any(wrong):
            fail(f"{name} holds {'NaN' if infinite else 'numbers that are not finite'}", ValueError)


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name.isidentifier()


def _known_class(name: str, room: str | None) -> type:
    """The class a file names; without a room, a registered one, or one of any room."""
    found = _CLASSES.get(name) if room is None else None
    for known in _ROOMS:
        if found is None and room in (None, known):
            module = import_module(f"calibrant.{known}")
            found = getattr(module, name) if name in dir(module) else None
    if not (isinstance(found, type) and issubclass(found, Stored)):
        fail(f"This release ({__version__}) has no map called {name!r}: fit and save one that it has.", ValueError)
    return found


def _with_current_names(value: Any) -> Any:
    """The contents of a file of layout version 1, with parameters and fields under the names they have now."""
    if isinstance(value, list):
        return [_with_current_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: _with_current_names(item) for key, item in value.items()}
    new = _RENAMED.get(value.get("__map__") or value.get("__option__") or "", {})
    for part in ("params", "fields"):
        if part in result:
            result[part] = {new.get(key, key): item for key, item in result[part].items()}
    return result


def _checksum(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


#: Kinds of numbers that are stored: floats, whole numbers with and without sign, truth values.
KINDS = "fiub"


def encoded_array(array: NDArray[Any]) -> dict[str, Any]:
    """An array of numbers."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {"__array__": little.dtype.str, "shape": list(array.shape), "base64": encoded_bytes(little.tobytes())}


def decoded_array(value: dict[str, Any]) -> NDArray[Any]:
    """The array that `encoded_array` wrote."""
    kind = np.dtype(value["__array__"])
    if kind.kind not in KINDS:
        fail(f"a map holds no arrays of type {kind}", ValueError)
    array = np.frombuffer(decoded_bytes(value["base64"]), kind).reshape(value["shape"])
    return array.astype(kind.newbyteorder("="))


def encoded_bytes(content: bytes) -> str:
    """Any bytes as text."""
    return base64.b64encode(content).decode()


def decoded_bytes(text: str) -> bytes:
    """The bytes that `encoded_bytes` wrote."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        message = "an array is not valid base64"
        raise ValueError(message) from error
