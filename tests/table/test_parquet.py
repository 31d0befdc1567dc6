"""Files of tables: those of older releases are still read."""

from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.table import Labelled, Spread, Unlabeled, load_tables
from tests.reference.make_table_version_1 import tables
from tests.scale.logs import assert_same_table

OLD = Path(__file__).parents[1] / "reference" / "table_version_1.parquet"


@pytest.mark.parametrize("name", ["labelled", "spread", "prior", "frequency"])
def test_files_of_version_1_are_read_with_the_task_their_fields_said(name):
    assert_same_table(load_tables(OLD)[name], tables()[name], rtol=0)


def test_the_tasks_of_version_1():
    assert [table.task for table in load_tables(OLD).values()] == [
        Labelled(),
        Spread(),
        Unlabeled(0.6),
        Unlabeled(None, label_frequency=0.8, nested=True),
    ]


def test_the_task_is_saved(tmp_path):
    for name, table in tables().items():
        table.save(tmp_path / name)
        assert cal.BinTable.load(tmp_path / name).task == table.task


def test_tables_of_different_tasks_are_not_added():
    labelled, prior = tables()["labelled"], tables()["prior"]
    with pytest.raises(ValueError, match="equal task"):
        labelled + prior
    both = prior + prior
    assert both.task == prior.task
    np.testing.assert_allclose(both.observed_mean, prior.observed_mean)
