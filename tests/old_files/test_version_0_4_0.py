"""Files of version 0.4.0: they open, or the refusal says what to do."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from handful import BatchClassifier, classify, read, read_bank
from handful.cli.main import make_app
from handful.extraction.decode import decode_image
from handful.extraction.encoders import load_encoder
from handful.fitted import load_model
from handful_fewshot.errors import PlanError
from handful_fewshot.networks.checkpoint import Checkpoint
from tests.items_at_hand import image_bytes
from tests.old_files.opening import review_of

KEPT = Path(__file__).parent / "v0_4_0"


@pytest.fixture
def folder(tmp_path):
    """Return a copy, so that nothing is written beside the files that are kept."""
    return Path(shutil.copytree(KEPT, tmp_path / "kept"))


def truth():
    return json.loads((KEPT / "truth.json").read_text())


def test_a_catalogue_labels_a_batch(folder):
    before = load_model(folder / "kinds.handful")
    assert before.classes.tolist() == [f"kind {k}" for k in range(8)]
    found = classify(folder / "kinds.handful", folder / "today.npz")
    known = np.array(truth()) != "kind 8"
    assert (found.labels == truth())[known].all()
    with (folder / "labels.csv").open() as stream:
        then = [row["label"] for row in csv.DictReader(stream)]
    assert (np.array(then) == found.labels)[known].all()


def test_a_fitted_classifier_predicts(folder):
    classifier = BatchClassifier.load(folder / "classifier.safetensors")
    batch = np.load(folder / "today.npz")["features"]
    known = np.array(truth()) != "kind 8"
    assert (classifier.predict(batch) == truth())[known].all()


def test_a_bank_is_read(folder):
    bank = read_bank(folder / "kinds.bank")
    assert (len(bank.labels), bank.provenance.licence) == (32, "CC0")


@pytest.mark.parametrize("table", ["labels.csv", "labels.parquet"])
def test_an_earlier_batch_tells_the_share_of_unknown_items(folder, table):
    found = classify(folder / "kinds.handful", folder / "today.npz", expect_unknown=folder / table)
    assert found.rejected.any()


def test_a_review_goes_on_with_all_its_answers(folder):
    with review_of(folder / "kinds.handful", folder / "today.npz", folder / "reviewed.csv") as review:
        assert review.session.said.given == {0: None, 3: "kind 1", 4: "kind 1", 9: "kind 8", 17: "kind 2"}
        review.decide(review.number, [1], "class", truth()[1])
        assert review.session.n_decisions == 6


@pytest.mark.parametrize("command", ["bench status {}", "bench run --resume --out {}", "bench export {} rows.csv"])
def test_a_benchmark_whose_rows_have_other_columns_is_refused_in_a_sentence(folder, command, monkeypatch):
    monkeypatch.chdir(folder)
    refused = CliRunner().invoke(make_app(), command.format("bench").split())
    assert isinstance(refused.exception, PlanError)
    assert "bench is a run of handful 0.4.0, whose rows have other columns than those of " in str(refused.exception)
    assert not (folder / "rows.csv").exists()


def test_the_same_tasks_are_drawn(folder):
    spec = ["--shots", "1", "--k-eff", "2", "--n-query", "6", "--tasks", "3"]
    found = CliRunner().invoke(make_app(), ["tasks", "draw", "--bank", str(folder / "kinds.bank"), *spec])
    assert found.output == (folder / "tasks.jsonl").read_text()


def test_a_network_embeds_images(folder):
    kept = Checkpoint.load(folder / "network")
    assert (kept.classes, kept.epoch) == (("discs", "lines"), 1)
    vectors = load_encoder(f"checkpoint:{folder / 'network'}").embed([decode_image(image_bytes(0))])
    assert np.isfinite(vectors).all()


def test_a_finished_table_of_groups_is_read(folder):
    assert len(read(folder / "groups" / "items" / "today.parquet").columns["label"]) == 20
