"""A release whose tag, package, changelog and citation disagree is stopped."""

import datetime
import re

import pytest
from tools.release import PLACES, ROOT

from tools import release


@pytest.fixture
def root(tmp_path):
    (tmp_path / "src" / "calibrant").mkdir(parents=True)
    (tmp_path / "src" / "calibrant" / "_version.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 - 2026-12-01\n\n## 1.2.2 - 2026-11-01\n")
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 1.2.3\n")
    (tmp_path / "packaging" / "conda").mkdir(parents=True)
    (tmp_path / "packaging" / "conda" / "recipe.yaml").write_text('context:\n  version: "1.2.3"\n')
    return tmp_path


def test_a_release_that_agrees_with_itself_passes(root, capsys):
    assert release.main("v1.2.3", root) == 0
    assert "v1.2.3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("src/calibrant/_version.py", '__version__ = "1.2.3.dev0"\n', "1.2.3.dev0"),
        ("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-12-01\n", "Unreleased"),
        ("CITATION.cff", "version: 1.2.2\n", "1.2.2"),
        ("packaging/conda/recipe.yaml", 'context:\n  version: "1.2.1"\n', "1.2.1"),
    ],
)
def test_each_disagreement_is_named(root, capsys, file, text, said):
    (root / file).write_text(text)
    assert release.main("v1.2.3", root) == 1
    assert said in capsys.readouterr().out


def test_a_tag_of_another_form_is_refused(root):
    assert any("v<major>" in fault for fault in release.faults("1.2.3rc1", root))


def test_the_version_is_written_everywhere_and_the_changelog_dated(root):
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\nNew.\n\n## 1.2.3 - 2026-12-01\n")
    assert list(release.faults("v1.3.0", root))
    release.write("v1.3.0", root, day=datetime.date(2027, 1, 2))
    assert list(release.faults("v1.3.0", root)) == []
    text = (root / "CHANGELOG.md").read_text()
    assert text == "# Changelog\n\n## 1.3.0 - 2027-01-02\n\nNew.\n\n## 1.2.3 - 2026-12-01\n"
    release.write("v1.3.1", root)  # without an "Unreleased" section nothing is said to be in it
    assert [fault for fault in release.faults("v1.3.1", root) if "CHANGELOG" in fault]


def test_package_citation_and_recipe_name_one_version():
    said = {
        place: re.search(pattern, (ROOT / place).read_text("utf8"), re.M)[1] for place, (pattern, _) in PLACES.items()
    }
    assert len(set(said.values())) == 1, said
