from pathlib import Path

import numpy as np
import pytest

import handful
import handful_fewshot as fewshot
from handful import read_bank
from handful.datasets import load_clinc150, load_clinc150_sentences
from handful_fewshot import ShotsPerClass, TaskSpec, UniformOverPool
from tests.conftest import SHARED


def test_it_has_fifty_rows_of_each_class_and_says_where_it_came_from():
    bank = load_clinc150()
    assert bank.class_sizes.tolist() == [50] * 150
    assert "CC BY 3.0" in bank.provenance.licence
    assert len(bank.verify()) == 64


def test_it_is_small_and_attributed():
    folder = Path(handful.__file__).parent / "datasets"
    assert sum(f.stat().st_size for f in folder.iterdir() if f.is_file()) < 3_000_000
    assert "Larson" in (folder / "CLINC150.md").read_text()


def test_rows_are_those_of_the_whole_bank():
    folder = SHARED / "data" / "clinc150-minilm"
    if not folder.is_dir():
        pytest.skip("the bank is not here: expected a folder shared/data/clinc150-minilm beside the repository")
    whole, part = read_bank(folder), load_clinc150()
    kept = np.flatnonzero(np.load(folder / "original_split.npy") != 1)
    assert part.class_names == whole.class_names
    np.testing.assert_array_equal(part.labels, whole.labels[kept])
    rows, again = whole.take(kept).astype("float32"), part.features
    cosines = (rows * again).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(again, axis=1)
    assert cosines.min() > 0.9998


def test_there_is_a_sentence_for_every_row():
    bank, sentences = load_clinc150(), load_clinc150_sentences()
    assert len(sentences) == bank.n_rows
    assert all(sentence == sentence.strip() != "" for sentence in sentences)
    # Words of an intent are in most of its sentences, so the order is that of the rows.
    for word, intent in (("luggage", "lost_luggage"), ("recipe", "recipe"), ("exchange", "exchange_rate")):
        named = {bank.class_names[bank.labels[i]] for i, sentence in enumerate(sentences) if word in sentence.split()}
        assert intent in named
        of_intent = [i for i in range(bank.n_rows) if bank.class_names[bank.labels[i]] == intent]
        assert sum(word in sentences[i] for i in of_intent) > 15


def test_classes_can_be_told_apart_on_it():
    bank = load_clinc150()
    spec = TaskSpec(ShotsPerClass(5), UniformOverPool(5), 75)
    task, truth = fewshot.gather(bank, fewshot.draw(bank.labels, spec, 0, range(40)))
    nearest = fewshot.solve("soft_kmeans", fewshot.transform("l2", task), max_iter=1)
    assert 0.84 < (nearest.predictions == truth).float().mean() < 0.92
