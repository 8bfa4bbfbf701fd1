"""Methods and encoders of other packages: found by name, whichever package is imported first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import handful_fewshot as fewshot
from handful.errors import OptionError
from handful_fewshot.benchmark import Cell
from tests.tasks_at_hand import random_task

PACKAGE = """
import dataclasses
import torch
from handful.extraction.encoder import Encoder
from handful_fewshot import METHODS, Method, solve

theirs = dataclasses.replace(METHODS["nearest_prototype"], name="theirs")
misnamed = theirs

def load(device):
    return Encoder.of_sentences(torch.nn.Identity(), lambda texts: torch.ones(len(texts), 3), name="ones")
"""
PROGRAM = """
{first}
import handful_fewshot as fewshot
from handful.extraction.encoders import load_encoder
task = fewshot.TaskBatch.single([[0.0], [9.0]], [0, 1], [[1.0]], n_classes=2)
print(fewshot.solve("theirs", task).predictions.tolist(), load_encoder("ones").dim, "misnamed_here" in fewshot.METHODS)
"""


@pytest.mark.parametrize("first", ["import their_package", ""])
def test_a_package_with_entry_points_needs_no_call(tmp_path, first):
    (tmp_path / "their_package.py").write_text(PACKAGE)
    about = tmp_path / "their_package-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their_package\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[handful_fewshot.methods]\ntheirs = their_package:theirs\nmisnamed_here = their_package:misnamed\n"
        "[handful.encoders]\nones = their_package:load\n"
    )
    source = Path(fewshot.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(source)])}
    command = [sys.executable, "-c", PROGRAM.format(first=first)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[0] == "[[0]] 3 False"
    assert "has a method that is called 'theirs'; use one name" in found.stderr


def test_a_registered_method_is_one_of_the_benchmarks(monkeypatch):
    monkeypatch.setattr(fewshot.METHODS, "_values", dict(fewshot.METHODS))
    paddle = fewshot.METHODS["paddle"]
    mine = fewshot.Method("mine", paddle.options, "l2", paddle.solve, "nowhere")
    assert fewshot.register(mine) is mine
    spec = fewshot.TaskSpec(fewshot.ShotsPerClass(1), fewshot.UniformOverPool(2), n_query=4)
    assert Cell("bank", spec, "mine", n_tasks=1).transform == "l2"
    task = random_task(0)
    assert fewshot.solve("mine", task).predictions.equal(fewshot.solve("paddle", task).predictions)


def test_what_is_no_method_or_takes_a_name_of_ours_is_refused():
    with pytest.raises(OptionError, match=r"a method must be a handful_fewshot\.Method, got function"):
        fewshot.register(lambda task: task)
    with pytest.raises(OptionError, match="'paddle' is already taken by handful"):
        fewshot.register(fewshot.METHODS["paddle"])
