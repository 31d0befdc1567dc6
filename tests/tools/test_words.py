from pathlib import Path

import pytest
from tools.words import EXCEPTIONS, PHRASES, Phrase, files, main, uses_in

PHRASE = Phrase(r"\bso many rows\b", "this many rows")


def found(text, phrase=PHRASE):
    return [use.line for use in uses_in(text, Path("page.md"), phrase)]


def test_a_phrase_is_found_across_lines_and_comments():
    text = "Up to so many rows.\n#: At most So many\n#: rows.\nSo many\nrows\nso many other rows"
    assert found(text) == [1, 2, 4]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("maps of several classes", "multiclass maps"),
        ("def several_classes():", "several of the classes"),
        ("at most so many cells.", "so many cells that all fit"),
        ("a text that is no number", "there is no number"),
        ("the values are no weights", "they are no longer weights"),
        ("can it be believed?", "can it be trusted?"),
    ],
)
def test_what_is_wrong_and_what_is_right(wrong, right):
    assert sum(len(found(wrong, phrase)) for phrase in PHRASES) == 1
    assert sum(len(found(right, phrase)) for phrase in PHRASES) == 0


def test_every_phrase_has_something_better_that_no_phrase_forbids():
    for phrase in PHRASES:
        assert phrase.better
        assert not any(other.expression.search(phrase.better) for other in PHRASES)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text("Up to\nso many rows, and\nso many rows.\n")
    (tmp_path / "docs" / "reference" / "made.md").write_text("so many rows")
    (tmp_path / "docs" / "picture.png").write_bytes(b"\xff")
    return tmp_path


def test_pages_are_read_and_what_is_made_is_not(root):
    assert files(root) == [Path("docs/page.md")]
    assert all(EXCEPTIONS.values())


@pytest.mark.parametrize(("allowed", "status"), [(0, 1), (1, 1), (2, 0)])
def test_more_uses_than_allowed_fail_with_place_and_better_words(root, capsys, allowed, status):
    phrases = (Phrase(PHRASE.pattern, PHRASE.better, allowed),)
    assert main([], root=root, phrases=phrases) == status
    printed = capsys.readouterr().out
    assert ("docs/page.md:2: 'so many rows': better: this many rows" in printed) == bool(status)
    assert ("2 uses, 1 are allowed" in printed) == (allowed == 1)


def test_uses_are_counted_and_named_on_request(root, capsys):
    phrases = (Phrase(PHRASE.pattern, PHRASE.better, 3),)
    assert main(["--counts"], root=root, phrases=phrases) == 0
    assert capsys.readouterr().out.split()[:2] == ["2", "3"]
    assert main(["--all"], root=root, phrases=phrases) == 0
    assert capsys.readouterr().out.count("better: this many rows") == 2
