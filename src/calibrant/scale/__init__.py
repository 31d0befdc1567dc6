"""The same estimates from a billion rows: one GROUP BY on the engine you already run gives a fine table.

>>> import pandas as pd
>>> log = pd.DataFrame({"clicked": [0, 0, 1, 1], "score": [0.1, 0.3, 0.6, 0.8]})
>>> table = bin_table(log, y_true="clicked", y_prob="score")
>>> table
<BinTable of 4 cells, n=4, HybridGrid>

Every estimator takes the table in place of the rows. Tables of shards, days and models add up with ``+``.
"""

from calibrant.scale.bin_tables import bin_table
from calibrant.scale.columns import Event, Normal, OneVsRest, TopLabel, Unlabeled
from calibrant.scale.streaming import StreamingTable
from calibrant.table.parquet import load_tables, save_tables

__all__ = [
    "Event",
    "Normal",
    "OneVsRest",
    "StreamingTable",
    "TopLabel",
    "Unlabeled",
    "bin_table",
    "load_tables",
    "save_tables",
]
