import pickle

import numpy as np
import pytest
import torch

from handful.banks import FeatureBank, Provenance
from handful.errors import BankError
from tests.banks_at_hand import random_bank


def test_other_numbers_become_single_precision():
    assert FeatureBank.from_arrays([[1, 2]], [0], ["a"]).dtype == "float32"
    assert FeatureBank.from_arrays(torch.ones(1, 2, dtype=torch.float64), torch.tensor([0]), ["a"]).dtype == "float32"


@pytest.mark.parametrize(
    ("features", "labels", "names", "sentence"),
    [
        (np.zeros(3), [0, 0, 0], ["a"], r"axes \(row, dim\), got float64 of shape \(3,\)"),
        (np.zeros((3, 2, 2)), [0, 0, 0], ["a"], "flatten or average"),
        (np.array([["x", "y"]]), [0], ["a"], "must be numbers"),
        (np.zeros((2, 2)), [0], ["a"], "one whole number for each of the 2 rows"),
        (np.zeros((2, 2)), [0.0, 1.0], ["a", "b"], "whole number"),
        (np.zeros((2, 2)), [0, 2], ["a", "b"], r"0 … 1, .* got 0 … 2"),
        (np.zeros((2, 2)), [-1, 1], ["a", "b"], r"got -1 … 1"),
        (np.zeros((0, 2)), np.zeros(0, int), ["a"], "at least one row"),
    ],
)
def test_what_is_no_bank_is_refused_with_a_sentence(features, labels, names, sentence):
    with pytest.raises(BankError, match=sentence):
        FeatureBank.from_arrays(features, labels, names)


def test_restricting_to_classes_renumbers_and_shares():
    bank = random_bank(n_classes=5)
    part = bank.classes([3, 1])
    assert part.class_names == (bank.class_names[3], bank.class_names[1])
    assert part.stored is bank.stored
    for new, old in enumerate([3, 1]):
        np.testing.assert_array_equal(part.features[part.labels == new], bank.features[bank.labels == old])
    again = part.classes([1])
    np.testing.assert_array_equal(again.features, bank.features[bank.labels == 1])
    assert again.class_sizes.tolist() == [(bank.labels == 1).sum()]


def test_splits_are_by_class():
    bank = random_bank(n_classes=4, splits={"base": [0, 2], "test": [3]})
    assert bank.split("base").class_names == (bank.class_names[0], bank.class_names[2])
    with pytest.raises(BankError, match="no split 'validation'; it has base, test"):
        bank.split("validation")


@pytest.mark.parametrize("classes", [[0, 0], [4], [-1]])
def test_impossible_classes_are_refused(classes):
    bank = random_bank(n_classes=4)
    with pytest.raises(BankError, match=r"distinct numbers in 0 … 3"):
        bank.classes(classes)
    with pytest.raises(BankError, match=r"split 'x' must list distinct classes in 0 … 3"):
        random_bank(n_classes=4, splits={"x": classes})


def test_take_gathers_indices_of_any_shape(monkeypatch):
    monkeypatch.setattr("handful.banks.bank.BLOCK_ROWS", 4)  # several blocks, the last one short
    bank = random_bank(n_classes=3).classes([2, 0])
    rows = np.random.default_rng(0).integers(0, bank.n_rows, (3, 5))
    np.testing.assert_array_equal(bank.take(rows), bank.features[rows])
    np.testing.assert_array_equal(np.concatenate(list(bank.blocks(7))), bank.features)
    for row in (-1, bank.n_rows):
        with pytest.raises(BankError, match="rows must lie in 0 … "):
            bank.take([row])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_saved_bank_loads_as_it_was(tmp_path, dtype):
    provenance = Provenance("set", "CC0", "net", "crop", {"torch": "2"}, "a note\nof two lines")
    bank = random_bank(dtype=dtype, provenance=provenance, splits={"test": [1]})
    loaded = bank.save(tmp_path / "new" / "bank")
    assert isinstance(loaded.stored, np.memmap)
    assert loaded.dtype == dtype
    np.testing.assert_array_equal(loaded.features, bank.features)
    np.testing.assert_array_equal(loaded.labels, bank.labels)
    assert (loaded.class_names, loaded.provenance, loaded.splits) == (bank.class_names, provenance, bank.splits)
    assert loaded.recorded_hash == loaded.verify() == bank.content_hash


def test_a_restricted_bank_is_saved_as_what_it_shows(tmp_path):
    part = random_bank(n_classes=4).save(tmp_path / "whole").classes([2, 1])
    saved = part.save(tmp_path / "part")
    np.testing.assert_array_equal(saved.features, part.features)
    assert saved.content_hash == part.content_hash


def test_the_hash_tells_content_apart():
    bank = random_bank()
    swapped = bank.labels.copy()
    swapped[[0, -1]] = swapped[[-1, 0]]
    features = bank.features.copy()
    features[3, 1] += 1
    others = [
        FeatureBank.from_arrays(features, bank.labels, bank.class_names),
        FeatureBank.from_arrays(bank.features, swapped, bank.class_names),
        FeatureBank.from_arrays(bank.features, bank.labels, bank.class_names[::-1]),
        FeatureBank.from_arrays(bank.features.astype("float16"), bank.labels, bank.class_names),
    ]
    assert len({b.content_hash for b in [bank, *others]}) == 5
    same = FeatureBank.from_arrays(bank.features, bank.labels, bank.class_names, provenance=Provenance(notes="other"))
    assert same.content_hash == bank.content_hash


def test_verify_finds_a_changed_byte(tmp_path):
    bank = random_bank().save(tmp_path / "bank")
    file = tmp_path / "bank" / "features.npy"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.raises(BankError, match="changed or damaged"):
        FeatureBank.load(tmp_path / "bank").verify()
    assert bank.n_rows  # opening alone does not read the features


def test_features_that_are_not_finite_are_refused(tmp_path):
    features = np.ones((5, 2), np.float16)
    features[3, 1] = np.inf
    bank = FeatureBank.from_arrays(features, [0] * 5, ["a"])
    for act in (bank.verify, lambda: bank.save(tmp_path / "bank")):
        with pytest.raises(BankError, match="row 3 has a feature that is not finite"):
            act()
    assert list(tmp_path.iterdir()) == []


def test_a_mapped_bank_pickles_as_a_reference(tmp_path):
    features = np.zeros((1000, 64), np.float32)
    features[7] = 7
    bank = FeatureBank.from_arrays(features, np.arange(1000) % 2, ["a", "b"], splits={"test": [1]})
    mapped = bank.save(tmp_path / "bank")
    pickled = pickle.dumps(mapped)
    assert len(pickled) < 10_000 < len(pickle.dumps(bank))
    again = pickle.loads(pickled)
    assert again.verify() == mapped.content_hash
    assert pickle.loads(pickle.dumps(mapped.split("test"))).take(3).tolist() == [7.0] * 64
    assert again.splits == bank.splits


@pytest.mark.parametrize("factor", [1e300, 1e-42, 1e-300])
def test_features_that_single_precision_cannot_hold_are_refused(factor):
    with pytest.raises(BankError, match=r"features reach .*; multiply them all by a number that brings them near one"):
        FeatureBank.from_arrays(np.full((2, 2), factor), [0, 0], ["ant"])


def test_what_made_the_features_is_read_under_its_earlier_name_too():
    assert Provenance.from_mapping({"backbone": "net"}) == Provenance.from_mapping({"encoder": "net"})
    assert Provenance(encoder="net").to_mapping()["encoder"] == "net"
