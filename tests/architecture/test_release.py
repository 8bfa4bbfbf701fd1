"""What a release checks about itself, what the package claims, and that nothing became slower."""

import importlib
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

import handful

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = "# handful 1.2.0 (2030-01-02)\n\n## New\n\n- It flies.\n\n# handful 1.1.0 (2029-01-02)\n\n- It swims.\n"
CITATION = "version: 1.2.0\nlicense: BSD-3-Clause\nauthors:\n  - name: we\n"
sys.path[:0] = [str(ROOT / "tools")]


def test_what_stands_in_the_way_of_a_release_is_named(tmp_path):
    release = importlib.import_module("release")
    for file, text in {
        "pyproject.toml": '[project]\nversion = "1.2.0"\n[tool.handful]\npublished = {}\n',
        "src/handful/__init__.py": '__version__ = "1.2.0"\n',
        "CITATION.cff": CITATION,
        "README.md": "```\npip install .  # in the folder of the repository\n```\n",
        "docs/text.md": "`pip install '.[text]'`\n",
        "CHANGELOG.md": CHANGELOG,
        "changes/README.md": "how\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    unpublished = "pyproject.toml: [tool.handful] published must name the repository and the site"
    assert release.problems("v1.2.0", tmp_path) == [unpublished]
    addresses = '{ repository = "https://example.org/r", site = "https://example.org/s/" }'
    (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "1.2.0"\n[tool.handful]\npublished = {addresses}\n')
    assert release.problems("v1.2.0", tmp_path) == [
        f"{name} is as before publication; run: python tools/release.py publish"
        for name in ("CITATION.cff", "README.md", "docs/text.md")
    ]
    for path, text in release.rewritten(tmp_path).items():
        path.write_text(text)
    assert (tmp_path / "README.md").read_text() == "```\npip install handful\n```\n"
    assert (tmp_path / "docs" / "text.md").read_text() == "`pip install 'handful[text]'`\n"
    assert (
        "repository-code: https://example.org/r\nurl: https://example.org/s/\nauthors:"
        in (tmp_path / "CITATION.cff").read_text()
    )
    assert release.problems("v1.2.0", tmp_path) == []
    assert len(release.problems("v1.3.0", tmp_path)) == 4
    (tmp_path / "changes" / "flies.feature.md").write_text("It flies.\n")
    cited = tmp_path / "CITATION.cff"
    cited.write_text(cited.read_text().replace("1.2.0", "1.1.0"))
    assert release.problems("v1.2.0", tmp_path) == [
        "CITATION.cff says 1.1.0, the tag 1.2.0",
        "1 fragments of changes are left, for example flies.feature.md",
    ]
    assert release.sections(CHANGELOG) == {"1.2.0": "## New\n\n- It flies.", "1.1.0": "- It swims."}


def test_publication_changes_every_command_that_installs_from_the_repository():
    release = importlib.import_module("release")
    changed = {path.name for path in release.documents() if release.as_published(path.read_text()) != path.read_text()}
    assert {"README.md", "index.md", "first_steps.md", "install.md", "images.md", "first_batch.ipynb"} <= changed
    for path in release.documents():
        text = release.as_published(path.read_text(encoding="utf-8"))
        assert not re.search(r"pip install (--quiet )?'?\.", text), path
        assert "until published" not in text
        if path.suffix == ".ipynb":
            json.loads(text)


def test_fragments_of_changes_are_sentences_under_names_that_towncrier_reads():
    for path in (ROOT / "changes").glob("*"):
        if path.name != "README.md":
            assert re.fullmatch(r"[+\w-]+\.(feature|bugfix|doc|removal)\.md", path.name), path.name
            assert path.read_text(encoding="utf-8").endswith(".\n"), path.name


def test_a_ratio_that_worsens_is_noticed():
    guard = importlib.import_module("perf_guard")
    stored = {"help": 0.1, "import": 1.0, "gone": 1.0}
    assert guard.worse(stored, {"help": 0.19, "import": 1.24, "gone": 0.5}) == []
    assert guard.worse(stored, {"help": 0.21, "import": 1.26}) == [
        "gone: no longer measured",
        "help: 0.21 times scikit-learn, stored are 0.10",
        "import: 1.26 times scikit-learn, stored are 1.00",
    ]


def test_publishing_needs_no_password_and_the_server_runs_what_everybody_runs():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    jobs = {path.stem: yaml.safe_load(path.read_text())["jobs"] for path in (ROOT / ".github/workflows").glob("*.yml")}
    publish = jobs["release"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/')"
    assert "password" not in str(jobs)
    assert [step["run"] for step in jobs["ci"]["run"]["steps"] if "run" in step] == ["bash .ci/run"]


def test_the_version_is_the_same_everywhere():
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert PROJECT["version"] == handful.__version__ == cited[1]


def test_the_lowest_versions_that_are_run_are_those_that_are_claimed():
    claimed = {}
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    for line in [*PROJECT["dependencies"], *extras]:
        name, lowest = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line).groups()
        assert claimed.setdefault(name, lowest) == lowest, f"two lower bounds of {name}"
    run, _, _ = (ROOT / "requirements-lowest.txt").read_text(encoding="utf-8").partition("# Not claimed")
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", run, re.MULTILINE))
    assert {"numpy", "scikit-learn", "pyarrow", "typer", "rich", "matplotlib"} <= set(pinned) <= set(claimed)
    for name, version in pinned.items():
        assert re.fullmatch(rf"{re.escape(claimed[name])}(\.0)*", version), f"{name}: {claimed[name]}, run {version}"


def test_the_page_about_installing_says_what_was_measured_and_what_is_tested():
    tool = importlib.import_module("extras_cost")
    page, figures = tool.PAGE.read_text(encoding="utf-8"), json.loads(tool.FIGURES.read_text(encoding="utf-8"))
    assert page.split(tool.BEGIN)[1].split(tool.END)[0].strip() == tool.table(figures).strip()
    assert set(tool.FOR) == {tool.CORE, *PROJECT["optional-dependencies"]}
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    tested = {(system, python) for system, python, said in rows if said == "every change is tested"}
    claimed = [line.split(" :: ") for line in PROJECT["classifiers"]]
    ends = {
        kind: {parts[-1] for parts in claimed if parts[0] == kind}
        for kind in ("Operating System", "Programming Language")
    }
    assert tested == {
        (system, python) for system in ends["Operating System"] for python in ends["Programming Language"]
    }
