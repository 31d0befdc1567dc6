"""Patterns of names of columns, and names between commas."""

import pytest

from calibrant.cli.formats import UsageError
from calibrant.cli.patterns import classes_of, expanded, matching, separated


@pytest.mark.parametrize(
    ("by", "parts"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        ("a, month(b), a", ("a", "month(b)")),
        ("date_trunc('month', day)", ("date_trunc('month', day)",)),
        ("coalesce(a, 'x,y'),\"b,c\"", ("coalesce(a, 'x,y')", '"b,c"')),
        ("c,d", ("c,d",)),
    ],
)
def test_commas_cross_columns_unless_a_column_is_called_so(by, parts):
    assert separated(by, ["a", "b", "c,d"], "--by") == parts


def test_an_empty_name_is_refused():
    with pytest.raises(UsageError, match=r"--by .* empty name"):
        separated("a,,b", ["a", "b"], "--by")


HEADER = ["y", "p_cat", "p_dog", "score", "a", "b", "axb", "p_*"]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("p_*g", {"p_dog": "do"}),
        ("*_cat", {"p_cat": "p"}),
        ("a*b", None),
        ("score*100", None),
        ("score*-1", None),
        ("score*1e2", None),
        ("unknown*thing", None),
        ("score * 100", None),
        ("count(*)", None),
        ("p_*", None),
        ("score", None),
    ],
)
def test_a_star_is_a_pattern_unless_it_is_a_column_or_a_product(name, columns):
    assert matching(name, HEADER, "--prob") == columns


def test_a_pattern_that_fits_nothing_is_refused():
    with pytest.raises(UsageError, match=r"No column fits the pattern --prob 'z_\*'; the file has 'y', 'p_cat'"):
        matching("z_*", HEADER, "--prob")


def test_columns_named_twice_count_once():
    header = ["p_cat", "p_dog"]
    assert expanded(["p_dog", "p_*"], header, "--prob") == ("p_dog", "p_cat")
    assert classes_of(["p_dog", "p_*"], header) == ("p_dog", "cat")
