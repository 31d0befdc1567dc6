"""Sphinx configuration: the site is built offline, from Markdown pages, docstrings and the gallery's scripts."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

from calibrant import __version__  # noqa: E402 # the installed package, not a file beside this one

project = "Calibrant"
author = "The Calibrant developers"
copyright = "The Calibrant developers, Apache-2.0"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "measurements",
    "examples",
    "reference",
    "command_line",
]
root_doc = "index"
exclude_patterns = ["_extensions", "gallery"]
templates_path: list[str] = []
nitpicky = False
default_role = "py:obj"  # a name in single backticks is a link where it has a page

myst_enable_extensions = ["dollarmath", "deflist", "attrs_block", "colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstring names the types in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "pictures",
    "filename_pattern": r"/show_",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 60,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = "Calibrant"
html_static_path = ["_static"]
html_favicon = "_static/mark.svg"
html_logo = "_static/mark.svg"
html_context = {"default_mode": "auto"}
html_css_files = ["site.css"]
html_theme_options = {
    "logo": {"text": "Calibrant"},
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "secondary_sidebar_items": {"**": ["page-toc"], "peers": []},  # the last match counts
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"peers": []}
html_show_sourcelink = False
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
