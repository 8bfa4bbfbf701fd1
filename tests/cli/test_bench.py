import numpy as np
import pytest

pytest.importorskip("typer")
from handful.benchmark.journal import Journal
from handful.cli.main import main
from tests.banks_at_hand import random_bank


@pytest.fixture
def bank(tmp_path):
    random_bank(n_classes=6, least=20, most=25).save(tmp_path / "toy")
    return tmp_path / "toy"


def run(capsys, *arguments) -> list[str]:
    assert main(["bench", *map(str, arguments)]) == 0
    streams = capsys.readouterr()
    assert streams.err == ""
    return streams.out.splitlines()


def grid(bank, out, *more):
    methods = ("--method", "paddle", "--method", "soft_kmeans")
    return ("run", "--bank", bank, *methods, "--k-eff", 2, "--k-eff", 3, "--n-query", 6, "--out", out, *more)


def test_a_grid_is_run_and_its_status_printed(bank, tmp_path, capsys):
    lines = run(capsys, *grid(bank, tmp_path / "run", "--tasks", 10))
    assert lines[0] == "toy, 5-shot, K_eff=2, |Q|=6"
    assert lines[1].startswith("  paddle ")
    assert " 10/10 " in lines[1]
    assert len(lines) == 6
    assert run(capsys, "status", tmp_path / "run") == lines
    journal = Journal(tmp_path / "run")
    assert [(cell.method, cell.spec.query.k_eff) for cell in journal.plan] == [
        *(("paddle", 2), ("soft_kmeans", 2)),
        *(("paddle", 3), ("soft_kmeans", 3)),
    ]


def test_a_run_goes_on_with_its_own_plan_or_a_longer_one(bank, tmp_path, capsys):
    out = tmp_path / "run"
    run(capsys, *grid(bank, out, "--tasks", 10))
    journal = Journal(out)
    before = journal.table().num_rows
    journal.shards()[-1].unlink()
    run(capsys, "run", "--resume", "--out", out)
    assert journal.table().num_rows == before == 40
    run(capsys, *grid(bank, out, "--tasks", 12, "--resume"))
    tasks = Journal(out).columns(journal.plan[0])["task"]
    assert np.array_equal(tasks, np.arange(12))


def test_a_plan_in_toml_finds_its_banks_beside_it(bank, tmp_path, capsys):
    (tmp_path / "plan.toml").write_text(
        "[banks]\ntoy = 'toy'\n[[cells]]\nbank = 'toy'\nmethod = 'paddle'\nn_query = 6\nk_eff = 2\ntasks = 9\n"
    )
    lines = run(capsys, "run", tmp_path / "plan.toml", "--out", tmp_path / "run", "--tasks", 4, "--seed", 3)
    assert " 4/4 " in lines[1]
    assert Journal(tmp_path / "run").plan[0].seed == 3


def test_methods_are_compared_on_the_same_tasks(bank, tmp_path, capsys):
    run(capsys, *grid(bank, tmp_path / "run", "--tasks", 10))
    lines = run(capsys, "compare", tmp_path / "run", "--methods", "paddle,soft_kmeans")
    assert len(lines) == 2
    assert lines[0].startswith("toy, 5-shot, K_eff=2, |Q|=6: ")
    assert " points on 10 tasks: " in lines[0]
    assert main(["bench", "compare", str(tmp_path / "run"), "--methods", "paddle,tim"]) == 1
    assert "it has paddle, soft_kmeans" in capsys.readouterr().err


def test_a_plan_of_the_paper_runs_on_stand_ins(tmp_path, capsys):
    random_bank(n_classes=6, least=60, most=70).save(tmp_path / "stand-in")
    options = ("--bank", f"mini={tmp_path / 'stand-in'}", "--tasks", 2, "--out", tmp_path / "run")
    lines = run(capsys, "run", "--paper", "partition_term", *options)
    assert [line for line in lines if not line.startswith(" ")] == [
        f"mini, {shots}-shot, K_eff=5" for shots in (5, 10, 20)
    ]


def test_the_shipped_bank_needs_no_path(tmp_path, capsys):
    options = ("--bank", "clinc150", "--method", "nearest_prototype", "--tasks", 2, "--out", tmp_path / "run")
    assert run(capsys, "run", *options)[0] == "clinc150, 5-shot, K_eff=5"
    run(capsys, "run", "--resume", "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to run"),
        (["--paper", "table9"], "the paper has no 'table9'; there are table1"),
        (["--paper", "table1"], "needs at least one bank named mini"),
        (["--paper", "table1", "--method", "paddle"], "not several"),
        (["--bank", "clinc150", "--method", "magic"], "no method is called 'magic'"),
        (["--on", "moon"], "--on must be here, ray or ray:ADDRESS"),
        (["--on", "ray", "--workers", "2"], "leave it out"),
        (["--resume"], "is not a run"),
        (["--bank", "nowhere", "--method", "paddle"], "nowhere does not exist"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence(tmp_path, capsys, arguments, sentence):
    assert main(["bench", "run", "--out", str(tmp_path / "run"), *arguments]) == 1
    assert sentence in capsys.readouterr().err


def test_a_run_that_is_there_is_not_begun_again(bank, tmp_path, capsys):
    run(capsys, *grid(bank, tmp_path / "run", "--tasks", 1))
    assert main(["bench", *map(str, grid(bank, tmp_path / "run", "--tasks", 1))]) == 1
    assert "not empty; resume it" in capsys.readouterr().err
