"""How the site is built: `make docs`, offline, warnings as errors."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

import latex2mathml.converter
import torch
from docutils import nodes
from pygments.lexer import RegexLexer
from pygments.token import Comment, Name, String, Text
from sphinx.application import Sphinx
from sphinx.ext.autosummary import autosummary_table

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))
import handful  # noqa: E402

torch.set_num_threads(1)  # small matrices: a second thread costs more than it brings


def pages_with_wide_tables() -> list[str]:
    """Return the names of pages that have a table of seven columns or more."""
    rule = re.compile(r"^\|( ?:?-+:? ?\|){7,}$", re.MULTILINE)
    pages = (page for page in HERE.rglob("*.md") if "_build" not in page.parts)
    return [str(page.relative_to(HERE).with_suffix("")) for page in pages if rule.search(page.read_text("utf-8"))]


project = "handful"
author = "the handful developers"
copyright = author
release = handful.__version__

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
highlight_language = "commands"  # what a page does not call Python is for a terminal
default_role = "literal"  # a docstring means code by backticks
rst_epilog = r".. |Q| replace:: \|Q\|"  # and a size by bars
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext", ".ipynb": "markdown"}

html_theme = "pydata_sphinx_theme"
html_title = "handful"
html_static_path = ["_static"]
html_css_files = ["handful.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "**": ["parts.html"]}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "show_prev_next": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    # Not beside a page about one name or one example (api, auto_gallery), nor beside wide tables: they need the width.
    "secondary_sidebar_items": {
        **{
            place: ["page-toc"]
            for place in (
                "*",
                "learn/*",
                "do/*",
                "understand/*",
                "understand/methods/*",
                "measured/*",
                "project/*",
            )
        },
        **{page: [] for page in pages_with_wide_tables()},
    },
}
html_context = {"default_mode": "auto"}

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc writes types and shapes out
# What scikit-learn gives every classifier and documents itself.
autodoc_default_options = {
    "exclude-members": "get_metadata_routing, get_params, set_params, score, set_score_request, set_fit_request, "
    "set_partial_fit_request, set_predict_request, set_predict_proba_request"
}
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
    "image_srcset": ["2x"],  # sharp on a phone too
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
    drafted = ""
    if any((root / "changes").glob("*.*.md")):
        asked = ["--draft", "--version", "next", "--date", "not released yet"]
        command = [sys.executable, "-m", "towncrier", "build", *asked]
        drafted = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    released = root / "CHANGELOG.md"
    past = released.read_text(encoding="utf-8") if released.is_file() else ""
    entries = re.sub(r"^#", "##", f"{drafted}\n{past}", flags=re.MULTILINE)
    page = f"# Changelog\n\n{entries}"
    place = HERE / "changelog.md"
    if not place.is_file() or place.read_text(encoding="utf-8") != page:  # an untouched page is not built again
        place.write_text(page, encoding="utf-8")


def notebook_as_page(app: Sphinx, docname: str, content: list[str]) -> None:
    """Write a notebook as Markdown: its text, code, and what `tools/run_notebooks.py` has kept of its output."""
    if not docname.startswith("learn/notebooks/") or docname.endswith("README"):
        return
    parts = []
    for cell in json.loads(content[0])["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        # A line for Jupyter is a command.
        parts.append(f"```\n{source[1:]}\n```" if source.startswith("%") else f"```python\n{source}\n```")
        for output in cell["outputs"]:
            forms = {kind: "".join(lines) for kind, lines in output.get("data", {"text": output.get("text")}).items()}
            if "image/png" in forms:
                picture = (
                    f"<img alt='The picture that this code draws' src='data:image/png;base64,{forms['image/png']}'>"
                )
                parts.append(f"```{{raw}} html\n<p class='output'>{picture}</p>\n```")
            elif "text/html" in forms:
                parts.append(f"```{{raw}} html\n<div class='output'>{forms['text/html']}</div>\n```")
            else:
                parts.append(f"```text\n{forms['text']}```")
    content[0] = "\n\n".join(parts)


class Commands(RegexLexer):
    """Words of a command line, each in one piece, so that a narrow screen breaks lines between them only."""

    name = "commands"
    tokens: ClassVar = {
        "root": [
            (r"#(?=\s).*", Comment),
            (r"'[^'\n]*'|\"[^\"\n]*\"", String),
            (r"-[^\s=]+", Name.Attribute),
            (r"[^\s'\"]+", Name),
            (r"\s+|.", Text),
        ]
    }


LONG = 30  # characters of code that a phone has in a line


def fit_pages(app: Sphinx, doctree: nodes.document) -> None:
    """Let lines break where they can be read, and end an example without the empty line that only a test needs."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip()
            block.children = []
            block += nodes.Text(block.rawsource)
    for code in doctree.findall(nodes.literal):
        if max(map(len, code.astext().split()), default=0) > LONG:
            code["classes"].append("long")
    for table in doctree.findall(nodes.tgroup):  # the style sheet cannot count columns quickly
        table.parent["classes"] += [f"columns-{least}" for least in (3, 4, 6, 8, 10) if table["cols"] >= least]
        name_columns(table)
    for cell in doctree.findall(nodes.entry):  # lines of a table break between numbers, not within one
        for text in list(cell.findall(nodes.Text)):
            text.parent.replace(text, nodes.Text(text.replace(" ± ", "\xa0±\xa0").replace(" %", "\xa0%")))


# Columns and characters of the longest cells of a table of words: a phone shows each of its rows as a card.
CARD_COLUMNS = range(3, 6)
CARD_CHARACTERS = 50


def name_columns(table: nodes.tgroup) -> None:
    """Tell the cells of a table of words the names of their columns, which a phone writes before them."""
    head = next(iter(table.findall(nodes.thead)), None)
    if head is None or table["cols"] not in CARD_COLUMNS:
        return
    names = [cell.astext() for cell in head[-1].findall(nodes.entry)]
    rows = [list(row.findall(nodes.entry)) for row in next(iter(table.findall(nodes.tbody))).findall(nodes.row)]
    longest = (max(len(cell.astext()) for cell in column) for column in zip(*rows, strict=True))
    if sum(longest) < CARD_CHARACTERS:
        return
    table.parent["classes"].append("cards")
    for row in rows:
        for cell, name in list(zip(row, names, strict=True))[1:]:
            cell["column"] = name


def cell_with_name(translator, node: nodes.entry) -> None:
    """Write a cell, with the name of its column where `name_columns` left it."""
    type(translator).visit_entry(translator, node)
    if node.get("column"):
        tag = translator.body[-1]
        translator.body[-1] = tag.replace("<td", f'<td data-column="{html.escape(node["column"])}"', 1)


def cell_end(translator, node: nodes.entry) -> None:
    """End a cell."""
    type(translator).depart_entry(translator, node)


FUNCTIONS = {"cos", "exp", "ln", "max", "mean", "min", "softmax"}


def formula(tex: str, display: str) -> str:
    """Return MathML, which browsers draw by themselves: no script, no network.

    The converter leaves the space around a function and the side of a bar to be guessed; here they are stated.
    """
    found = latex2mathml.converter.convert_to_element(tex, display=display)
    for part in found.iter():
        part.text = html.unescape(part.text or "").removeprefix("\\")  # of a brace
    opened = {"|": False, "‖": False}
    for above in found.iter():
        for part, after in zip_longest(above, above[1:]):
            if part.text in FUNCTIONS:
                closed = part.text == "softmax" or "".join(() if after is None else after.itertext())[:1] == "("
                part.tag = "mo"
                part.attrib |= {"form": "prefix", "lspace": "0.17em", "rspace": "0" if closed else "0.17em"}
    for part in found.iter():
        if part.tag == "mo" and part.text in opened:
            opened[part.text] = not opened[part.text]
            form = "prefix" if opened[part.text] else "postfix"
            part.attrib |= {"form": form, "stretchy": "false", "lspace": "0", "rspace": "0"}
        elif part.text == "~":
            part.tag, part.text = "mo", "∼"
        elif part.tag == "msub" and display == "block" and part[0].text == "min":
            part.tag = "munder"
    return ElementTree.tostring(found, encoding="unicode")


def math_in_line(translator, node: nodes.math) -> None:
    """Write a formula in the line."""
    translator.body.append(formula(node.astext(), "inline"))
    raise nodes.SkipNode


def math_on_its_own(translator, node: nodes.math_block) -> None:
    """Write a displayed formula: a narrow screen breaks it between its statements, and scrolls what is longer."""
    tex, _, number = node.astext().partition(r"\tag")
    statements = [formula(statement, "block") for statement in tex.split(r"\qquad")]
    numbers = [f'<span class="number">({number.strip(" {}")})</span>'] if number else []
    translator.body.append(f'<div class="formula">{"".join([*statements, *numbers])}</div>')
    raise nodes.SkipNode


def nothing(*_: object) -> None:
    """Leave a node as it is."""


def skip_fields(app: Sphinx, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Leave out what Python says about the fields of a named tuple; the docstring explains them."""
    return True if (getattr(thing, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app: Sphinx) -> None:
    """Tell Sphinx about the functions above."""
    app.add_html_math_renderer("mathml", (math_in_line, None), (math_on_its_own, None))
    app.add_node(nodes.entry, override=True, html=(cell_with_name, cell_end))
    app.add_lexer("commands", Commands)
    # By default signatures in lists of names cannot break between parameters, so a phone breaks them within words.
    app.add_node(autosummary_table, override=True, html=(nothing, nothing))
    app.connect("source-read", notebook_as_page)
    app.connect("doctree-read", fit_pages)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("builder-inited", gather_changes, priority=1)


html_math_renderer = "mathml"
