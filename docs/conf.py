"""How the site is built: `make docs`, offline, warnings as errors."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import latex2mathml.converter
import torch
from docutils import nodes
from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))
torch.set_num_threads(1)  # small matrices: a second thread costs more than it brings

project = "handful"
author = "the handful developers"
copyright = author
release = metadata.version("handful")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_templates",
    "gallery",
    "auto_gallery/*.ipynb",
    "auto_gallery/*.py",
    "auto_gallery/*.zip",
]
default_role = "literal"  # a docstring means code by backticks
rst_epilog = r".. |Q| replace:: \|Q\|"  # and a size by bars
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

html_theme = "pydata_sphinx_theme"
html_title = "handful"
html_static_path = ["_static"]
html_css_files = ["handful.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {
    page: []
    for page in ("index", "sixty_seconds", "choose_a_method", "feature_scaling", "changelog", "citing", "architecture")
}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["navbar-icon-links"],  # figures are drawn on white, so there is no dark page to switch to
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    # Not beside a page about one name or one example (api, auto_gallery): there the width serves the code better.
    "secondary_sidebar_items": {
        place: ["page-toc"] for place in ("*", "how_to/*", "tutorials/*", "methods/*", "decisions/*")
    },
}
html_context = {"default_mode": "light"}

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc writes types and shapes out
# What scikit-learn gives every classifier and documents itself.
autodoc_default_options = {"exclude-members": "set_score_request, set_fit_request, set_partial_fit_request"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions, which Sphinx cannot store

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,  # times belong to the machine, not to the page
    "show_memory": False,
    "capture_repr": (),
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
    "reference_url": {},
}


def gather_changes(app: Sphinx) -> None:
    """Write the changelog page from the fragments of the next release and the releases before it."""
    root = HERE.parent
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", release, "--date", "unreleased"]
    drafted = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    released = root / "CHANGELOG.md"
    past = released.read_text(encoding="utf-8") if released.is_file() else ""
    entries = re.sub(r"^#", "##", f"{drafted}\n{past}", flags=re.MULTILINE)
    page = f"# Changelog\n\n{entries}"
    place = HERE / "changelog.md"
    if not place.is_file() or place.read_text(encoding="utf-8") != page:  # an untouched page is not built again
        place.write_text(page, encoding="utf-8")


def draw_pictures(app: Sphinx) -> None:
    """Draw what pages show, from the data and the contracts as they are now."""
    tools = HERE.parent / "tools"
    for name in ("draw_problem", "draw_architecture"):
        subprocess.run([sys.executable, str(tools / f"{name}.py")], check=True, capture_output=True)


def math_in_line(translator, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers draw by themselves: no script, no network."""
    translator.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def math_on_its_own(translator, node: nodes.math_block) -> None:
    """Write a displayed formula as MathML, in a box that scrolls on a narrow screen."""
    formula = latex2mathml.converter.convert(node.astext(), display="block")
    translator.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Tell Sphinx about the functions above."""
    app.add_html_math_renderer("mathml", (math_in_line, None), (math_on_its_own, None))
    app.connect("builder-inited", gather_changes, priority=1)
    app.connect("builder-inited", draw_pictures, priority=1)


html_math_renderer = "mathml"
