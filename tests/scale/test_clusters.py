"""Real clusters on one machine: Spark's own processes, and Dask's."""

import shutil

import dask.dataframe as dd
import ibis
import numpy as np
import pytest
from distributed import LocalCluster

import calibrant as cal
from calibrant.scale import GaussianColumns, TopLabelColumns, bin_table, bin_tables
from tests.recalibrate.sql_maps import ONE_EVENT, fitted, one_event
from tests.recalibrate.test_feature_map import new_rows, world
from tests.scale.designs import Design
from tests.scale.logs import assert_same_table, make_log

# What the engines warn of themselves.
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ANIMALS = ("cat", "cow", "dog")
LOG = make_log(2_000, seed=9)
DESIGNS = [
    Design(labels, "float32", groups, categorical=False, missing_rows=True, missing_groups=True, weighted=True, seed=3)
    for labels, groups in (("yes and no", "float"), ("fraud", "all rows"))
]


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None:
        pytest.skip("JAVA IS NOT INSTALLED: the Spark engine was not tested (it needs a Java 17 runtime)")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def spark_frame(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("spark") / "log.parquet")
    LOG.to_parquet(path, index=False)
    return spark.read.parquet(path)


@pytest.mark.spark
def test_a_spark_cluster_gives_the_tables_of_memory(spark_frame):
    found = bin_tables(spark_frame, y_true="y", y_prob="p", weight="w", by="country", progress=True)
    for country, rows in LOG.groupby("country"):
        expected = cal.BinTable.of(cal.Binary(rows.y, rows.p, weight=rows.w), cal.table.HybridGrid())
        assert_same_table(found[country], expected)
    top = bin_table(spark_frame, y_true="animal", y_prob=ANIMALS, task=TopLabelColumns(ANIMALS))
    data = cal.Multiclass(LOG.animal, LOG[list(ANIMALS)].to_numpy(), classes=ANIMALS)
    assert_same_table(top, cal.BinTable.of(data.top_label(), cal.table.HybridGrid()))


@pytest.mark.spark
def test_spark_counts_invalid_rows_by_reason(spark_frame):
    from pyspark.sql import functions

    bad = spark_frame.withColumn("p", functions.when(spark_frame.day == 0, float("nan")).otherwise(spark_frame.p))
    table = bin_table(bad, y_true="y", y_prob="p", max_invalid=0.5)
    assert table.invalid == {"y_prob missing": int((LOG.day == 0).sum())}
    assert table.n == int((LOG.day != 0).sum())


@pytest.mark.spark
def test_spark_sql_applies_maps(spark):
    x, p, y = one_event(80)
    chosen = (cal.recalibrate.Beta, cal.recalibrate.Isotonic, cal.recalibrate.Histogram, cal.recalibrate.VennAbers)
    templates = [one for one in ONE_EVENT if isinstance(one, chosen)]  # Spark takes long to compile long ones
    for logits, scores in ((False, p), (True, x)):
        made = [fitted(template, x, p, y, logits=logits) for template in templates]
        rows = spark.createDataFrame([(float(score),) for score in scores] + [(None,), (float("nan"),)], "p double")
        found = rows.selectExpr(*(one.to_sql("p", dialect="spark") for one in made)).collect()
        expected = np.stack([one.predict_proba(scores)[:, 1] for one in made], axis=1)
        np.testing.assert_allclose(np.array(found[:-2], dtype=float), expected, rtol=0, atol=1e-12)
        assert {value for row in found[-2:] for value in row} == {None}


@pytest.mark.spark
def test_spark_sql_applies_an_average(spark):
    """Of many logits, which make the shortest expression: Spark takes long to compile long ones."""
    x, _, y = one_event(2_000)
    average = cal.recalibrate.BayesianAverage(input="logits").fit(x, y)
    new = np.concatenate([x[:50], [-800.0, 0.0, 800.0]])
    rows = spark.createDataFrame([(float(score),) for score in new] + [(None,), (float("nan"),)], "p double")
    found = rows.selectExpr(average.to_sql("p", dialect="spark")).collect()
    np.testing.assert_allclose([row[0] for row in found[:-2]], average.predict_proba(new)[:, 1], rtol=0, atol=1e-12)
    assert [row[0] for row in found[-2:]] == [None, None]


@pytest.mark.spark
def test_spark_sql_applies_a_map_with_features(spark):
    p, y, X = world(8000)
    made, some = cal.recalibrate.FeatureMap().fit(p, y, features=X), new_rows(X, 60)
    columns = zip(range(60), p[:60].tolist(), *(some[name].tolist() for name in X), strict=False)
    rows = [[None if value != value else value for value in row] for row in columns]
    kinds = "i int, p double, age double, place string, member boolean, noise double"
    frame = spark.createDataFrame(rows, kinds).selectExpr("i", f"{made.to_sql('p', dialect='spark')} AS q").orderBy("i")
    found = np.array([row.q for row in frame.collect()])
    np.testing.assert_allclose(found, made.predict_proba(p[:60], some)[:, 1], rtol=0, atol=1e-9)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis and PySpark use pandas as it was
def test_ibis_on_spark_gives_the_same_table(spark, spark_frame):
    spark_frame.createOrReplaceTempView("log")
    source = ibis.pyspark.connect(spark).table("log")
    expected = bin_table(LOG, y_true="y", y_prob="p")
    assert_same_table(bin_table(source, y_true="y", y_prob="p"), expected)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a.`b`.c", "P"])
def test_spark_finds_columns_of_any_name(spark, name):
    """Spark reads dots and backticks as its own, and takes P for p."""
    frame = spark.createDataFrame([(0, 0.25, 0.75), (1, 0.5, 1.0)], ["y", "x", "z"]).toDF("y", name, "p")
    assert bin_table(frame, y_true="y", y_prob=name).predicted.tolist() == [0.25, 0.5]


@pytest.mark.spark
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.labels)
def test_spark_gives_the_tables_of_memory_for_labels_and_groups_of_any_type(spark, design, tmp_path):
    frame = design.frame()
    frame.write_parquet(tmp_path / "log.parquet")
    source = spark.read.parquet(str(tmp_path / "log.parquet"))
    found = bin_tables(source, y_true="y", y_prob="p", weight="w", by="g", task=design.task, max_invalid=1.0)
    expected, missing = design.expected(frame)
    for group, table in expected.items():
        assert_same_table(found[group], table)
    assert sum(count for table in found.values() for count in table.invalid.values()) == missing


@pytest.fixture(scope="module")
def dask_frame():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, cluster.get_client():
        yield dd.from_pandas(LOG, npartitions=20)


def test_a_dask_cluster_gives_the_tables_of_memory(dask_frame):
    found = bin_tables(dask_frame, y_true="y", y_prob="p", by="country", fold="day")
    for key, expected in bin_tables(LOG, y_true="y", y_prob="p", by="country", fold="day").items():
        assert_same_table(found[key], expected)
    normal = bin_table(dask_frame, y_true="z", task=GaussianColumns("mu", "sigma"))
    assert_same_table(normal, bin_table(LOG, y_true="z", task=GaussianColumns("mu", "sigma")), rtol=1e-11)


def test_dask_runs_the_second_pass_and_counts_invalid_rows(dask_frame):
    exact = bin_table(dask_frame, y_true="y", y_prob="p", exact=True)
    assert cal.ece(exact) == pytest.approx(float(cal.ece(LOG.y, LOG.p)), abs=1e-12)
    with pytest.raises(cal.InvalidPredictions, match="y_true 'day' not 0 or 1: "):
        bin_table(dask_frame, y_true="day", y_prob="p")
