"""Pages can be read: they are short, their links resolve, and each journey begins two links from the first page."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
#: Folders that the build of the site makes, and those of evidence and derivations, which may be long.
MADE = {"reference", "pictures", "benchmarks", "reproduce", "drawn"}
LONG = {"evidence", "methods"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in MADE)
#: No other page has more words.
WORDS = 1500
#: The call stands on the first screen.
FIRST_SCREEN = 40
JOURNEYS = {
    "fraud": "cookbook/fraud.md",
    "LLM evaluation": "for/llm-evaluation.md",
    "images with a thousand classes": "for/images.md",
    "clinic": "for/clinicians.md",
    "quantile forecasts": "for/forecasters.md",
    "molecules": "for/molecules.md",
    "scikit-learn": "for/scikit-learn.md",
    "leads without negatives": "positive-unlabeled.md",
}


def links(page: Path) -> dict[str, Path]:
    """The relative links of a page, and the files they lead to."""
    found = re.findall(r"\]\((?!https?:|#|mailto:)([^)\s]+)", page.read_text(encoding="utf8"))
    return {link: (page.parent / link.partition("#")[0]).resolve() for link in found}


def anchors(page: Path) -> set[str]:
    """The names under which headings of a page can be linked."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf8"), flags=re.M | re.S)
    headings = re.findall(r"^#{1,3} (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_page_of_instructions_is_long():
    lengths = {page.relative_to(DOCS).as_posix(): len(page.read_text(encoding="utf8").split()) for page in PAGES}
    assert {name: n for name, n in lengths.items() if name.split("/")[0] not in LONG and n > WORDS} == {}


def test_every_relative_link_leads_to_a_file_and_a_heading():
    broken = []
    for page in PAGES:
        for link, target in links(page).items():
            heading = link.partition("#")[2]
            made = target.is_relative_to(DOCS) and target.relative_to(DOCS).parts[0] in MADE
            if not made and not target.exists():
                broken.append(f"{page.name}: {link} has no file")
            elif heading and target.suffix == ".md" and not made and heading not in anchors(target):
                broken.append(f"{page.name}: {link} has no such heading")
    assert broken == []


@pytest.mark.parametrize("name", JOURNEYS)
def test_each_journey_begins_within_two_links_and_shows_its_call_on_the_first_screen(name):
    page = (DOCS / JOURNEYS[name]).resolve()
    first = set(links(DOCS / "index.md").values())
    second = {target for near in first if near.suffix == ".md" and near.exists() for target in links(near).values()}
    assert page in first | second
    screen = "\n".join(page.read_text(encoding="utf8").split("\n")[:FIRST_SCREEN])
    code = "".join(re.findall(r"^```\w*\n(.*?)(?:^```|\Z)", screen, flags=re.M | re.S))
    assert re.search(r"\b(?:cal\.\w+|calibrant \w+|RecalibratedClassifier)", code), f"{page.name} has no call"
