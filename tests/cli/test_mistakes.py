"""What people type by mistake: each answer names what was typed, the nearest name, and what to do."""

import socket

import numpy as np
import pytest

from handful.classification.labelled import how_labelled

pytest.importorskip("typer")
import torch

from handful import BatchClassifier, classify
from handful.cli.main import main
from handful.errors import BankError, LabelError, OptionError
from handful.extraction.encoders import load_encoder
from handful.machine.outputs import refusal

X = np.eye(4).repeat(3, 0) + np.random.default_rng(0).normal(size=(12, 4)) / 10
Y = list("aaabbbcccddd")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", features=X, labels=Y)
    np.savez("bare.npz", features=X)
    (tmp_path / "t.csv").write_text("text,label\na b,x\nc d,y\n")
    (tmp_path / "v.csv").write_text("emb_0,emb_1,label\n1,2,x\n2,1,y\n")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("classify x.npz x.npz --out l.csv --method padle", "'padle' (did you mean 'paddle'?)"),
        ("bench run --bank clinc150 --method padle --out r", "no method is called 'padle' (did you mean 'paddle'?)"),
        ("bench run --bank clinc --method paddle --out r", "clinc does not exist (did you mean 'clinc150'?)"),
        ("catalogue show x.npz", "handful catalogue build x.npz --out x.handful"),
        ("catalogue show there_is_none.npz", "there_is_none.npz does not exist"),
        (
            "classify bare.npz x.npz --out l.csv",
            "no columns beside its vectors, so it has no labels",
        ),
        (
            "classify t.csv t.csv --features embedding --out l.csv",
            "no input has a column 'embedding' for the features: t.csv has text, label",
        ),
        (
            "classify v.csv v.csv --features embedding --out l.csv",
            "v.csv has no column 'embedding' for the features, and none that begins with it",
        ),
        (
            "classify v.csv v.csv --labels labels1 --out l.csv",
            "no column 'labels1' (did you mean 'label'?) for the labels",
        ),
    ],
)
def test_commands(here, capsys, typed, sentence):
    assert main(typed.split()) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["", "classify", "review", "catalogue", "catalogue build", "bench", "bench run", "demo"]
)
def test_the_short_option_for_help_works_everywhere(command, capsys):
    assert main([*command.split(), "-h"]) == 0
    assert f"Usage: handful {command}".strip() in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_a_device_that_is_not_there(here, capsys):
    assert main(["classify", "t.csv", "t.csv", "--device", "cuda", "--out", "l.csv"]) == 1
    said = capsys.readouterr().err
    assert "device 'cuda' cannot be used on this machine" in said
    assert "leave it out to use the cpu" in said
    with pytest.raises(OptionError, match="device 'cuda:1' cannot be used"):
        load_encoder("minilm", device="cuda:1")


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1, np.nan, 2, 2, 2, 3, 3, 3], [*"aaabb", np.nan, *"cccddd"]])
def test_a_missing_label_is_named_by_its_row(labels):
    with pytest.raises(LabelError, match="no label in row 5"):
        BatchClassifier().fit(X, labels)


def test_arguments_that_do_not_exist(here):
    with pytest.raises(OptionError, match=r"no argument 'label' \(did you mean 'labels'\?\)"):
        classify("x.npz", "x.npz", label="y")
    with pytest.raises(BankError, match="it has no labels"):
        classify("bare.npz", "x.npz")


def test_a_port_that_is_in_use():
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="in use") as refused:
            second.bind(first.getsockname())
    assert refusal(refused.value) == "another program uses this port; name another one, or 0 for any that is free"


def test_one_class_and_one_item_are_said(here, capsys):
    np.savez("one.npz", features=X[:3], labels=["a"] * 3)
    assert main(["classify", "one.npz", "x.npz", "--out", "l.csv"]) == 0
    assert "With a single class every item has its label" in " ".join(capsys.readouterr().out.split())
    np.savez("single.npz", features=X[:1])
    assert "one item is not a batch to learn from" in how_labelled(classify("one.npz", "single.npz"))


def test_tuning_runs_with_the_bank_that_comes_with_the_package(here, capsys):
    command = "bench run --paper tuning --bank clinc150 --method laplacian_shot --tasks 2"
    assert main([*command.split(), "--out", "r"]) == 0
    assert main(["report", "r", "--out", "page"]) == 0
    assert main(["bench", "run", "page/tuned.toml", "--tasks", "2", "--out", "tuned"]) == 0
    assert "clinc150/test" in capsys.readouterr().out
