"""The page around its parts: a policy that names style and script, and nothing that is loaded."""

import base64
import hashlib
import re

from calibrant.reporting.layout.sheet import footer, fragment_style, sheet, style_text

PAGE = sheet("Title <b>", "text <i>", footer())


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_names_style_and_script_by_their_hash_and_nothing_else():
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', PAGE)[1]
    script = re.search(r"<script>(.*)</script>", PAGE, re.DOTALL)[1]
    style = re.search(r"<style>(.*)</style>", PAGE, re.DOTALL)[1]
    assert policy == (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; base-uri 'none'; "
        f"form-action 'none'"
    )
    assert "unsafe" not in policy


def test_text_is_escaped_and_nothing_is_loaded():
    assert "<title>Title &lt;b&gt;</title>" in PAGE
    assert "text &lt;i&gt;" in PAGE
    assert not re.search(r"\b(src|@import|url\(\s*['\"]?http)", PAGE.replace("-src", ""))


def test_the_script_is_small_and_the_style_of_a_notebook_reaches_nothing_outside():
    script = re.search(r"<script>(.*)</script>", PAGE, re.DOTALL)[1]
    assert len(script) < 2000
    for selectors in re.findall(r"^([^{}@/\n][^{}]*)\{", fragment_style().removeprefix("<style>"), re.MULTILINE):
        assert all(".calibrant" in selector for selector in selectors.split(",")), selectors
    assert fragment_style().removeprefix("<style>").removesuffix("</style>") in style_text()
