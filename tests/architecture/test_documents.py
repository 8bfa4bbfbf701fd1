"""Documents say what is so: links lead somewhere, public names are explained, figures are those of their files."""

import doctest
import importlib
import inspect
import json
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

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
PUBLIC = tuple(
    f"handful{package}"
    for package in (
        "",
        ".banks",
        ".datasets",
        ".catalogue",
        ".estimators",
        ".large",
        ".many",
        ".fewshot",
        ".fewshot.tasks",
        ".fewshot.benchmark",
        ".fewshot.training",
    )
)
# Values, which cannot carry a docstring: docs/api.rst explains them.
TABLES = {"METHODS", "TRANSFORMS"}
ALIASES = {"Plan"}

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "studies")]


def listed_in_the_reference() -> list[str]:
    """Full names of what docs/api.rst lists, each under the module that holds there."""
    names, module = [], ""
    for line in (ROOT / "docs" / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [\w.]+", line):
            names.append(f"{module}.{line.strip()}")
    return names


def named(name: str) -> object:
    """Return what a full name stands for."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


REFERENCE = listed_in_the_reference()


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


def test_links_lead_somewhere():
    for page, link in [(source, link) for source in PAGES for link in links(source)]:
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists() or made_by_the_site(target), (
            f"{page.relative_to(ROOT)} links to {link}, which is not there"
        )
        if anchor and target.suffix == ".md" and target.exists():
            assert anchor in anchors(target), f"{page.relative_to(ROOT)} links to {link}, which has no such heading"


def test_everything_in_the_reference_is_explained_with_an_example():
    for name in REFERENCE:
        said = inspect.getdoc(named(name)) or ""
        assert "Examples\n--------\n" in said, f"{name} has no section Examples"
        shown = doctest.DocTestParser().get_examples(said)
        assert any(doctest.SKIP not in example.options for example in shown), f"no example of {name} is run"


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_lists_what_a_package_offers(module):
    listed = [named(name) for name in REFERENCE]
    for name in importlib.import_module(module).__all__:
        if name not in TABLES | ALIASES:
            value = named(f"{module}.{name}")
            assert any(value is other for other in listed), f"docs/api.rst leaves out {module}.{name}"


def test_tables_are_explained_in_the_reference_itself():
    page = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    assert set(re.findall(r"^\.\. py:data:: (\w+)$", page, re.MULTILINE)) == TABLES
    assert page.count("   >>> ") >= len(TABLES)


def test_public_methods_and_properties_are_explained():
    names = [*handful.__all__, *handful.fewshot.__all__]
    for name in names:
        value = getattr(handful, name, None) or getattr(handful.fewshot, name)
        if inspect.isclass(value):
            for member, thing in vars(value).items():
                if not member.startswith("_") and (callable(thing) or hasattr(thing, "__get__")):
                    assert inspect.getdoc(getattr(value, member)), f"{name}.{member} has no docstring"


def test_figures_of_the_readme_are_those_of_the_studies():
    readme_figures = importlib.import_module("readme_figures")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text == readme_figures.with_figures(text), "README.md is behind the studies: python tools/readme_figures.py"


def test_figures_changed_by_hand_are_found_out():
    readme_figures = importlib.import_module("readme_figures")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, marker, after = text.partition(readme_figures.BEGIN)
    changed = before + marker + after.replace(readme_figures.figures(), "| 99.9 |\n", 1)
    assert changed != text
    assert readme_figures.with_figures(changed) == text


def test_figures_of_the_readme_come_from_the_study_of_real_uses(tmp_path, monkeypatch):
    readme_figures = importlib.import_module("readme_figures")
    monkeypatch.setattr(readme_figures, "RESULTS", tmp_path)
    assert readme_figures.figures() == readme_figures.NOT_YET
    batches = [{"means": 50.0 + n, "joint": 80.0 + n, "known_rejected": 2.0} for n in (0, 2)]
    kept = {"clips, nothing unknown": batches, "clips, some unknown": batches, "others, nothing unknown": batches}
    (tmp_path / "0.3.json").write_text(json.dumps(kept))
    shown = readme_figures.figures()
    assert shown.count("\n| ") == 1
    assert "half-second clips | 60 | 3 | 4 to 6 | 51.0 | 81.0 | +30.0 ± 0.0 | 2 % |\n\n" in shown
    assert shown.endswith("Each figure is a mean over 2 batches.\n")


def test_links_of_the_readme_are_absolute_where_it_is_shown_outside_the_repository():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    site, hook = project["project"]["urls"]["Documentation"], project["tool"]["hatch"]["metadata"]["hooks"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for rule in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    shown = LINK.findall(FENCE.sub("", text))
    assert len(shown) > 15
    for link in shown:
        assert link.startswith(site), f"{link} of README.md leads nowhere on PyPI"
        page = link.removeprefix(site).partition("#")[0]
        source = page.removesuffix(".html") + ".md" if page.endswith(".html") else page.replace("_images", "images")
        assert (ROOT / "docs" / source).is_file(), link


def test_the_picture_of_the_problem_is_drawn_from_the_data():
    draw_problem = importlib.import_module("draw_problem")
    assert draw_problem.PLACE.read_text(encoding="utf-8") == draw_problem.picture(), "python tools/draw_problem.py"


def test_tables_of_the_stand_ins_are_those_of_their_study():
    stand_ins = importlib.import_module("paper_stand_ins")
    text = stand_ins.PAGE.read_text(encoding="utf-8")
    assert text == stand_ins.rendered(text), "the page is behind: python studies/paper_stand_ins.py --render"


def test_tables_of_harm_are_those_of_their_study():
    harm_page = importlib.import_module("harm_page")
    page = harm_page.PAGE.read_text(encoding="utf-8")
    assert page == harm_page.page(), f"{harm_page.PAGE.name} is behind: python studies/harm_page.py"
    for document in harm_page.DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert text == harm_page.with_summary(text), f"{document.name} is behind: python studies/harm_page.py"
        changed = harm_page.MARKED.sub(lambda match: f"{match['begin']}\nby hand\n\n{match['end']}", text)
        assert changed != text
        assert harm_page.with_summary(changed) == text


def test_the_first_minutes_are_those_that_were_measured():
    page = (ROOT / "docs" / "first_steps.md").read_text(encoding="utf-8")
    steps = json.loads((ROOT / "perf" / "results" / "from_nothing.json").read_text(encoding="utf-8"))["steps"]
    assert all(step["ended_well"] for step in steps)
    wanted = ("pip install torch==2.13.0", "pip install 'handful[fewshot,plots]'")
    first = [next(step for step in steps if step["what"].endswith(end)) for end in wanted]
    for step in first:
        assert f"{step['processor_seconds']}" in page
        assert f"{step['seconds']}" in page


def test_dead_links_of_the_built_site_are_named(tmp_path):
    check_site = importlib.import_module("check_site")
    (tmp_path / "one.html").write_text('<h1 id="top">One</h1><a href="deep/two.html#here">two</a><a href="#top">up</a>')
    (tmp_path / "deep").mkdir()
    two = tmp_path / "deep" / "two.html"
    two.write_text('<p id="here"><a href="../one.html">one</a><a href="https://elsewhere.org/nothing">else</a>')
    assert check_site.dead_links(tmp_path) == []
    check_site.read.cache_clear()
    two.write_text('<a href="../three.html">three</a><a href="../one.html#middle">no</a><img src="picture.svg">')
    assert check_site.dead_links(tmp_path) == [
        "deep/two.html: ../three.html",
        "deep/two.html: ../one.html#middle",
        "deep/two.html: picture.svg",
        "one.html: deep/two.html#here",
    ]


def test_links_of_the_readme_and_to_the_own_site_are_checked_against_the_tree_and_the_built_site(tmp_path):
    check_site = importlib.import_module("check_site")
    check_site.read.cache_clear()
    root, site = tmp_path / "root", tmp_path / "site"
    for place in (root / "docs", site):
        place.mkdir(parents=True)
    (root / "LICENSE").touch()
    (root / "docs" / "one.md").touch()
    (site / "index.html").touch()
    (site / "one.html").write_text(f'<h1 id="top"><a href="{check_site.REPOSITORY}/blob/main/LICENSE">l</a>')
    good = ["docs/one.md", "docs/one.md#top", "docs/", "LICENSE", "https://elsewhere.org", check_site.REPOSITORY]
    good += [check_site.SITE, f"{check_site.SITE}one.html#top", f"{check_site.REPOSITORY}/issues"]
    bad = ["docs/two.md", "docs/one.md#bottom", "NOTHING", f"{check_site.SITE}two.html"]
    bad += [f"{check_site.SITE}one.html#bottom", f"{check_site.REPOSITORY}/blob/main/NOTHING"]
    (root / "README.md").write_text(" ".join(f"[x]({link})" for link in good + bad))
    assert check_site.dead_links(site, root) == []
    assert check_site.dead_links_of_readme(site, root) == [f"README.md: {link}" for link in bad]


def test_pages_that_nothing_leads_to_are_named(tmp_path):
    check_site = importlib.import_module("check_site")
    check_site.read.cache_clear()
    (tmp_path / "deep").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="deep/two.html#here">two</a><a href="https://elsewhere.org/x.html">x</a>'
    )
    (tmp_path / "deep" / "two.html").write_text('<p id="here"><a href="../three.html">three</a>')
    (tmp_path / "three.html").write_text("three")
    assert check_site.unreachable_pages(tmp_path) == []
    (tmp_path / "deep" / "four.html").write_text('<a href="../index.html">front page</a>')
    assert check_site.unreachable_pages(tmp_path) == ["deep/four.html: no page leads to it"]


def test_the_drawing_has_every_module_of_the_contracts():
    draw_architecture = importlib.import_module("draw_architecture")
    layers = [layer for house in draw_architecture.houses().values() for layer in house]
    picture = draw_architecture.drawing()
    at = [picture.index(f">{layer[0].removeprefix('handful.').replace('.', '/')}<") for layer in layers]
    assert at == sorted(at)
    for module in (name for layer in layers for name in layer):
        assert f'class="name">{module.removeprefix("handful.").replace(".", "/")}<' in picture
        assert draw_architecture.purpose(module), f"{module} does not say what it is for"


def test_a_run_comes_to_the_files_in_the_order_of_the_page_about_them(tmp_path):
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\d\. `([\w/]+\.py)`", page, re.MULTILINE)
    np.savez(tmp_path / "catalogue.npz", features=np.eye(3), labels=["cat", "dog", "fox"])
    np.save(tmp_path / "batch.npy", np.eye(3)[[1, 1, 0, 1]])
    asked = ["classify", "--catalogue", tmp_path / "catalogue.npz", "--batch", tmp_path / "batch.npy"]
    came = {}

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name not in ("<module>", "<lambda>"):
            came.setdefault(frame.f_code.co_filename, len(came))

    app = importlib.import_module("handful.cli.main").make_app()
    for path in listed:  # imported first: a definition that runs is not a stay
        importlib.import_module(f"handful.{path.removesuffix('.py').replace('/', '.')}")
    sys.setprofile(note)
    try:
        ran = CliRunner().invoke(app, [*map(str, asked), "--out", str(tmp_path / "labels.csv")])
    finally:
        sys.setprofile(None)
    assert ran.exit_code == 0, ran.output
    places = [came[str(Path(handful.__file__).parent / path)] for path in listed]
    assert len(places) >= 6
    assert places == sorted(places)


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert project["version"] == handful.__version__ == cited[1]


def test_the_lowest_versions_that_are_run_are_those_that_are_claimed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    claimed = {}
    for line in [*project["dependencies"], *extras]:
        name, lowest = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line).groups()
        assert claimed.setdefault(name, lowest) == lowest, f"two lower bounds of {name}"
    pins = (ROOT / "requirements-lowest.txt").read_text(encoding="utf-8")
    run, _, beside = pins.partition("# Not claimed")
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", run, re.MULTILINE))
    assert {"numpy", "scikit-learn", "pyarrow", "typer", "rich", "matplotlib"} <= set(pinned) <= set(claimed)
    for name, version in pinned.items():
        assert re.fullmatch(rf"{re.escape(claimed[name])}(\.0)*", version), f"{name}: {claimed[name]}, run {version}"
    assert not set(re.findall(r"^([\w-]+)==", beside, re.MULTILINE)) & set(claimed)


def test_the_server_runs_what_everybody_runs():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    commands = re.findall(r"^\s*- run: (.+)$", workflow, re.MULTILINE)
    assert commands == ["bash .ci/run"]


def test_tables_of_unknown_items_are_those_of_their_study():
    unknown_page = importlib.import_module("unknown_page")
    page = unknown_page.PAGE.read_text(encoding="utf-8")
    assert page == unknown_page.page(), f"{unknown_page.PAGE.name} is behind: python studies/unknown_page.py"
