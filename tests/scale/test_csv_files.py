"""Every record of a CSV file is a row, or an error names its line; counted by bytes as by Python's own reader."""

import csv
import gzip
import io

import pytest

import calibrant as cal
from calibrant.cli.columns import Columns
from calibrant.cli.files import load
from calibrant.scale import bin_table, csv_files
from calibrant.scale.csv_files import CsvRecords, Header, count_rows, first_fault, read_header, require_rows


def header_of(text):
    return CsvRecords(io.StringIO(text, newline="")).header


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y,p\n", Header(",", ("y", "p"))),
        ("y;p,q\r\n", Header(",", ("y;p", "q"), "\r\n")),
        ('"a;b;c",y\r', Header(",", ("a;b;c", "y"), "\r")),
        ('\ufeff"y\nz"\tp\n', Header("\t", ("y\nz", "p"))),
        ("p", Header(",", ("p",))),
        ("y, p\n", Header(",", ("y", "p"))),
    ],
)
def test_the_first_record_is_the_header(text, expected):
    assert header_of(text) == expected
    assert header_of("a,b,a\n").repeated == ("a",)


GOOD = {
    "line feeds": (b"y,p\n0,0.2\n1,0.7\n1,0.8\n", 3),
    "no last end": (b"y,p\n0,0.2\n1,0.7\n1,0.8", 3),
    "carriage returns and line feeds": (b"y,p\r\n0,0.2\r\n1,0.7\r\n1,0.8\r\n", 3),
    "carriage returns": (b"y,p\r0,0.2\r1,0.7\r1,0.8\r", 3),
    "byte order mark": (b"\xef\xbb\xbfy,p\n0,0.2\n1,0.7\n1,0.8\n", 3),
    "blank lines": (b"y,p\n0,0.2\n\n\n1,0.7\n1,0.8\n\n\n", 3),
    "semicolons": (b"y;p\n0;0.2\n1;0.7\n1;0.8\n", 3),
    "tabs": (b"y\tp\n0\t0.2\n1\t0.7\n1\t0.8\n", 3),
    "bars": (b"y|p\n0|0.2\n1|0.7\n1|0.8\n", 3),
    "quoted ends": (b'y,p,t\n0,0.2,"a\n9,9,b"\n1,0.7,"""\n"\n1,0.8,"c,d"\n', 3),
    "quoted ends of another kind": (b'y,p,t\r\n0,0.2,"a\n9,9,b"\r\n1,0.7,\r\n1,0.8,"c,d"\r\n', 3),
    "quotes within": (b'y,p,t\n0,0.2,5" wide\n1,0.7,x\n1,0.8,x\n', 3),
    "empty last fields": (b'y,p,t\n0,0.2,\n1,0.7,"a,b"\n1,0.8,\n', 3),
    "number signs": (b"id,y,p\n1,0,0.2\n#2,1,0.7\n3,1,0.8\n", 3),
    "a wide name": (b'y,p,"t\nu"\n0,0.2,1\n1,0.7,2\n1,0.8,2\n', 3),
    "only a header": (b"y,p\n", 0),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", GOOD)
def test_every_record_is_a_row(case, packed, tmp_path):
    content, rows = GOOD[case]
    path = tmp_path / f"log.csv{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert sum(1 for _ in CsvRecords(io.StringIO(content.decode("utf8"), newline=""))) == rows
    assert count_rows(str(path), read_header(str(path))) in (rows, None)
    require_rows(str(path), read_header(str(path)), rows)
    if rows:
        table = bin_table(path, y_true="y", y_prob="p")
        assert table.n == rows
        assert table.predicted.tolist() == [0.2, 0.7, 0.8]
        assert load([str(path)], Columns("y", ("p",))).data.y_prob.tolist() == [0.2, 0.7, 0.8]


BAD = {
    "a wider header later": (
        b"y,p\n1,0.1\n1,0.1\ny,p,ms\n0,0.2,7\n",
        "Line 4 has 3 fields, but the header in line 1 names 2 columns",
    ),
    "a narrower header later": (b"y,p,ms\n1,0.1,7\ny,p\n0,0.2\n", "Line 3 has 2 fields"),
    "an empty field too many": (b"y,p\n1,0.1\n0,0.2,\n", "Line 3 has 3 fields"),
    "an empty field too many after quotes": (b'y,p,t\n1,0.1,"a,b"\n0,0.2,,\n', "Line 3 has 4 fields"),
    "lines after a quoted one": (b'y,p,t\n1,0.1,"a\nb"\n0,0.2\n', "Line 4 has 2 fields"),
    "an open quote": (b'y,p\n1,0.1\n0,"0.2\n', "Line 3 is not CSV"),
    "text after a quote": (b'y,p\n1,0.1\n0,"0.2"x\n', "Line 3 is not CSV"),
    "two kinds of ends": (b"y,p\r\n1,0.1\r\n0,0.2\n", r"Line 3 ends in '\\n', but line 1 in '\\r\\n'"),
    "no header": (b"\ny,p\n1,0.1\n", "The first line is blank"),
    "a blank line in one column": (b"p\n0.5\n\n0.5\n", "Line 3 is blank: in a file of one column"),
    "Latin-1": (b"y,p,t\n1,0.1,a\n0,0.2,\xe9\n", "Line 3 is not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_row_is_named_by_its_line(case, tmp_path):
    content, words = BAD[case]
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(cal.InvalidPredictions, match=rf"Cannot read '.*log\.csv': {words}"):
        bin_table(path, y_true="p > 0.5" if content.startswith(b"p") else "y", y_prob="p")
    with pytest.raises(cal.InvalidPredictions, match=words):
        load([str(path)], Columns("p > 0.5" if content.startswith(b"p") else "y", ("p",)))


def test_a_header_in_the_middle_is_a_row_that_holds_no_number(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("y,p\n1,0.1\n0,0.2\ny,p\n1,0.3\n")
    with pytest.raises(cal.InvalidPredictions, match="column 'p' holds 'p' in row 3"):
        bin_table(path, y_true="y", y_prob="p")


def test_rows_that_a_reader_left_out_are_missed(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('y,p\n1,"0.1"\n0,0.2\n')
    with pytest.raises(cal.InvalidPredictions, match="has 2 rows, but DuckDB finds 1"):
        require_rows(str(path), read_header(str(path)), 1)
    assert first_fault(str(path)) is None


@pytest.mark.parametrize("block", [7, 64, 2**24])
def test_bytes_are_counted_in_blocks_of_any_size(block, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.scale.csv_files._BLOCK", block)
    monkeypatch.setattr("calibrant.scale.csv_files._LONGEST_QUOTE", 10**6)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    for row in range(200):
        writer.writerow([row, "a\nb" * (row % 7), '"' * (row % 3), ""])
    path = tmp_path / "log.csv"
    path.write_bytes(text.getvalue().encode())
    assert count_rows(str(path), read_header(str(path))) == 199


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [1, 2, 3, 5, 2**24])
def test_a_plain_file_is_told_from_its_bytes(ending, block, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "_BLOCK", block)
    rows = ["y,p", "1,0.5", "0,0.25"]
    odd = {
        "a quote": [*rows, '1,"0.5"'],
        "a blank line": ["y,p", "", "1,0.5"],
        "an empty field too many": [*rows, "1,0.5,", "1,0.5"],
        "the same in the last line": [*rows, "1,0.5,"],
        "a null byte": [*rows, "1,0.5\0"],
        "another line end": [*rows, "1,0.5\r0,0.5"],
    }
    for name, lines in {"plain": rows, **odd}.items():
        for last in (ending, ""):
            file = tmp_path / "some.csv"
            file.write_bytes((ending.join(lines) + last).encode())
            header = csv_files.Header(",", ("y", "p"), ending)
            assert csv_files.every_line_is_a_row(str(file), header) is (name == "plain"), (name, last)
