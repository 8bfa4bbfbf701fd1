"""Trainings as programs of their own: shared by two processes, and from images to accuracy."""

import csv
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from handful.cli.main import main
from handful_fewshot.networks.checkpoint import Checkpoint
from tests.items_at_hand import image_folder, shared_data
from tests.trainings_at_hand import OPTIONS, command

pytestmark = pytest.mark.beyond
EPOCHS = 8


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return image_folder(tmp_path_factory.mktemp("photos") / "all", n_classes=6, each=16)


def arguments(photos: Path, out: Path, *more: str) -> list[str]:
    return ["train", "--items", str(photos), "--out", str(out), "--epochs", str(EPOCHS), *OPTIONS, *more]


def curve(run: Path, column: str) -> list[float]:
    with (run / "logs" / "version_0" / "metrics.csv").open() as stream:
        return [float(row[column]) for row in csv.DictReader(stream) if row[column]]


@pytest.mark.slow
def test_two_processes_share_each_batch_and_validate_together(photos, tmp_path):
    out = tmp_path / "two"
    settings = ["--epochs", "4", "--batch-size", "16", "--hold-out", "2", "--devices", "2"]
    subprocess.run(
        command(tmp_path, *arguments(photos, out, *settings)),
        check=True,
        capture_output=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )
    assert len(set(curve(out, "loss"))) == 4
    assert max(curve(out, "realistic")) == pytest.approx(Checkpoint.load(out).validation["realistic"])


@pytest.mark.slow
def test_omniglot_from_drawings_to_accuracy(tmp_path, capsys, monkeypatch):
    """The commands of docs/do/train_an_encoder.md, whose figures they printed."""
    archive = shared_data("images/omniglot.zip")
    page = (Path(__file__).resolve().parents[2] / "docs" / "do" / "train_an_encoder.md").read_text()
    block = re.search(r"```\n(handful train --items omniglot.zip.*?)```", page, re.DOTALL).group(1)
    commands = block.replace("\\\n", " ").strip().splitlines()
    monkeypatch.chdir(tmp_path)
    Path("omniglot.zip").symlink_to(archive)
    spent = time.process_time()
    for line in commands:
        assert main(line.split()[1:]) == 0
        if line.startswith("handful train"):
            assert time.process_time() - spent < 15 * 60
    printed = capsys.readouterr().out
    accuracy = {name: float(value) for name, value in re.findall(r"(\w+)\s+200/200\s+([\d.]+) ±", printed)}
    assert accuracy["nearest_prototype"] > 78
