"""What a release checks about itself, what the package claims, and that nothing became slower."""

import importlib
import json
import os
import re
import shutil
import subprocess
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
    measured = {name: {"version": "1.2.0", "state": "whole"} for name in importlib.import_module("measure").STUDIES}
    for file, text in {
        "studies/results/measured.json": json.dumps(measured),
        "pyproject.toml": '[project]\nversion = "1.2.0"\n[tool.handful]\npublished = {}\n',
        "src/handful/version.py": '__version__ = "1.2.0"\n',
        "CITATION.cff": CITATION,
        "README.md": "```\npip install .  # in the folder of the repository\n```\n",
        "docs/text.md": '`pip install ".[torch]"`\n',
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
    assert (tmp_path / "docs" / "text.md").read_text() == '`pip install "handful[torch]"`\n'
    assert (
        "repository-code: https://example.org/r\nurl: https://example.org/s/\nauthors:"
        in (tmp_path / "CITATION.cff").read_text()
    )
    assert release.problems("v1.2.0", tmp_path) == []
    assert len(release.problems("v1.3.0", tmp_path)) == 4 + len(measured)
    del measured["harm"]
    (tmp_path / "studies/results/measured.json").write_text(json.dumps(measured))
    assert release.problems("v1.2.0", tmp_path) == ["harm: measured with no version, and not listed for 1.2.0"]
    (tmp_path / "studies/results/measured.json").write_text(json.dumps(measured | {"harm": measured["voices"]}))
    (tmp_path / "changes" / "flies.feature.md").write_text("It flies.\n")
    cited = tmp_path / "CITATION.cff"
    cited.write_text(cited.read_text().replace("1.2.0", "1.1.0"))
    assert release.problems("v1.2.0", tmp_path) == [
        "CITATION.cff says 1.1.0, the tag 1.2.0",
        "1 fragments of changes are left, for example flies.feature.md",
    ]
    assert release.sections(CHANGELOG) == {"1.2.0": "## New\n\n- It flies.", "1.1.0": "- It swims."}


def results(folder, **changes):
    """Records of studies, all measured by 1.2.0, and one comparison of its answers with those of 1.2.1."""
    measure = importlib.import_module("measure")
    entry = {"version": "1.2.0", "commit": "a" * 40, "state": "whole", "cpu_minutes": 2.4}
    known = {name: entry | changes.get(name, {}) for name in measure.STUDIES}
    kinds = {kind: {} for study in measure.STUDIES.values() for kind in ("all", "closed", *study.answers)}
    pair = {"before": {"version": "1.2.0", "commits": ["a" * 40]}, "after": {"version": "1.2.1", "commit": "b" * 40}}
    pair |= {"batches": "all", "moved": [], "kinds": kinds} | changes.get("pair", {})
    (folder / "measured.json").write_text(json.dumps(known))
    (folder / "same_answers.json").write_text(json.dumps({"one": pair}))
    return measure, folder


def test_figures_of_another_version_are_listed_with_a_reason_or_stop_a_release(tmp_path):
    measure, folder = results(tmp_path, voices={"version": "1.2.1"})
    assert measure.problems("1.2.0", folder) == ["voices: measured with 1.2.1, and not listed for 1.2.0"]
    missing = measure.problems("1.2.1", folder)
    assert len(missing) == len(measure.STUDIES) - 1
    assert "harm: measured with 1.2.0, and not listed for 1.2.1" in missing
    assert measure.stands(measure.outdated("1.2.1", folder), "only sentences changed.", "1.2.1", folder) == []
    assert measure.problems("1.2.1", folder) == []
    known = json.loads((folder / "measured.json").read_text())
    assert known["harm"]["stands"] == {"with": "1.2.1", "reason": "only sentences changed"}
    assert known["voices"] == {"version": "1.2.1", "commit": "a" * 40, "state": "whole", "cpu_minutes": 2.4}
    assert len(measure.problems("1.2.2", folder)) == len(measure.STUDIES)  # a listing is for one version
    known["harm"]["stands"]["reason"] = " "
    (folder / "measured.json").write_text(json.dumps(known))
    assert measure.problems("1.2.1", folder) == ["harm: measured with 1.2.0, and not listed for 1.2.1"]


LISTED = {"stands": {"with": "1.2.1", "reason": "only sentences changed"}}


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        ({"moved": ["closed"]}, "answers moved: closed"),
        ({"after": {"version": "1.2.2"}}, "answers of commit aaaaaaa were not compared with those of 1.2.1"),
        ({"before": {"commits": ["c" * 40]}}, "answers of commit aaaaaaa were not compared with those of 1.2.1"),
        ({"batches": "methods"}, "answers of commit aaaaaaa were not compared with those of 1.2.1"),
    ],
)
def test_a_listing_counts_only_where_no_answer_moved(tmp_path, pair, why):
    measure, folder = results(tmp_path, pair=pair, harm=LISTED)
    found = measure.problems("1.2.1", folder)
    assert f"harm: listed for 1.2.1, but {why}" in found
    assert measure.stands(["harm"], "no reason helps", "1.2.1", folder) == [f"harm is not listed: {why}"]
    assert "no reason helps" not in (folder / "measured.json").read_text()


def test_a_study_of_methods_needs_the_answers_of_its_methods_alone(tmp_path):
    measure, folder = results(tmp_path, pair={"batches": "methods", "moved": ["all", "method unem"]}, study=LISTED)
    assert not any(line.startswith("study:") for line in measure.problems("1.2.1", folder))
    results(tmp_path, pair={"moved": ["method paddle"]}, study=LISTED)
    assert "study: listed for 1.2.1, but answers moved: method paddle" in measure.problems("1.2.1", folder)
    results(tmp_path, pair={"kinds": {"closed": {}}}, study=LISTED)
    assert any(
        line.startswith("study: listed for 1.2.1, but answers moved") for line in measure.problems("1.2.1", folder)
    )
    kept = [json.loads(file.read_text())["cells"] for file in (measure.RESULTS / "study").glob("*.json")]
    assert {cell["method"] for cells in kept for cell in cells} == set(measure.OF_THE_PAPER)


def test_a_study_that_was_not_measured_as_a_whole_is_never_listed(tmp_path):
    measure, folder = results(tmp_path, harm={"state": "begun"})
    assert measure.stands(["harm"], "a reason", "1.2.1", folder) == [
        "harm is not listed: it was never measured as a whole"
    ]


def test_the_check_of_a_release_runs_where_handful_is_not_installed():
    program = (
        "import sys; sys.modules.update(handful=None, numpy=None); sys.path.insert(0, 'tools')\n"
        "import release, measure\n"
        "print(measure.this_version(), len(release.problems('v0.0.0')) > len(measure.STUDIES))"
    )
    said = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.split() == [handful.__version__, "True"]


def test_publication_changes_every_command_that_installs_from_the_repository():
    release = importlib.import_module("release")
    changed = {path.name for path in release.documents() if release.as_published(path.read_text()) != path.read_text()}
    assert {"README.md", "index.md", "first_steps.md", "install.md", "sentences.md", "first_batch.ipynb"} <= changed
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


def test_ci_installs_everything_but_torch_by_hash():
    lock = importlib.import_module("lock")
    assert lock.unmet() == [], "make lock"
    text = lock.LOCK.read_text(encoding="utf-8")
    packages = re.split(r"\n(?=\w)", text.partition("\n")[2])
    assert len(packages) > 150
    assert all("--hash=sha256:" in package for package in packages)
    assert not re.search(r"^(torch|triton|nvidia\S*|cuda\S*)==", text, re.MULTILINE)
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links", text)
    install = (ROOT / ".ci" / "install").read_text()
    (unhashed,) = set(re.findall(r"^\$install (.+)$", install, re.MULTILINE)) - {
        '--require-hashes --no-deps --requirement "$halves/0" &',
        '--require-hashes --no-deps --requirement "$halves/1"',
        "--no-deps --no-build-isolation --editable .",
    }
    assert unhashed.startswith("torch==")
    commands = [(ROOT / ".ci" / name).read_text() for name in ("run", "light")]
    commands += [path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml") if path.stem != "release"]
    for command in commands:
        for line in re.findall(r"(?:pip install|\$install) .*[^\"\n]$", command, re.MULTILINE):
            assert (
                "--require-hashes" in line or "--no-deps --no-build-isolation" in line or line.endswith("--editable .")
            ), line


def test_a_lock_file_that_lacks_a_requirement_is_noticed(monkeypatch, tmp_path):
    lock = importlib.import_module("lock")
    assert "numpy" in lock.required()
    assert "torch" not in lock.required()
    (tmp_path / "lock.txt").write_text("".join(f"{name}=={version} \\\n" for name, version in lock.required().items()))
    monkeypatch.setattr(lock, "LOCK", tmp_path / "lock.txt")
    assert lock.unmet() == []
    text = lock.LOCK.read_text()
    lock.LOCK.write_text(re.sub(r"^pillow==\d+", "pillow==9", text, flags=re.MULTILINE).replace("numpy==", "numbers=="))
    assert {line.partition(">=")[0] for line in lock.unmet()} == {"numpy", "pillow"}


def test_tools_and_package_ask_for_the_same_versions():
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    claimed = dict(
        re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line).groups() for line in [*PROJECT["dependencies"], *extras]
    )
    for name in ("requirements-dev.txt", "requirements-docs.txt"):
        found = dict(re.findall(r"^([\w-]+)(?:\[\w+\])?>=([\d.]+)", (ROOT / name).read_text(), re.MULTILINE))
        assert {package: found[package] for package in found if package in claimed}.items() <= claimed.items(), name


# The first versions without a known flaw in what docs/project/safety.md relies on.
SOUND = {
    "torch": (2, 10),
    "pillow": (13,),
    "filelock": (3, 20, 3),
    "pyarrow": (14, 0, 1),
    "ray": (2, 56),
    "transformers": (5, 3),
}


@pytest.mark.parametrize("name", SOUND)
def test_no_version_with_a_known_flaw_is_allowed(name):
    lines = [*PROJECT["dependencies"], *(line for lines in PROJECT["optional-dependencies"].values() for line in lines)]
    lowest = [re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line).groups() for line in lines]
    versions = [tuple(map(int, version.split("."))) for package, version in lowest if package == name]
    assert versions
    assert min(versions) >= SOUND[name]


def chromium(tmp_path, *options, **found):
    """Run .ci/chromium where only these programs are found."""
    for name in ("bash", "id"):
        (tmp_path / name).symlink_to(shutil.which(name))
    for name, program in found.items():
        (tmp_path / name.replace("_", "-")).write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / name.replace("_", "-")).chmod(0o755)
    command = [shutil.which("bash"), str(ROOT / ".ci" / "chromium"), *options]
    return subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)


def test_ci_installs_a_browser_or_says_loudly_that_there_is_none(tmp_path):
    for name in ("there", "nothing", "root", "other", "only_looks"):
        (tmp_path / name).mkdir()
    assert chromium(tmp_path / "there", chromium="exit 3").returncode == 0
    without = chromium(tmp_path / "nothing")
    assert without.returncode == 1
    assert "NO BROWSER" in without.stdout
    noted = f"echo $@ >> {tmp_path / 'noted'}"
    if os.getuid() == 0:
        assert chromium(tmp_path / "root", apt_get=noted).returncode == 0
        assert "install --yes --no-install-recommends chromium" in (tmp_path / "noted").read_text()
        assert chromium(tmp_path / "only_looks", "--found", apt_get="exit 5").returncode == 1
    assert "bash .ci/chromium " in (ROOT / ".ci" / "run").read_text()


MAKE = """#!/bin/sh
case "$*" in
  others) echo "FAILED tests/test_one.py::test_one"; echo "===== 1 failed, 3 passed in 4.00s ====="; exit $TESTS;;
  contract) echo "===== 5 passed in 1.00s ====="; exit $CONTRACT;;
  beyond) echo "ERROR tests/test_two.py"; echo "===== 1 error in 2.00s ====="; exit $BEYOND;;
  *) echo "make: *** [Makefile:1: lint] Error 1"; exit $CHECKS;;
esac
"""


@pytest.mark.parametrize("fails", ["nothing", "tests", "contract", "beyond", "checks", "light"])
def test_ci_fails_with_any_part_shows_all_and_ends_with_the_line_of_pytest(tmp_path, fails):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    for name, code in {"install": 0, "chromium": 0, "light": int(fails == "light")}.items():
        (tmp_path / ".ci" / name).write_text(f"exit {code}\n")
    (tmp_path / "tools" / "page").mkdir(parents=True)
    (tmp_path / "tools" / "page" / "check").write_text("exit 0\n")
    for name, text in {"make": MAKE, "python3": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    codes = {part.upper(): "2" if fails == part else "0" for part in ("tests", "contract", "beyond", "checks")}
    settings = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **codes}
    command = ["bash", str(tmp_path / ".ci" / "run")]
    ran = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    assert (ran.returncode == 0) == (fails == "nothing")
    *_, short = ran.stdout.split("##### in short #####\n")
    assert [line.split()[0] for line in short.splitlines()] == ["make:", "ERROR", "FAILED", *["====="] * 3]
    assert short.endswith("===== 1 failed, 3 passed in 4.00s =====\n")


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
    tested = {
        (system, python)
        for system, pythons, said in rows
        for python in pythons.split(", ")
        if re.match("every (change|release) is tested", said)
    }
    claimed = [line.split(" :: ") for line in PROJECT["classifiers"]]
    ends = {
        kind: {parts[-1] for parts in claimed if parts[0] == kind}
        for kind in ("Operating System", "Programming Language")
    }
    assert tested == {
        (system, python) for system in ends["Operating System"] for python in ends["Programming Language"]
    }


def test_the_cost_of_an_extra_was_measured_with_all_its_packages():
    figures = json.loads(importlib.import_module("extras_cost").FIGURES.read_text(encoding="utf-8"))
    core = figures["costs"]["handful"]["packages"]
    for extra, lines in PROJECT["optional-dependencies"].items():
        names = {re.match(r"[\w-]+", line)[0].replace("-", "_").lower() for line in lines} - {"torch"}
        assert names <= {*core, *figures["costs"][extra]["packages"]}, f"python tools/extras_cost.py {extra}"


def test_a_newcomer_runs_what_the_pages_say_in_a_clone(tmp_path):
    newcomer = importlib.import_module("newcomer")
    for page in newcomer.PAGES:
        steps = newcomer.steps_of((ROOT / page).read_text(encoding="utf-8"))
        installs = [step for step in steps if re.match(r'pip install "?(\.|handful)', step)]
        assert installs, f"{page} does not say how to install handful"
        assert steps.index(installs[0]) == 0, f"{page} needs handful before it says how to install it"
        needs_torch = newcomer.installs_torch(steps)
        assert needs_torch == (page != "docs/learn/first_steps.md"), page
    assert not newcomer.installs_torch(["handful demo", 'pip install ".[images,review]"'])
    assert newcomer.installs_torch(["pip install torch --index-url x"])
    assert newcomer.installs_torch(['pip install "handful[images,fewshot]"'])
    reader = newcomer.Newcomer(tmp_path)
    python = str(reader.bin / "python")
    for said in (["pip", "install", ".[images]"], ["pip", "install", "handful[images]"]):
        assert reader.command(said) == [python, "-m", "pip", "install", "--quiet", ".[images]"]
    assert reader.command(["handful", "demo"]) == [str(reader.bin / "handful"), "demo"]


def test_every_extra_is_on_the_page_about_installing():
    page = (ROOT / "docs" / "learn" / "install.md").read_text(encoding="utf-8")
    assert [extra for extra in PROJECT["optional-dependencies"] if not re.search(rf"[\[,`]{extra}[\],`]", page)] == []


def test_no_two_programs_have_one_name():
    """Tests import programs by name, so a second file of that name would be tested instead of the first."""
    names = [file.stem for folder in ("examples", "perf", "studies", "tools") for file in (ROOT / folder).glob("*.py")]
    assert sorted(names) == sorted(set(names))
