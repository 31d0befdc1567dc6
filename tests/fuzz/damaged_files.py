"""Maps and tables whose files were changed: refused, or as good as those that were written."""

from __future__ import annotations

import copy
import hashlib
import json
import traceback
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal
from calibrant.table.parquet import load, load_tables, save, save_tables

ODD = [
    None,
    True,
    0,
    -1,
    1,
    7,
    0.5,
    -0.5,
    1e300,
    1e-300,
    2**70,
    "",
    "x",
    "nan",
    [],
    [[]],
    {},
    {"a": 1},
    [0.5, "x"],
    [None],
]
PACKAGE = str(Path(cal.__file__).parent)
SCORES = np.array([0.0, 1e-9, 0.2, 0.5, 0.93, 1.0])


@cache
def documents():
    """Saved maps of several families, as JSON."""
    import tempfile

    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p**2).astype(int)
    several = rng.dirichlet([1, 1, 1], 200)
    rc = cal.recalibrate
    maps = [made.fit(p, y) for made in (rc.Platt(), rc.Beta(), rc.Isotonic(), rc.Histogram(), rc.Spline())]
    maps += [made.fit(several, rng.integers(0, 3, 200)) for made in (rc.Temperature(), rc.OneVsRest(rc.Platt()))]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for made in maps:
            made.save(f"{folder}/map.json")
            found.append((Path(f"{folder}/map.json").read_bytes(), made))
    return found


def signed(document):
    """The document with the checksum of its contents, so that only what it holds can be refused."""
    body, files = document.get("map"), document.get("files")
    content = body if files is None else [body, files]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return document | {"checksum": hashlib.sha256(text.encode()).hexdigest()}


def changed_bytes(rng, content):
    """A few bytes overwritten, left out or repeated, or the end missing."""
    made = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(made)))
        kind = rng.integers(4)
        if kind == 0:
            made[at] = int(rng.integers(256))
        elif kind == 1:
            del made[at : at + int(rng.integers(1, 20))]
        elif kind == 2:
            made[at:at] = made[at : at + int(rng.integers(1, 20))]
        else:
            del made[at:]
        if not made:
            break
    return bytes(made)


def changed_value(rng, value):
    """The JSON value with one of its parts replaced, left out or wrapped."""
    made = copy.deepcopy(value)
    place, key = None, None
    inner = made
    while isinstance(inner, (dict, list)) and len(inner) and (place is None or rng.random() < 0.85):
        place = inner
        key = list(inner)[rng.integers(len(inner))] if isinstance(inner, dict) else int(rng.integers(len(inner)))
        inner = inner[key]
    if place is None:
        return ODD[rng.integers(len(ODD))]
    kind = rng.integers(4)
    if kind == 0:
        del place[key]
    elif kind == 1:
        place[key] = [place[key]]
    elif kind == 2 and isinstance(place[key], (int, float)) and not isinstance(place[key], bool):
        place[key] = place[key] * float(rng.choice([-1, 1e10, 1e-10, 3]))
    else:
        place[key] = ODD[rng.integers(len(ODD))]
    return made


def refused(read):
    """What was read; None where it is refused by an exception of ours."""
    try:
        return read()
    except ValueError as error:
        if not traceback.extract_tb(error.__traceback__)[-1].filename.startswith(PACKAGE):
            raise
        return None


def map_files(rng, folder):
    """A map whose file was changed by accident, or by hand with a new checksum."""
    content, made = documents()[rng.integers(len(documents()))]
    path = Path(folder) / "map.json"
    by_accident = bool(rng.random() < 0.4)
    if by_accident:
        changed = changed_bytes(rng, content)
    else:
        document = json.loads(content)
        part = changed_value(rng, document["map"]) if rng.random() < 0.8 else None
        document = document | {"map": part} if part is not None else changed_value(rng, document)
        changed = json.dumps(signed(document) if isinstance(document, dict) else document).encode()
    path.write_bytes(changed)
    loaded = refused(lambda: cal.recalibrate.load(path))
    if loaded is None:
        return
    scores = SCORES if len(made.classes_) == 2 else np.full((4, 3), 1 / 3)
    found = refused(lambda: loaded.predict_proba(scores))
    if found is None:
        return
    assert np.isfinite(found).all(), f"not finite: {found}"
    assert ((found >= 0) & (found <= 1)).all(), f"no probabilities: {found}"
    assert np.allclose(found.sum(axis=1), 1), f"rows do not sum to 1: {found}"
    if by_accident:
        np.testing.assert_array_equal(found, made.predict_proba(scores))


def table_of(rng):
    p = rng.random(60).round(2)
    y = (rng.random(60) < p).astype(int)
    kinds = [
        lambda: cal.BinTable.of(cal.Binary(y, p), cal.EqualWidth(8)),
        lambda: cal.BinTable.of(cal.Binary(y, p, weight=rng.random(60)), cal.table.Distinct()),
        lambda: cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid(64)),
        lambda: cal.BinTable.of(cal.Gaussian(p, y, p + 1), cal.table.LogGrid()),
        lambda: cal.BinTable.of(cal.PositiveUnlabeled(p[:20], p[20:], prior=0.4), cal.table.Distinct()),
    ]
    return kinds[rng.integers(len(kinds))]()


def usable(table):
    """Raise where the numbers of a table are none that rows could have."""
    for name in ("count", "weight", "weight_squares", "predicted", "observed"):
        values = getattr(table, name)
        assert np.isfinite(values).all(), f"{name} is not finite: {values}"
        assert (values >= 0).all(), f"{name} is negative: {values}"
    np.testing.assert_array_equal(table.count, np.round(table.count))
    measure = cal.ence if isinstance(table.task, cal.table.Spread) else cal.ece
    found = refused(lambda: measure(table))
    assert found is None or np.isfinite(found), f"{found!r} of a table"


def table_files(rng, folder):
    """A table whose file was changed: bytes, a value of a column, or the words about it."""
    table, path = table_of(rng), Path(folder) / "table.parquet"
    several = bool(rng.random() < 0.3)
    if several:
        save_tables({"a": table, None: table}, path)
    else:
        save(table, path)
    if rng.random() < 0.4:
        path.write_bytes(changed_bytes(rng, path.read_bytes()))
    else:
        _change_contents(rng, path)
    loaded = refused(lambda: list(load_tables(path).values()) if several else [load(path)])
    for found in loaded or ():
        usable(found)


def _change_contents(rng, path):
    data = pq.read_table(path)
    about = dict(data.schema.metadata or {})
    if rng.random() < 0.5 and about:
        key = sorted(about)[rng.integers(len(about))]
        try:
            about[key] = json.dumps(changed_value(rng, json.loads(about[key]))).encode()
        except ValueError:
            about[key] = changed_bytes(rng, about[key])
        pq.write_table(data.replace_schema_metadata(about), path)
        return
    place = int(rng.integers(data.num_columns))
    values = data.column(place).to_pylist()
    at, kind = int(rng.integers(len(values))), rng.integers(5)
    odd = [-1.0, float("nan"), float("inf"), None, 0.5, 1e18]
    if kind == 0:
        data = data.drop_columns([data.column_names[place]])
    elif kind == 1:
        data = data.slice(at)
    else:
        values[at] = values[at] * 7 if kind == 2 and values[at] is not None else odd[rng.integers(len(odd))]
        try:
            column = pa.array(values, type=data.schema.field(place).type)
        except (pa.ArrowInvalid, TypeError):
            column = pa.array(values, type=pa.float64())
        data = data.set_column(place, data.column_names[place], column)
    pq.write_table(data.replace_schema_metadata(about), path)
