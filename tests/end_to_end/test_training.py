"""Trainings as programs of their own: killed, resumed, shared by two processes, and from images to accuracy."""

import csv
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch

from handful.cli.main import main
from handful.fewshot.networks.checkpoint import Checkpoint
from handful.fewshot.training.run import STATE
from tests.items_at_hand import image_folder, shared_data
from tests.trainings_at_hand import OPTIONS, command

pytestmark = pytest.mark.beyond
EPOCHS = 8


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return image_folder(tmp_path_factory.mktemp("photos") / "all", n_classes=6, each=16)


@pytest.fixture(scope="module")
def undisturbed(photos, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "undisturbed"
    assert main(arguments(photos, out)) == 0
    return out


def arguments(photos: Path, out: Path, *more: str) -> list[str]:
    return ["train", "--items", str(photos), "--out", str(out), "--epochs", str(EPOCHS), *OPTIONS, *more]


def curve(run: Path, column: str) -> list[float]:
    with (run / "logs" / "version_0" / "metrics.csv").open() as stream:
        return [float(row[column]) for row in csv.DictReader(stream) if row[column]]


def test_killed_and_resumed_it_ends_with_the_weights_of_an_undisturbed_run(photos, undisturbed, tmp_path):
    out = tmp_path / "killed"
    program = command(tmp_path, *arguments(photos, out))
    # Sums over another number of threads would round otherwise.
    one_thread = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    with subprocess.Popen(program, stderr=subprocess.PIPE, env=one_thread) as training:
        deadline = time.monotonic() + 300
        while not (out / STATE).exists():
            assert training.poll() is None, training.stderr.read().decode()
            assert time.monotonic() < deadline
            time.sleep(0.001)
        os.kill(training.pid, signal.SIGKILL)
    assert training.returncode == -signal.SIGKILL
    assert (out / STATE).exists(), "it was finished before it could be killed"
    assert main(arguments(photos, out)) == 0
    resumed, expected = Checkpoint.load(out), Checkpoint.load(undisturbed)
    assert resumed.epoch == expected.epoch == EPOCHS
    assert all(torch.equal(resumed.weights[name], expected.weights[name]) for name in expected.weights)


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
    """The commands of docs/do/train_a_backbone.md, whose figures they printed."""
    archive = shared_data("images/omniglot.zip")
    page = (Path(__file__).resolve().parents[2] / "docs" / "do" / "train_a_backbone.md").read_text()
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
