import sys

import pytest

pytest.importorskip("typer")
from handful.cli.main import main
from tests.banks_at_hand import random_bank
from tests.test_progress import watch


def test_whoever_watches_sees_the_time_left(tmp_path, monkeypatch):
    random_bank(n_classes=6, least=20, most=25).save(tmp_path / "toy")
    watch(monkeypatch)
    command = ["bench", "run", "--bank", tmp_path / "toy", "--method", "paddle", "--n-query", 6, "--tasks", 3]
    assert main([*map(str, command), "--out", str(tmp_path / "run")]) == 0
    said = sys.stderr.getvalue()
    assert "run 1 cell" in said
    assert "3 of 3 tasks" in said
    assert "tasks/s" in said
