"""The code on every page of the documentation runs, in the order of the page."""

import ast
import doctest
import importlib
import inspect
import re
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
#: Written by people; what the build of the site makes is left out.
MADE = {"reference", "pictures", "benchmarks", "reproduce", "drawn"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in MADE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def extension(name):
    """A module of the site's own."""
    if str(DOCS / "_extensions") not in sys.path:
        sys.path.append(str(DOCS / "_extensions"))
    return importlib.import_module(name)


examples = extension("examples")


def blocks(page: Path) -> list[tuple[int, str]]:
    return examples.blocks(page.read_text(encoding="utf8"))


@pytest.mark.filterwarnings("ignore::UserWarning")  # e.g. of rates above 1 in the small samples used here
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_code_on_the_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    for line, code in blocks(page):
        for step in examples.run(code, names):
            right = ">>>" not in code or doctest.OutputChecker().check_output(step.wanted, step.printed, FLAGS)
            assert right, f"{page.name}, line {line + step.line + 1}: {step.source}prints\n{step.printed}"
    examples.figures()


def test_the_site_shows_code_with_what_it_prints_and_draws(tmp_path):
    text = "A\n\n```python\nx = 1\nx + 1\n```\n\nB\n\n```python\n>>> x\n1...\n```\n\n```python\ny = x\n```\n"
    text += "\n<!-- notest -->\n```python\nnowhere()\n```\n"
    text += "\n```python\nimport matplotlib.pyplot as plt\nplt.figure().add_subplot()\n```\n"
    made = examples.shown(text, tmp_path, "page")
    assert "```python\n>>> x = 1\n>>> x + 1\n2\n```\n" in made
    assert "```python\n>>> x\n1\n```\n" in made  # the whole output in place of the part that must hold
    assert "```python\ny = x\n```\n" in made
    assert "nowhere()" in made
    assert "<Axes" not in made
    assert "(/drawn/page-1.png)" in made
    assert (tmp_path / "page-1.png").exists()


def imported(code):
    """The packages that code imports."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def test_everything_that_the_site_imports_is_installed_by_make_docs():
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf8"))
    extras = project["project"]["optional-dependencies"]
    asked = [*project["project"]["dependencies"], *extras["files"], *extras["cli"], *extras["plot"]]
    asked += project["dependency-groups"]["docs"]
    there = {re.match(r"[\w-]+", one)[0].replace("-", "_") for one in asked} | set(sys.stdlib_module_names)
    there |= {"calibrant", "sklearn", "docutils", "reference_tasks"}  # docutils comes with Sphinx
    files = [DOCS / "conf.py", *DOCS.glob("_extensions/*.py"), *DOCS.glob("gallery/*.py")]
    used = {name: file.name for file in files for name in imported(file.read_text(encoding="utf8"))}
    for page in PAGES:
        for _, code in blocks(page):
            plain = (
                code if ">>>" not in code else "".join(one.source for one in doctest.DocTestParser().get_examples(code))
            )
            used |= dict.fromkeys(imported(plain), page.name)
    assert {name: place for name, place in used.items() if name not in there} == {}


def test_every_recipe_prints_and_draws():
    for page in (DOCS / "cookbook").glob("*.md"):
        if page.stem != "index":
            text = page.read_text(encoding="utf8")
            assert len(re.findall(r"^>>> ", text, flags=re.M)) > 5, page.name
            assert ".plot" in text, f"{page.name} draws nothing"


def test_every_page_is_in_the_navigation():
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES}
    patterns = {
        (page.parent / name.strip(" <>").split("<")[-1]).relative_to(DOCS).as_posix()
        for page in PAGES
        for tree in re.findall(r"^```\{toctree\}\n.*?\n\n(.*?)^```", page.read_text(encoding="utf8"), flags=re.M | re.S)
        for name in tree.split("\n")
        if name.strip()
    }
    listed = {page for page in pages if any(fnmatch(page, pattern) for pattern in patterns)}
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
    return extension("reference")


@pytest.fixture(scope="module")
def written(reference, tmp_path_factory):
    """The pages of the reference by their names."""
    folder = tmp_path_factory.mktemp("site") / "reference"
    reference.write(folder)
    return {path.stem: path.read_text(encoding="utf8") for path in folder.glob("*.rst")}


def test_every_public_name_has_a_page_with_what_it_is_an_example_and_others_to_see(reference, written):
    pages = {id(reference.thing(*key)): key for key in reference.pages()}
    for package in reference.PACKAGES:
        for name in reference.public_names(package):
            thing = reference.thing(package, name)
            assert id(thing) in pages, f"{package}.{name} has no page"
            page = written[".".join(pages[id(thing)])]
            others = page.partition(".. rubric:: See also")[2]
            assert re.search(r"^:doc:`\w+ <[\w.]+>`\n   \S", others, flags=re.M), f"{package}.{name} stands alone"
            assert f"<{'.'.join(pages[id(thing)])}>" not in others, f"{package}.{name} refers to itself"
            if callable(thing):  # the constants have a comment
                assert ">>> " in inspect.getdoc(thing), f"{package}.{name} has no example"


def test_every_public_name_says_what_it_is_and_no_two_say_the_same(reference):
    said = {key: reference.summary(*key) for key in reference.pages()}
    for (package, name), text in said.items():
        words = set(re.findall(r"[a-z]{3,}", text.lower())) - set(re.findall(r"[a-z]{3,}", name.lower()))
        assert len(words) >= 2, f"{package}.{name} says only {text!r}"
        assert text.endswith((".", "?", ":")), f"{package}.{name}: {text!r} is not a sentence"
    assert len(set(said.values())) == len(said)


def test_every_package_lists_its_names_by_task_each_once(reference, written):
    for package, names in reference.first_packages().items():
        if names:
            listed = re.findall(rf"\* - :doc:`(\w+) <{re.escape(package)}\.", written[package])
            assert sorted(listed) == sorted(names)
            assert f"<{package}>" in written["index"]
    headings = re.findall(r"^(.+)\n---", written["calibrant"], flags=re.M)
    assert len(headings) > 8
    assert headings[0] == "Data"
    assert re.search(r"^(.+)\n---", written["calibrant.recalibrate"], flags=re.M)[1] == "Maps that choose by themselves"


def test_every_public_name_has_one_task_and_every_name_in_the_list_of_tasks_exists(reference):
    tasks = extension("reference_tasks")
    keys = [key for names in tasks.TASKS.values() for key in names.split()]
    assert len(keys) == len(set(keys))
    used = set()
    for package, name in reference.pages():
        thing = reference.thing(package, name)
        assert tasks.task(package, name, thing) in tasks.TASKS
        used.add(tasks.key(package, name, thing))
    assert used == set(keys)


@pytest.mark.parametrize(
    ("package", "name", "title"),
    [
        ("calibrant", "ici", "Errors of probabilities"),
        ("calibrant.inference", "multinomial_recalibration", "Multiclass"),
        ("calibrant.recalibrate", "ConditionalLogit", "Multiclass"),
        ("calibrant.recalibrate", "Smoothed", "Smooth maps of a probability"),
        ("calibrant.simulate", "estimates", "Bias of an estimator"),
        ("calibrant.results", "estimates", "Results"),
    ],
)
def test_the_task_of_a_name_does_not_depend_on_the_file_it_is_defined_in(reference, package, name, title):
    assert extension("reference_tasks").task(package, name, reference.thing(package, name)) == title


def test_a_public_name_without_a_task_raises_an_error_that_says_where_to_add_it():
    with pytest.raises(KeyError, match=r"calibrant\.new has no task: add it to TASKS"):
        extension("reference_tasks").task("calibrant", "new", None)


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
