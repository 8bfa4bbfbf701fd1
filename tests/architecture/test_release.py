"""What a release checks about itself, and that nothing became slower."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(name):
    found = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


CHANGELOG = "# handful 1.2.0 (2030-01-02)\n\n## New\n\n- It flies.\n\n# handful 1.1.0 (2029-01-02)\n\n- It swims.\n"


@pytest.fixture
def tree(tmp_path):
    """A repository that is ready for its release 1.2.0."""
    for file, text in {
        "pyproject.toml": '[project]\nversion = "1.2.0"\n',
        "src/handful/__init__.py": '__version__ = "1.2.0"\n',
        "CITATION.cff": "version: 1.2.0\n",
        "CHANGELOG.md": CHANGELOG,
        "changes/README.md": "how\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return tmp_path


def test_a_release_that_is_ready_has_no_problems(tree):
    assert tool("release").problems("v1.2.0", tree) == []


def test_what_stands_in_the_way_is_named(tree):
    release = tool("release")
    assert len(release.problems("v1.3.0", tree)) == 4
    (tree / "changes" / "+flies.feature.md").write_text("It flies.\n")
    (tree / "CITATION.cff").write_text("version: 1.1.0\n")
    assert release.problems("v1.2.0", tree) == [
        "CITATION.cff says 1.1.0, the tag 1.2.0",
        "1 fragments of changes are left, for example +flies.feature.md",
    ]


def test_the_notes_of_a_release_are_its_section():
    sections = tool("release").sections(CHANGELOG)
    assert list(sections) == ["1.2.0", "1.1.0"]
    assert sections["1.2.0"] == "## New\n\n- It flies."


def test_a_ratio_that_worsens_is_noticed():
    guard = tool("perf_guard")
    stored = {"help": 0.1, "import": 1.0, "gone": 1.0}
    assert guard.worse(stored, stored) == []
    assert guard.worse(stored, {"help": 0.19, "import": 1.24, "gone": 0.5}) == []
    assert guard.worse(stored, {"help": 0.21, "import": 1.26}) == [
        "gone: no longer measured",
        "help: 0.21 times import torch, stored are 0.10",
        "import: 1.26 times import torch, stored are 1.00",
    ]


def test_what_is_stored_keeps_its_bars():

    stored = json.loads((ROOT / "perf" / "results" / "startup.json").read_text())
    assert stored["processor_seconds"]["handful --help"] < 0.6
    assert stored["ratios"]["import handful"] < 1.2


def test_the_workflows_are_yaml_and_publish_without_a_password():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        assert yaml.safe_load(path.read_text())["jobs"]
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    publish = release["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/')"
    assert publish["steps"][-1]["with"] == {"attestations": True}
    assert "password" not in str(release)


def test_the_recipe_of_conda_asks_for_what_the_package_asks_for():

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "conda" / "recipe" / "recipe.yaml").read_text()
    assert f'version: "{project["version"]}"' in recipe
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    for line in wanted:
        name, bound = re.fullmatch(r"([\w-]+)(>=.+)", line).groups()
        assert f"- {'pytorch' if name == 'torch' else name} {bound}\n" in recipe
