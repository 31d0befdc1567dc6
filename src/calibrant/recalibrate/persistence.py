"""Maps as JSON files: readable, checked, written whole or not at all; loading one executes nothing.

A file holds the name of a class and of the package it belongs to, its parameters and its fitted attributes. Classes
are looked up by name among the public ones of two packages, never imported from the file; arrays are base64 of
their bytes.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
import math
import os
from importlib import import_module
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from calibrant._atomic_write import replacing
from calibrant._version import __version__
from calibrant.table.binning import Edges, EqualMass, EqualWidth

#: What the files call themselves, and the newest version of their layout this release can read.
FORMAT, VERSION = "calibrant-map", 2

_ARRAY_KINDS = "fiub"
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
    """A scikit-learn estimator that can be saved: its parameters and the attributes that end in an underscore.

    A subclass that keeps other things overrides `_state` and `_restore`; one that must write a foreign format
    (trees) overrides `_write_files` and `_read_files`.
    """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted map to a JSON file, whole or not at all; `calibrant.recalibrate.load` reads it."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        target = Path(path)
        body = encode(self)
        files = {file.name: _sha256(file.read_bytes()) for file in self._write_files(target)}
        document = {
            "format": FORMAT,
            "version": VERSION,
            "calibrant": __version__,
            "checksum": _sha256(_canonical([body, files])),
            "files": files,
            "map": body,
        }
        with replacing(target) as place:
            place.write_bytes(json.dumps(document, indent=1, allow_nan=False).encode())

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}

    def _restore(self, state: dict[str, Any]) -> Self:
        vars(self).update(state)
        return self

    def _write_files(self, path: Path) -> list[Path]:
        """Write what does not fit into JSON to files in the folder of `path`, and name them."""
        return []

    def _read_files(self, path: Path) -> None:
        """Read the files of `_write_files` back."""


def load(path: str | os.PathLike[str]) -> Any:
    """Read a map that was written by `save`.

    A file that is damaged, is not a map, or comes from a newer release is a `ValueError` that says so.

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
    try:
        document = json.loads(source.read_bytes())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        message = f"{source} is not a map written by save(), or is damaged: it does not hold JSON ({error})."
        raise ValueError(message) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        message = f"{source} is not a map written by save(): its format is not {FORMAT!r}."
        raise ValueError(message)
    version = document.get("version")
    if not isinstance(version, int) or version > VERSION:
        message = (
            f"{source} has layout version {version!r}, written by calibrant {document.get('calibrant')}; this release "
            f"({__version__}) reads versions up to {VERSION}. Upgrade calibrant."
        )
        raise ValueError(message)
    _require_undamaged(source, document)
    loaded = decode(_with_current_names(document["map"]) if version == 1 else document["map"])
    loaded._read_files(source)
    return loaded


def _require_undamaged(source: Path, document: dict[str, Any]) -> None:
    body, files = document.get("map"), document.get("beside" if document["version"] == 1 else "files")
    if not isinstance(files, dict) or document.get("checksum") != _sha256(_canonical([body, files])):
        message = f"{source} is damaged: its contents do not match their checksum."
        raise ValueError(message)
    for name, checksum in files.items():
        file = source.parent / Path(name).name
        if not file.exists():
            message = f"{source} needs {file.name} in the same folder, where it is missing."
            raise ValueError(message)
        if _sha256(file.read_bytes()) != checksum:
            message = f"{file} is damaged: its contents do not match the checksum in {source.name}."
            raise ValueError(message)


def encode(value: Any) -> Any:
    """`value` in types JSON has; maps, options, arrays and tuples become small tagged objects."""
    if isinstance(value, Stored):
        params = value.get_params(deep=False)  # type: ignore[attr-defined]
        name = {"__map__": type(value).__name__, "room": _room_of(type(value))}
        return name | {"params": encode(params), "state": encode(value._state())}
    if dataclasses.is_dataclass(value) and type(value).__name__ in _OPTIONS:
        fields = {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"__option__": type(value).__name__, "fields": fields}
    if isinstance(value, np.ndarray):
        return _encoded_array(value)
    if isinstance(value, np.generic):
        return encode(value.item())
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
        return _known_option(value["__option__"])(**decode(value["fields"]))
    if "__array__" in value:
        return _decoded_array(value)
    if "__tuple__" in value:
        return tuple(decode(item) for item in value["__tuple__"])
    if "__float__" in value:
        return float(value["__float__"])
    return {key: decode(item) for key, item in value.items()}


def _encoded_array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype.kind in _ARRAY_KINDS:
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        text = base64.b64encode(little.tobytes()).decode()
        return {"__array__": little.dtype.str, "shape": list(array.shape), "base64": text}
    return {"__array__": "list", "text": array.dtype.kind == "U", "items": [encode(item) for item in array.tolist()]}


def _decoded_array(value: dict[str, Any]) -> np.ndarray[Any, Any]:
    if value["__array__"] == "list":
        items = [decode(item) for item in value["items"]]
        return np.array(items, dtype=str if value["text"] else object)
    kind = np.dtype(value["__array__"])
    if kind.kind not in _ARRAY_KINDS:
        message = f"A map holds no arrays of type {kind}."
        raise ValueError(message)
    try:
        content = base64.b64decode(value["base64"], validate=True)
    except binascii.Error as error:
        message = "An array of the map is not valid base64."
        raise ValueError(message) from error
    array = np.frombuffer(content, kind).reshape(value["shape"])
    return array.astype(kind.newbyteorder("="))


def _room_of(cls: type) -> str | None:
    """The package of a map of Calibrant; None for one that was registered."""
    package, *rest = cls.__module__.split(".")
    return rest[0] if package == "calibrant" and rest[0] in _ROOMS else None


def _known_class(name: str, room: str | None) -> type:
    """The class a file names; without a room, a registered one, or one of any room."""
    found = _CLASSES.get(name) if room is None else None
    for known in _ROOMS:
        if found is None and room in (None, known):
            module = import_module(f"calibrant.{known}")
            found = getattr(module, name) if name in dir(module) else None
    if not (isinstance(found, type) and issubclass(found, Stored)):
        message = f"This release ({__version__}) has no map called {name!r}."
        raise ValueError(message)
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


def _known_option(name: str) -> type:
    if name not in _OPTIONS:
        message = f"This release ({__version__}) has no option called {name!r}."
        raise ValueError(message)
    return _OPTIONS[name]


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
