"""The same estimates from a billion rows: one GROUP BY on the engine you already run gives a fine table.

Here belongs what turns files, frames and streams into tables. What a table is, and its own files, are in `table`.

>>> import pandas as pd
>>> log = pd.DataFrame({"clicked": [0, 0, 1, 1], "score": [0.1, 0.3, 0.6, 0.8]})
>>> table = bin_table(log, y_true="clicked", y_prob="score")
>>> table
<BinTable of 4 cells, n=4, HybridGrid>

Every estimator takes the table in place of the rows. Tables of shards, days and models add up with ``+``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
