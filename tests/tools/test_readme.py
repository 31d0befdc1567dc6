"""What the README shows is what its command prints, to the digit."""

import pytest

from tools import readme


@pytest.mark.no_cover
def test_the_console_block_is_what_the_command_prints():
    text = readme.README.read_text(encoding="utf8")
    assert readme.renewed(text) == text


def test_a_readme_without_the_command_is_told():
    with pytest.raises(ValueError, match="calibrant report"):
        readme.renewed("nothing")
