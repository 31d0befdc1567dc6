"""Tables that a passage through NumPy or pandas would damage, in files."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal

rng = np.random.default_rng(0)
P = rng.random(400)
MAP = cal.recalibrate.Platt().fit(P, rng.random(400) < P**2)


def odd_table(n=6):
    """Columns of the types that a passage through NumPy or pandas damages."""
    big = 2**53 + 1
    zone = pa.timestamp("us", tz="Europe/Vienna")
    pick = [k % 3 for k in range(n)]
    return pa.table(
        {
            "id": pa.array([None if k == 1 else big + 2 * k for k in range(n)], pa.int64()),
            "flag": pa.array([None if k == 2 else k % 2 == 0 for k in range(n)]),
            "amount": pa.array([decimal.Decimal(f"{k}.10") for k in range(n)], pa.decimal128(20, 2)),
            "day": pa.array([datetime.date(1600, 1, 1 + k % 28) for k in range(n)]),
            "at": pa.array([10**15 + k for k in range(n)], pa.int64()).cast(zone),
            "nanoseconds": pa.array([10**18 + k for k in range(n)], pa.timestamp("ns")),
            "P": pa.array([f"text {k}" for k in range(n)]),
            "p": pa.array(np.linspace(0.1, 0.9, n)),
            "list": pa.array([[1, None], [], None] * (n // 3), pa.list_(pa.int32())),
            "struct": pa.array([{"a": 1, "b": [{"c": "x"}]}] * n),
            "country": pa.DictionaryArray.from_arrays(pa.array(pick, pa.int8()), ["at", "de", "dk"]),
            "single": pa.array(np.linspace(0, 1, n), pa.float32()),
            "none": pa.nulls(n),
            "bytes": pa.array([b"\xff\x00"] * n),
            "map": pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
            "a.dotted name": pa.array(range(n), pa.uint64()),
        }
    ).replace_schema_metadata({b"owner": b"the user"})


def written(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=4, compression={"p": "zstd", "id": "none"})
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=4)
    return str(path)


def read(path):
    return pq.read_table(path) if str(path).endswith(".parquet") else pa.ipc.open_file(str(path)).read_all()
