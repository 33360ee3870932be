"""Sphinx's settings: plain Markdown in, one site out, without the network."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from reference_pages import write_pages  # noqa: E402

project = "peerveil"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "notebooks"]
html_theme = "furo"
html_title = "peerveil"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"

write_pages(DOCS / "reference")
