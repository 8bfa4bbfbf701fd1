from functools import partial

import pytest
from rich.console import Console

pytest.importorskip("typer")
from handful.cli.main import main
from tests.banks_at_hand import random_bank


def test_whoever_watches_sees_the_time_left(tmp_path, capsys, monkeypatch):
    random_bank(n_classes=6, least=20, most=25).save(tmp_path / "toy")
    monkeypatch.setattr("rich.console.Console", partial(Console, force_terminal=True, width=150))
    command = ["bench", "run", "--bank", tmp_path / "toy", "--method", "paddle", "--n-query", 6, "--tasks", 3]
    assert main([*map(str, command), "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert "all cells" in said
    assert "0:00:00 left" in said
