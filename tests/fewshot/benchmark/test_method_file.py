import pytest

from handful.cli.main import main
from handful.errors import OptionError, PlanError
from handful.fewshot import METHODS
from handful.fewshot.benchmark.method_file import file_hash, load_method, refuse_another_file
from handful.fewshot.benchmark.plan import Cell
from tests.plans_at_hand import SPEC

COPY = "import dataclasses\nfrom handful.fewshot import METHODS\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mine = 3\n", "has no handful.fewshot.Method called 'mine'; it has none"),
        (f"{COPY}other = METHODS['paddle']\n", "called 'mine'; it has other"),
        ("mine =\n", "cannot be run \\(SyntaxError"),
        ("import nowhere_to_be_found\n", "cannot be run \\(ModuleNotFoundError"),
        (f"{COPY}mine = METHODS['paddle']\n", "'paddle' is already taken by handful"),
        (None, "does not exist"),
    ],
)
def test_a_file_that_has_no_such_method_is_refused(tmp_path, text, sentence):
    file = tmp_path / "mine.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(OptionError, match=sentence):
        load_method(f"{file}:mine")


def test_a_cell_takes_the_method_and_the_hash_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(METHODS, "_values", dict(METHODS._values))
    file = tmp_path / "mine.py"
    hashes = []
    for comment in ("one", "other"):
        file.write_text(f"{COPY}mine = dataclasses.replace(METHODS['paddle'], name='loose')  # {comment}\n")
        cell = Cell("toy", SPEC, f"{file}:mine")
        assert (cell.method, cell.method_hash) == ("loose", file_hash("loose"))
        hashes.append((cell.method_hash, cell.content_hash))
    assert len(set(hashes)) == 2
    refuse_another_file("loose", hashes[1][0])
    with pytest.raises(PlanError, match="has changed since the run was started"):
        refuse_another_file("loose", hashes[0][0])
    with pytest.raises(PlanError, match="is not loaded"):
        refuse_another_file("of_another_process", hashes[0][0])


def test_reading_a_plan_or_a_run_runs_no_code(tmp_path, monkeypatch, capsys):
    """A hostile run folder or plan must not execute the file it names."""
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n")
    (tmp_path / "plan.toml").write_text("[[cells]]\nbank = 'clinc150'\nmethod = 'evil.py:evil'\n")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "run", "plan.toml", "--out", "run"]) == 1
    assert "reading a plan runs no code" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()
