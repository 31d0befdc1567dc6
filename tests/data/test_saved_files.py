"""What was saved is read back with suspicion."""

import pytest

import calibrant as cal
from calibrant.data.saved_files import DEEPEST, InvalidFile, layout_version, parsed_json, reading_back


def test_invalid_files_are_value_errors_and_public():
    assert cal.data.InvalidFile is InvalidFile
    assert issubclass(InvalidFile, ValueError)


BAD = {
    "half": b'{"a": [1, 2',
    "no text": b"\xff\xfe\x00",
    "empty": b"",
    "not a number": b'{"a": NaN}',
    "infinite": b'{"a": -Infinity}',
    "too many digits": b"1" * 5000,
    "deeper than the parser goes": b"[" * 200_000 + b"]" * 200_000,
    "deep": b"[" * 500 + b"]" * 500,
    "deep objects": b'{"a":' * (DEEPEST + 2) + b"1" + b"}" * (DEEPEST + 2),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_what_is_no_plain_json_is_one_kind_of_error(content):
    with pytest.raises(InvalidFile, match=r"some/map\.json is not a map"):
        parsed_json(content, "some/map.json", "a map")


def test_json_of_a_reasonable_depth_is_read():
    assert parsed_json(b"[" * (DEEPEST // 2) + b"]" * (DEEPEST // 2), "a", "a map") is not None
    assert parsed_json(b'{"a": [1.5, null, true, "x"]}', "a", "a map") == {"a": [1.5, None, True, "x"]}


@pytest.mark.parametrize("version", [0, -5, True, 99, 2.0, "2", None, [2]])
def test_only_known_versions_are_read(version):
    with pytest.raises(InvalidFile, match="layout version"):
        layout_version(version, (1, 2), "map.json")


def test_a_newer_version_asks_for_an_upgrade():
    with pytest.raises(InvalidFile, match=r"written by calibrant 9\.0.*Upgrade"):
        layout_version(7, (1, 2), "map.json", "9.0")
    assert layout_version(2, (1, 2), "map.json") == 2


def test_examples_of_parsed_json() -> None:
    assert parsed_json(b'{"a": [1, 2]}', "map.json", "a map") == {"a": [1, 2]}


def test_what_is_lacking_is_named():
    said = r"^map\.json is not a valid map: it lacks 'state'\.$"
    with pytest.raises(InvalidFile, match=said), reading_back("map.json", "a valid map"):
        {}["state"]
