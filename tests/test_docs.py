"""The code on every page of the documentation runs, in the order of the page."""

import ast
import doctest
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
#: Written by people; what the build of the site makes is left out.
MADE = {"reference", "pictures", "benchmarks", "reproduce"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in MADE)
#: A fenced block; one after the comment `<!-- notest -->` needs a cluster, or minutes.
BLOCK = re.compile(r"(<!-- notest -->\n)?^```python\n(.*?)^```", re.M | re.S)

ROWS = """
import numpy as np
import calibrant as cal
rng = np.random.default_rng(0)
p = rng.uniform(0.02, 0.98, 400)
y = (rng.random(400) < 0.5 + 0.7 * (p - 0.5)).astype(int)
P = np.stack([1 - p, p], axis=1)
y_true, y_prob = y, p
"""
#: What a page takes for granted: the reader's own data.
GIVEN = {
    "inference.md": ROWS
    + "q, country = np.sqrt(p), rng.choice(['DK', 'SE'], 400)\n"
    + "device, age = rng.choice(['web', 'app'], 400), rng.uniform(20, 80, 400)\n"
    + "a, b, c = (cal.Binary(y, p**power) for power in (1, 1.2, 0.8))\n",
    "positive-unlabeled.md": ROWS
    + "positive, unlabeled, new_scores = rng.beta(3, 2, 300), rng.beta(2, 3, 1000), rng.random(5)\n",
    "recalibrate.md": ROWS
    + "p_validation, y_validation, p_test = p[:200], y[:200], p[200:]\n"
    + "from sklearn.ensemble import GradientBoostingClassifier\n"
    + "import pyarrow\n"
    + "from sklearn.model_selection import cross_validate\n"
    + "X = p[:150, None]\ny = y[:150]\n",
    "recalibrate-multiclass.md": ROWS + "p_validation, y_validation, p_test = P[:200], y[:200], P[200:]\n",
    "scale.md": ROWS
    + "import pathlib, polars\n"
    + "day, y_batch, p_batch = 'day', y[:50], p[:50]\n"
    + "pathlib.Path('scores/day').mkdir(parents=True)\n"
    + "country = rng.choice(['at', 'de'], 400)\n"
    + "shown_at = np.datetime64('2026-01-01') + rng.integers(0, 90, 400)\n"
    + "every = {'clicked': y, 'score': p, 'y': y, 'p': p, 'country': country, 'shown_at': shown_at}\n"
    + "polars.DataFrame(every).write_parquet('scores/a.parquet')\n"
    + "polars.DataFrame({'y': y, 'p': p}).write_parquet('scores/day/b.parquet')\n"
    + "cal.scale.bin_table('scores/day', y_true='y', y_prob='p').save('all.parquet')\n",
    "simulate.md": ROWS,
    "variational.md": ROWS,
}


def blocks(page: Path) -> list[tuple[int, str]]:
    """Line number and code of the blocks that are to run."""
    text = page.read_text(encoding="utf8")
    return [(text[: found.start(2)].count("\n"), found[2]) for found in BLOCK.finditer(text) if not found[1]]


@pytest.mark.filterwarnings("ignore::UserWarning")  # e.g. of rates above 1 in the small samples used here
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_code_on_the_page_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    exec(GIVEN.get(page.relative_to(DOCS).as_posix(), ""), names)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for line, code in blocks(page):
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=flags)
            runner.run(test, clear_globs=False)
            names = test.globs
            assert runner.failures == 0
        else:
            exec(compile("\n" * line + code, str(page), "exec"), names)


def test_every_page_is_in_the_navigation():
    listed = {
        (page.parent / name.strip(" <>").split("<")[-1]).relative_to(DOCS).as_posix()
        for page in PAGES
        for tree in re.findall(r"^```\{toctree\}\n.*?\n\n(.*?)^```", page.read_text(encoding="utf8"), flags=re.M | re.S)
        for name in tree.split("\n")
        if name.strip()
    }
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES}
    assert pages - listed == {"index"}


def test_every_finding_of_a_report_is_explained():
    source = DOCS.parent / "src" / "calibrant" / "reporting"
    codes = {code for path in source.glob("*.py") for code in re.findall(r'"(CAL\d+)"', path.read_text("utf8"))}
    text = (DOCS / "findings.md").read_text(encoding="utf8")
    assert codes
    assert [code for code in sorted(codes) if f"## {code}\n" not in text] == []


def test_links_between_pages_lead_somewhere():
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf8"))
        if not (page.parent / link).exists() and not link.removeprefix("../").startswith(("reference/", "pictures/"))
    ]
    assert broken == []


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("docs_reference", DOCS / "_extensions" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_a_page_a_summary_and_an_example(reference, tmp_path):
    reference.write(tmp_path / "reference")
    made = {path.stem for path in (tmp_path / "reference").glob("*.rst")}
    pages = {id(reference.thing(*key)): key for key in reference.pages()}
    for package in reference.PACKAGES:
        for name in reference.public_names(package):
            thing = reference.thing(package, name)
            assert id(thing) in pages, f"{package}.{name} has no page"
            assert ".".join(pages[id(thing)]) in made
            if callable(thing):
                assert len(reference.summary(thing)) > 15, f"{package}.{name} does not say what it is"
                assert ">>> " in inspect.getdoc(thing), f"{package}.{name} has no example"
    index = (tmp_path / "reference" / "index.rst").read_text(encoding="utf8")
    assert all(f"<{package}>" in index for package, _ in reference.pages())


def test_no_package_is_missing_from_the_reference(reference):
    source = DOCS.parent / "src" / "calibrant"
    stubs = {".".join(path.parent.relative_to(source.parent).parts) for path in source.rglob("__init__.pyi")}
    # Packages of packages, and rooms without public names of their own.
    assert stubs - set(reference.PACKAGES) <= {"calibrant.integrations", "calibrant.numerics", "calibrant.cli"}


def test_blocks_are_found_where_pages_have_them():
    assert sum(len(blocks(page)) for page in PAGES) > 20
    for page in PAGES:
        for _, code in blocks(page):
            if ">>>" not in code:
                ast.parse(code)
