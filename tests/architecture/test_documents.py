"""Documents say what is so: links lead somewhere, public names are explained, figures are those of their files."""

import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest

import handful

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / ".github").rglob("*.md"),
    # Pages that the build of the site writes itself are left out.
    *(p for p in (ROOT / "docs").rglob("*.md") if not {"_build", "auto_gallery", "api"} & set(p.parts)),
]
FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PUBLIC = ("handful", "handful.tasks", "handful.features", "handful.datasets", "handful.benchmark", "handful.errors")
# Values, which cannot carry a docstring: docs/api.rst explains them.
TABLES = {"METHODS", "TRANSFORMS"}
# An alias, and what needs a package that the tests do not have.
WITHOUT_EXAMPLE = {"Plan", "from_hugging_face"}

sys.path.insert(0, str(ROOT / "tools"))


def links(page: Path) -> list[str]:
    """Targets of the page's links within the repository, those in code left out."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    return [target for target in LINK.findall(prose) if not re.match(r"[a-z]+:", target)]


def made_by_the_site(target: Path) -> bool:
    """Whether a target is written when the site is built, from something that is there."""
    inside = target.relative_to(ROOT / "docs") if target.is_relative_to(ROOT / "docs") else Path()
    if inside.parts[:1] == ("auto_gallery",):
        return inside.name == "index.rst" or (ROOT / "docs" / "gallery" / f"{inside.stem}.py").is_file()
    if inside.parts[:1] == ("drawn",):
        return (ROOT / "tools" / f"draw_{inside.stem}.py").is_file()
    return inside == Path("changelog.md")


def anchors(page: Path) -> set[str]:
    """Anchors of the page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_there_are_pages_with_links():
    assert len(PAGES) > 30
    assert sum(len(links(page)) for page in PAGES) > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in links(page):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists() or made_by_the_site(target), (
            f"{page.relative_to(ROOT)} links to {link}, which is not there"
        )
        if anchor and target.suffix == ".md" and target.exists():
            assert anchor in anchors(target), f"{page.relative_to(ROOT)} links to {link}, which has no such heading"


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_explained_with_an_example(module):
    home = importlib.import_module(module)
    names = getattr(home, "__all__", None) or [
        name for name, value in vars(home).items() if inspect.isclass(value) and value.__module__ == module
    ]
    for name in names:
        said = inspect.getdoc(getattr(home, name)) or ""
        assert said or name in TABLES, f"{module}.{name} has no docstring"
        if module != "handful.errors" and name not in WITHOUT_EXAMPLE | TABLES:
            assert "Examples\n--------\n" in said, f"{module}.{name} has no example"


@pytest.mark.parametrize("name", ["PaddleClassifier", "TransductiveClassifier"])
def test_estimators_are_explained_with_an_example(name):
    assert "Examples\n--------\n" in (
        inspect.getdoc(getattr(importlib.import_module("handful.estimators"), name)) or ""
    )


def test_public_methods_and_properties_are_explained():
    for name in handful.__all__:
        value = getattr(handful, name)
        if inspect.isclass(value):
            for member, thing in vars(value).items():
                if not member.startswith("_") and (callable(thing) or hasattr(thing, "__get__")):
                    assert inspect.getdoc(getattr(value, member)), f"handful.{name}.{member} has no docstring"


def test_the_reference_lists_every_public_name():
    listed = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    for name in handful.__all__:
        assert re.search(rf"^(   |\.\. py:data:: ){name}$", listed, re.MULTILINE), f"docs/api.rst leaves out {name}"


def test_figures_of_the_readme_are_those_of_the_studies():
    readme_figures = importlib.import_module("readme_figures")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text == readme_figures.with_figures(text), "README.md is behind the studies: python tools/readme_figures.py"


def test_a_figure_that_was_changed_by_hand_is_found_out():
    readme_figures = importlib.import_module("readme_figures")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    figures = readme_figures.figures()
    number = re.search(r"\d\d\.\d", figures)[0]
    changed = text.replace(figures, figures.replace(number, "99.9"))
    assert changed != text
    assert readme_figures.with_figures(changed) == text


def test_the_drawing_has_every_module_of_the_contracts():
    draw_architecture = importlib.import_module("draw_architecture")
    layers = draw_architecture.layers()
    picture = draw_architecture.drawing()
    at = [picture.index(f">{layer[0].removeprefix('handful.').replace('.', '/')}<") for layer in layers]
    assert at == sorted(at)
    for module in (name for layer in layers for name in layer):
        assert f'class="name">{module.removeprefix("handful.").replace(".", "/")}<' in picture
        assert draw_architecture.purpose(module), f"{module} does not say what it is for"


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert project["version"] == handful.__version__ == cited[1]


def test_the_server_runs_what_everybody_runs():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    commands = re.findall(r"^\s*- run: (.+)$", workflow, re.MULTILINE)
    assert commands == ["bash .ci/run"]
