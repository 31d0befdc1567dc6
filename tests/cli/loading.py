"""One file below and above the size at which tables are used."""

from calibrant.cli import files
from calibrant.cli.columns import Columns


def both(path, **columns):
    """What is loaded as rows and what is loaded as tables."""
    paths, most = [str(path)] if not isinstance(path, list) else path, files.TABLE_ROWS
    rows = files.load(paths, Columns(**columns))
    try:
        files.TABLE_ROWS = 0
        return rows, files.load(paths, Columns(**columns))
    finally:
        files.TABLE_ROWS = most


def loaded(path, **columns):
    """The rows, and the table."""
    return [found.data for found in both(path, **columns)]


#: What `apply` reads in most tests.
FROM_P = Columns(prob=("p",))
