"""Commands of benchmarks that need no other data run as they are printed, with fewer tasks."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("typer")
from handful.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
# Folders of runs that such a command makes; later commands may read them.
FROM_THE_PACKAGE = ("--bank clinc150", " runs/one", " runs/small")


def commands_in(text: str) -> list[str]:
    """Return the commands of a page or of a help, in their order."""
    found = re.findall(r"^ *(handful (?:bench|report) .*)$", text, re.MULTILINE)
    return [command.split("  #")[0] for command in found if any(part in command for part in FROM_THE_PACKAGE)]


@pytest.mark.parametrize(
    ("place", "count"),
    [("docs/do/benchmarks.md", 5), ("src/handful_fewshot/README.md", 3)],
)
def test_it_runs_as_printed(place, count, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands = commands_in((ROOT / place).read_text(encoding="utf-8"))
    assert len(commands) >= count
    for command in commands:
        fewer = re.sub(r"--tasks \d+", "--tasks 2", command)
        assert main(shlex.split(fewer)[1:]) == 0, capsys.readouterr().err
