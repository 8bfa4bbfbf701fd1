import re

import pytest

pytest.importorskip("typer")
from handful.cli.main import main
from handful_fewshot.benchmark.journal import Journal
from handful_fewshot.reports.summary import FEW_NOTE
from tests.banks_at_hand import random_bank

SPLITS = {"validation": range(6), "test": range(6, 12)}


@pytest.fixture
def bank(tmp_path):
    random_bank(n_classes=12, least=20, most=25, splits=SPLITS).save(tmp_path / "toy")
    return tmp_path / "toy"


def bench(capsys, *arguments) -> list[str]:
    assert main(["bench", *map(str, arguments)]) == 0
    streams = capsys.readouterr()
    assert all(re.match(r"run \d+ cells?: ", line) for line in streams.err.splitlines())
    return streams.out.splitlines()


def refused(capsys, *arguments) -> str:
    assert main(["bench", "tune", *map(str, arguments)]) == 1
    return capsys.readouterr().err


def test_from_a_grid_to_a_tested_plan(bank, tmp_path, capsys):
    out = tmp_path / "tuning"
    given = ("--bank", bank, "--method", "laplacian_shot", "--option", "smoothness=0,0.7,4", "--n-query", 20)
    lines = bench(capsys, "tune", *given, "--tasks", 6, "--out", out)
    assert lines[0].startswith("| bank | method | published |")
    assert "| toy | laplacian_shot (unit length) | smoothness=0.7 | " in lines[2]
    assert lines[-2] == FEW_NOTE
    assert lines[-1] == str(out / "tuned.toml")
    journal = Journal(out)
    assert {(cell.split, cell.spec.n_classes, cell.n_tasks) for cell in journal.plan} == {("validation", 5, 6)}
    tested = bench(capsys, "run", out / "tuned.toml", "--tasks", 4, "--out", tmp_path / "test")
    assert tested[0] == "toy/test, 5-shot, K_eff=5"
    # Killed after some rows, the tuning goes on and finds the same.
    journal.shards()[-1].unlink()
    assert bench(capsys, "tune", "--resume", "--out", out) == lines
    assert bench(capsys, "tune", *given, "--tasks", 6, "--resume", "--out", out) == lines


def test_published_and_found_options_are_compared(bank, tmp_path, capsys):
    two = (
        "--option",
        "tsallis_alpha_marginal=2,7",
        "--option",
        "tsallis_alpha_conditional=5",
        "--option",
        "max_iter=3",
    )
    small = ("--bank", bank, "--method", "alpha_tim", "--n-query", 10, "--tasks", 2, *two)
    bench(capsys, "run", *small, "--out", tmp_path / "run")
    names = [f"alpha_tim (tsallis_alpha_marginal={order}, tsallis_alpha_conditional=5, max_iter=3)" for order in (2, 7)]
    line, note = bench(capsys, "compare", tmp_path / "run", "--methods", ",".join(names))
    assert line.endswith("too few tasks to tell")
    assert note == FEW_NOTE


def test_what_cannot_be_tuned_is_refused_with_a_sentence(bank, tmp_path, capsys):
    out = ("--out", tmp_path / "run")
    assert "nothing to tune" in refused(capsys, *out)
    assert "nothing to tune" in refused(capsys, "--method", "tim", *out)
    assert "soft_kmeans has no published grid" in refused(capsys, "--bank", bank, "--method", "soft_kmeans", *out)
    assert "leave out --tasks" in refused(capsys, "--resume", "--tasks", 3, *out)
    assert not (tmp_path / "run").exists()
