"""Documents say what is so: links lead somewhere, public names are explained, figures are those of their files."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    ROOT / "src" / "handful_fewshot" / "README.md",
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
        ".fitted",
        ".estimators",
        ".scale",
        ".workers",
        "_fewshot",
        "_fewshot.tasks",
        "_fewshot.benchmark",
        "_fewshot.training",
    )
)
# Values, which cannot carry a docstring: docs/api.rst explains them.
TABLES = {"METHODS", "TRANSFORMS"}
ALIASES = {"Plan"}

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "studies")]


# The heading of docs/api.rst below which are the parts for programmers of other packages.
BUILDING = "For packages that build on handful"


def listed_in_the_reference() -> dict[str, str]:
    """Full names of what docs/api.rst lists, each under the module that holds there, with the heading above."""
    names, module, heading, before = {}, "", "", ""
    for line in (ROOT / "docs" / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"-+", line):
            heading = before
        elif re.fullmatch(r"   [\w.]+", line):
            names[f"{module}.{line.strip()}"] = heading
        before = line
    return names


def values_in_the_reference() -> list[str]:
    """Full names of the values that docs/api.rst explains itself: they cannot carry a docstring."""
    page = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    return [
        name for line in re.findall(r"^\.\. py:data:: (handful\..+)$", page, re.MULTILINE) for name in line.split(", ")
    ]


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


def test_links_lead_somewhere():
    for page, link in [(source, link) for source in PAGES for link in links(source)]:
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        inside = target.is_relative_to(ROOT / "docs") or not page.is_relative_to(ROOT / "docs")
        assert inside, f"{page.relative_to(ROOT)} links to {link}, which the site does not have"
        assert target.exists() or made_by_the_site(target), (
            f"{page.relative_to(ROOT)} links to {link}, which is not there"
        )
        if anchor and target.suffix == ".md" and target.exists():
            assert anchor in anchors(target), f"{page.relative_to(ROOT)} links to {link}, which has no such heading"


def test_the_map_of_the_tests_and_the_commands_of_ci_name_files_that_exist():
    for row in (ROOT / "tests" / "README.md").read_text(encoding="utf-8").splitlines():
        folder = Path()
        for name in re.findall(r"`([^`]+)`", row.rpartition(" | ")[2] if row.startswith("| ") else ""):
            folder = Path(name).parent if "/" in name.rstrip("/") else folder
            places = [ROOT / "tests" / folder / Path(name).name, ROOT / "tests" / name, ROOT / name]
            assert any(place.exists() for place in places), f"tests/README.md names {name}"
    for file in [*(ROOT / ".ci").iterdir(), *(ROOT / ".github" / "workflows").iterdir(), ROOT / "Makefile"]:
        for name in re.findall(r"(?:tests|tools|perf|studies)/[\w/.]*\w", file.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{file.name} names {name}"


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


def test_links_of_the_readme_lead_to_the_site_once_there_is_one():
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    made, site = importlib.import_module("package_metadata"), "https://example.org/docs/"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert made.readme(text, None) == text
    shown = LINK.findall(FENCE.sub("", made.readme(text, site)))
    shown += re.findall(r'(?:src|srcset)="([^"]+)"', made.readme(text, site))
    assert len(shown) > 15
    headings = {"#" + title.lower().replace(" ", "-") for title in re.findall(r"^## ([\w ]+)$", text, re.MULTILINE)}
    for link in set(shown) - headings:
        assert link.startswith(site), f"{link} of README.md leads nowhere outside the repository"
        page = link.removeprefix(site).partition("#")[0]
        source = page.removesuffix(".html") + ".md" if page.endswith(".html") else page.replace("_images", "images")
        assert (ROOT / "docs" / source).is_file(), link
    assert made.urls({}) == {}
    published = {"site": site, "repository": "https://example.org/r"}
    assert made.urls(published)["Issues"] == "https://example.org/r/issues"


FIRST_STEPS = ROOT / "docs" / "learn" / "first_steps.md"


def test_the_pictures_of_the_tour_are_of_the_commands_beside_them():
    pytest.importorskip("PIL", reason="Pillow is not installed")
    draw_tour, text = importlib.import_module("draw_tour"), FIRST_STEPS.read_text(encoding="utf-8")
    assert f"\n{draw_tour.BUILD}\n{draw_tour.REVIEW}\n" in text
    for number in (1, 2, 3):
        assert f"](../images/tour_{number}.png)" in text
        assert (draw_tour.IMAGES / f"tour_{number}.png").stat().st_size < 120_000


def test_the_film_and_its_pictures_are_of_the_command_beside_them():
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    drawn, text = importlib.import_module("draw_film"), FIRST_STEPS.read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for where in (text, readme):
        assert f"\n{drawn.REVIEW}\n" in where
    for number in (1, 2, 3):
        assert f"](../images/film_{number}.jpg)" in text
        assert (drawn.IMAGES / f"film_{number}.jpg").stat().st_size < 120_000
    assert "docs/images/film.webp" in readme
    assert drawn.FILM.stat().st_size < 1_500_000
    with image.open(drawn.FILM) as film:
        milliseconds = []
        for frame in range(film.n_frames):
            film.seek(frame)
            film.load()
            milliseconds.append(film.info["duration"])
    assert sum(milliseconds) < 60_000


ADDRESS = re.compile(r"https?://[^\s\"'<>)}\]`\\]+")


def test_every_address_is_one_that_somebody_has_checked():
    check_site = importlib.import_module("check_site")
    kinds = {".py", ".md", ".rst", ".toml", ".cff", ".yml", ".yaml", ".txt", ".ipynb", ".js", ".css", ".html", ""}
    skipped = {".git", "_build", "auto_gallery", "api", "tests", "results", "node_modules", ".venv", "build", "dist"}
    files = [
        path
        for path in ROOT.rglob("*")
        if path.suffix in kinds and path.is_file() and not skipped & set(path.relative_to(ROOT).parts)
        if not any(part.endswith(("_cache", ".egg-info")) for part in path.parts)
    ]
    assert {"README.md", "pyproject.toml", "CITATION.cff", "config.yml", "first_batch.ipynb"} <= {f.name for f in files}
    for path in files:
        for address in ADDRESS.findall(path.read_text(encoding="utf-8")):
            if "{" not in address:  # that of a running program
                assert check_site.is_real(address), (
                    f"{path.relative_to(ROOT)} names {address}: not in tools/addresses.txt"
                )
    assert not check_site.is_real("https://github.com/clinc/oos-evaluation")
    assert not check_site.is_real("https://handful.readthedocs.io/")


def test_documents_install_from_where_handful_is():
    release = importlib.import_module("release")
    registry = re.compile(r"pip install [^`\n]*\bhandful(?![\w-])")
    documents = [*release.documents(), *(ROOT / ".github").rglob("*.yml"), ROOT / "src/handful/cli/demo.py"]
    assert len(documents) > 60
    for path in documents:
        text = path.read_text(encoding="utf-8")
        if release.published():
            assert release.as_published(text) == text, f"{path.name}: python tools/release.py publish"
        else:
            assert not registry.search(text), f"{path.relative_to(ROOT)} installs handful from where it is not"
            assert "olab" not in text.replace("ollab", ""), f"{path.name}: Colab cannot install what is not published"


# Programs that write a document, wholly or between two marks: where it is, and its text from the text that is there.
# Pages of the studies are compared in tests/studies.
WRITTEN = {
    ("readme_figures", "README", "with_figures"),
    ("readme_figures", "COMPARISON", "with_all_figures"),
    ("draw_problem", "PLACE", "picture"),
    ("draw_paddle", "PLACE", "picture"),
    ("render_performance", "PAGE", "rendered"),
    ("render_scale", "PAGE", "rendered"),
    ("mechanisms", "MODEL_PAGE", "in_model"),
}


@pytest.mark.parametrize(("program", "place", "written"), sorted(WRITTEN))
def test_figures_are_those_of_the_files_they_come_from(program, place, written):
    module = importlib.import_module(program)
    document, write = getattr(module, place), getattr(module, written)
    text = document.read_text(encoding="utf-8")
    from_nothing = not inspect.signature(write).parameters
    assert text == (write() if from_nothing else write(text)), f"{document.name} is behind: run {program}.py"
    if not from_nothing:  # what somebody wrote by hand between the marks is found out
        changed = text.replace("<!-- end", "by hand\n<!-- end", 1)
        assert changed != text
        assert write(changed) == text


def test_dead_links_and_lost_pages_of_the_built_site_are_named(tmp_path):
    check_site = importlib.import_module("check_site")
    root, site = tmp_path / "root", tmp_path / "site"
    for place in (root / "docs", site / "deep"):
        place.mkdir(parents=True)
    (root / "LICENSE").touch()
    (root / "docs" / "one.md").touch()
    (site / "index.html").write_text('<a href="one.html">one</a><a href="https://elsewhere.org/x.html">x</a>')
    (site / "one.html").write_text('<h1 id="top"><a href="https://github.com/mboudiaf/TIM/blob/master/README.md">l</a>')
    (site / "deep" / "two.html").write_text(
        '<a href="../one.html#top">1</a><a href="../three.html">3</a><img src="a.svg">'
    )
    assert check_site.dead_links(site) == [
        "deep/two.html: ../three.html",
        "deep/two.html: a.svg",
        "index.html: https://elsewhere.org/x.html",
    ]
    assert check_site.unreachable_pages(site) == ["deep/two.html: no page leads to it"]
    good = ["docs/one.md", "docs/one.md#top", "docs/", "LICENSE", "https://github.com/mboudiaf/TIM"]
    bad = ["docs/two.md", "docs/nowhere/", "https://github.com/mboudiaf/TIMES"]
    (root / "README.md").write_text(" ".join(f"[x]({link})" for link in good + bad))
    assert check_site.dead_links_of_readme(root) == [f"README.md: {link}" for link in bad]


def test_markdown_that_was_not_translated_is_named_and_code_is_left_alone(tmp_path):
    check_site = importlib.import_module("check_site")
    (tmp_path / "index.html").write_text(
        "<p>See [the study](measured/study.md) and <code>[x](y)</code>.</p><pre><span>f[0](1)</span></pre>"
        "<script>a[0](1)</script><p>[one\npage](<em>other</em>.md)</p>"
    )
    assert check_site.raw_markdown(tmp_path) == [
        "index.html: Markdown that was not translated: study](measured/study.md)",
        "index.html: Markdown that was not translated: page](other.md)",
    ]


def test_the_readme_is_short_and_installs_little():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, _, rest = text.partition("<!-- figures")
    words = before.split() + rest.partition("<!-- end of figures -->")[2].split()
    assert 500 < len(words) < 720
    assert text.count("pip install") == 3
