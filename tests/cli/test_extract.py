import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from handful.cli import extract as command
from handful.errors import OptionError
from handful.features import FeatureBank
from tests.items_at_hand import image_bytes, image_folder, small_backbone

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(monkeypatch):
    """Run the command with the small backbone in the place of the named ones."""
    monkeypatch.setattr(command, "load_backbone", lambda name, device: small_backbone())
    app = typer.Typer()
    app.command()(command.extract_command)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


def lines(output: str) -> dict[str, str]:
    return dict(line.split("\t") for line in output.splitlines())


def test_a_bank_is_made_and_described(tmp_path, run):
    folder = image_folder(tmp_path / "images")
    result = run("--items", folder, "--backbone", "b", "--out", tmp_path / "bank", "--licence", "CC0")
    assert result.exit_code == 0
    bank = FeatureBank.load(tmp_path / "bank")
    assert lines(result.stdout) == {
        "bank": str(tmp_path / "bank"),
        "rows": "24",
        "dimensions": "32",
        "classes": "3",
        "skipped": "0",
        "content hash": bank.content_hash,
    }
    assert bank.provenance.licence == "CC0"
    assert result.stderr == ""  # no terminal, no bar


def test_skipped_items_are_listed_on_standard_error(tmp_path, run):
    folder = image_folder(tmp_path / "images", 1, 25)
    for i in range(22):
        (folder / "class0" / f"{i:02d}.png").write_bytes(image_bytes(i)[:20])
    result = run("--items", folder, "--backbone", "b", "--out", tmp_path / "bank")
    assert lines(result.stdout)["skipped"] == "22"
    told = result.stderr.splitlines()
    assert told[0] == "skipped 22 of 25 items:"
    assert told[1].startswith("  class0/00.png: ")
    assert told[-1] == "  and 2 more, see the bank's notes"
    assert len(told) == 22


def test_the_same_hash_on_one_worker_and_on_two(tmp_path, run):
    folder = image_folder(tmp_path / "images")
    shared = ("--items", folder, "--backbone", "b", "--shard-size", 5)
    hashes = {
        lines(run(*shared, "--out", tmp_path / f"bank{n}", "--workers", n).stdout)["content hash"] for n in (1, 2)
    }
    assert len(hashes) == 1


def test_a_split_of_a_table(tmp_path, run, monkeypatch):
    image_folder(tmp_path / "images", 1, 2)
    rows = [{"path": f"images/class0/0{i}.png", "label": f"k{i}", "split": ("train", "test")[i]} for i in (0, 1)]
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("--items", table, "--split", "test", "--backbone", "b", "--out", tmp_path / "bank")
    assert lines(result.stdout)["rows"] == "1"
    assert FeatureBank.load(tmp_path / "bank").labels.tolist() == [1]


@pytest.mark.parametrize("on", ["there", "ray:", "rayx", "here:1"])
def test_an_unknown_place_is_refused(tmp_path, run, on):
    result = run("--items", tmp_path, "--backbone", "b", "--out", tmp_path / "bank", "--on", on)
    assert isinstance(result.exception, OptionError)
    assert str(result.exception) == f"--on must be here, ray or ray:ADDRESS, got {on!r}"


@pytest.mark.parametrize("option", [("--workers", 2), ("--device", "cuda")])
def test_workers_and_devices_do_not_go_with_ray(tmp_path, run, option):
    result = run("--items", tmp_path, "--backbone", "b", "--out", tmp_path / "bank", "--on", "ray", *option)
    assert f"{option[0]} is for running here" in str(result.exception)


@pytest.mark.parametrize("option", ["--batch-size", "--shard-size", "--workers"])
def test_sizes_below_one_are_a_usage_error(tmp_path, run, option):
    assert run("--items", tmp_path, "--backbone", "b", "--out", tmp_path / "bank", option, 0).exit_code == 2


ON_A_TERMINAL = """
import sys, time
from handful.cli import extract as command
from tests.items_at_hand import small_backbone
import typer

command.load_backbone = lambda name, device: small_backbone()
app = typer.Typer()
app.command()(command.extract_command)
app()
"""


def test_a_terminal_gets_a_bar_with_rate_and_time_left(tmp_path):
    folder = image_folder(tmp_path / "images")
    arguments = ["--items", folder, "--backbone", "b", "--out", tmp_path / "bank", "--shard-size", "2"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    drawn = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how a terminal says that the other side is gone
            break
        if not part:
            break
        drawn += part
    os.close(ours)
    output, _ = process.communicate()
    assert process.returncode == 0
    assert b"24/24" in drawn
    assert b"items/s" in drawn
    assert b"0:00:00" in drawn
    assert lines(output.decode())["rows"] == "24"
