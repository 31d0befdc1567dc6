"""A file is replaced whole or not at all."""

import os

import pytest

from calibrant._atomic_write import replacing


def test_a_write_that_is_interrupted_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "table.parquet"
    path.write_text("old")

    def interrupted():
        with replacing(path) as place:
            place.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.parquet"]
