"""The boundary: what the paper's package takes from handful is public, and handful runs without the package."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.test_documents import REFERENCE, named, values_in_the_reference

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "handful_fewshot"

# A program that cannot import the paper's package, as if it were not there.
WITHOUT = """
import sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "handful_fewshot":
            raise ModuleNotFoundError("refused", name="handful_fewshot")

sys.meta_path.insert(0, Refuses())
"""


def taken(text: str) -> set[str]:
    """Full names of what a source file imports from handful, at its top or anywhere else."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name.partition(".")[0] == "handful"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "handful":
            found |= {f"{node.module}.{one.name}" for one in node.names}
    return found


def private(names: set[str]) -> list[str]:
    """Those that docs/api.rst does not list: a class or a function may have several addresses."""
    values = set(values_in_the_reference())
    listed = [named(name) for name in REFERENCE]
    return sorted(
        name
        for name in names - values
        if not ("." in name and hasattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2]))
        or not any(named(name) is one for one in listed)
    )


def test_all_that_the_papers_package_takes_from_handful_is_listed():
    names = {name for path in PACKAGE.rglob("*.py") for name in taken(path.read_text(encoding="utf-8"))}
    assert len(names) > 20
    assert private(names) == []


def test_what_is_not_listed_is_found():
    inside = "def f():\n    from handful.model.head import fit_head\n    import handful.runs\n"
    assert private(taken(inside)) == ["handful.model.head.fit_head", "handful.runs"]


def test_every_value_of_the_reference_is_there():
    assert all(named(name) is not None for name in values_in_the_reference())


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT + program, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def test_the_finder_refuses_the_package():
    assert "ModuleNotFoundError: refused" in run("import handful_fewshot").stderr


def test_every_door_labels_a_batch_without_the_package(tmp_path):
    program = """
from pathlib import Path
import numpy as np
from handful.estimators import BatchClassifier
from tests.doors import DOORS, Room

rng = np.random.default_rng(0)
centres = rng.normal(size=(8, 12)).astype(np.float32)
y = np.arange(8).repeat(4)
classifier = BatchClassifier().fit(centres[y] + 0.3 * rng.normal(size=(32, 12)), y)
batch = centres[[3] * 20 + [5] * 20] + 0.3 * rng.normal(size=(40, 12))
room = Room.of(classifier, batch, Path(sys.argv[1]))
for name, door in DOORS.items():
    answer = door(room, {})
    assert [int(label) for label in answer.labels] == [3] * 20 + [5] * 20, name
assert "handful_fewshot" not in sys.modules
print(len(DOORS))
"""
    ran = run(program, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 5


def test_every_command_runs_without_the_package_and_others_say_what_to_install(tmp_path):
    pytest.importorskip("typer")
    program = """
import contextlib, io, json
from pathlib import Path
import numpy as np
from handful.cli.main import main, make_app
import typer

def said(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main([*map(str, words)])
    return code, out.getvalue(), err.getvalue()

def leaves(command, path=()):
    if not hasattr(command, "commands"):
        return [path]
    return [leaf for name, below in command.commands.items() for leaf in leaves(below, (*path, name))]

words = leaves(typer.main.get_command(make_app()))
assert ("classify",) in words and not any(path[0] in ("bench", "report", "tasks", "train") for path in words)
for path in words:
    code, out, err = said(*path, "--help")
    assert (code, err) == (0, ""), (path, err)
    assert "Usage: handful" in out

folder = Path(sys.argv[1])
rng = np.random.default_rng(0)
y = np.arange(6).repeat(4)
centres = rng.normal(size=(6, 12)).astype(np.float32)
names = np.array([f"kind {k}" for k in range(6)])
np.savez(folder / "c.npz", features=centres[y] + 0.2 * rng.normal(size=(24, 12)), labels=names[y])
np.savez(folder / "b.npz", features=centres[[1] * 20] + 0.2 * rng.normal(size=(20, 12)))
taxa = {"a": "x;mammalia;carnivora;felidae;lynx;lynx;lynx", "b": "y;mammalia;carnivora;canidae;vulpes;vulpes;fox"}
sure = {"classes": list(taxa.values()), "scores": [0.9, 0.1]}
scored = [{"filepath": f"{i}.jpg", "classifications": sure} for i in range(12)]
(folder / "s.json").write_text(json.dumps({"predictions": scored}))
code, out, err = said("classify", folder / "c.npz", folder / "b.npz", "--out", folder / "p.csv")
assert code == 0 and "kind 1" in (folder / "p.csv").read_text(), err
code, out, err = said("rescore", folder / "s.json", "--out", folder / "q.csv")
assert code == 0 and "lynx" in (folder / "q.csv").read_text(), err
for command in (("bench", "run"), ("tasks", "draw"), ("train",), ("report", "x")):
    code, out, err = said(*command)
    assert code == 2 and f"No such command '{command[0]}'" in " ".join(err.split()), err
    assert "handful_fewshot, which is not installed: run pip install" in " ".join(err.replace("│", " ").split()), err
code, out, err = said("classify", folder / "c.npz", folder / "b.npz", "--method", "paddle", "--out", folder / "r.csv")
assert code == 1 and "no method is called 'paddle'; the commands, methods and encoders of few-shot research" in err, err
assert "handful_fewshot" not in sys.modules
"""
    ran = run(program, tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_a_review_answers_without_the_package(tmp_path):
    pytest.importorskip("starlette")
    program = """
from pathlib import Path
from starlette.testclient import TestClient
from handful.review.guard import new_token
from handful.review.server import Finished, Page, Routes, make_app
from tests.review.reviews import problem, under_review

HOST = "http://127.0.0.1:8080"
token = new_token()
with under_review(Path(sys.argv[1]) / "review", problem(contents=lambda item: f"text of {item}")[0]) as review:
    routes = Routes(Page(review, "today", out="labels.csv"), lambda *_: Finished(["labels.csv"], ""), [].append)
    app = make_app(routes, frozenset({HOST.removeprefix("http://")}), token)
    client = TestClient(app, base_url=f"{HOST}{app.path}", headers={"origin": HOST})
    assert client.get(f"{HOST}/?token={token}").status_code == 200
assert "handful_fewshot" not in sys.modules
"""
    ran = run(program, tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_an_encoder_that_the_package_adds_says_what_to_install():
    program = """
from handful.errors import UnknownNameError
from handful.extraction.encoders import load_encoder

try:
    load_encoder("checkpoint:runs/mine")
except UnknownNameError as error:
    assert "come with handful_fewshot, which is not installed: run pip install" in str(error), error
else:
    raise AssertionError
"""
    ran = run(program)
    assert ran.returncode == 0, ran.stderr
