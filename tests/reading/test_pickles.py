import collections
import os
import pickle

import numpy as np
import pytest
import torch

from handful.errors import BankError
from handful.reading import read_bank

FEATURES = np.arange(12, dtype=np.float32).reshape(6, 2)
LABELS = np.array([0, 1, 0, 2, 2, 1])


def write(path, content, how=4):
    if how == "zip":
        torch.save(content, path)
    elif how == "old torch":
        torch.save(content, path, _use_new_zipfile_serialization=False)
    else:
        path.write_bytes(pickle.dumps(content, protocol=how))
    return path


@pytest.mark.parametrize("how", ["zip", "old torch", 2, 5])
@pytest.mark.parametrize("kind", [torch.from_numpy, np.asarray], ids=["tensor", "array"])
def test_every_shape_that_few_shot_code_writes(tmp_path, how, kind):
    content = {"concat_features": kind(FEATURES), "concat_labels": kind(LABELS)}
    bank = read_bank(write(tmp_path / "test.plk", content, how), trust_pickle=True)
    np.testing.assert_array_equal(bank.features, FEATURES)
    np.testing.assert_array_equal(bank.labels, LABELS)
    pair = read_bank(write(tmp_path / "pair.pt", (kind(FEATURES), kind(LABELS)), how), trust_pickle=True)
    assert pair.content_hash == bank.content_hash
    named = write(tmp_path / "x.pt", {"z": kind(FEATURES), "k": kind(LABELS)}, how)
    assert read_bank(named, features="z", labels="k", trust_pickle=True).content_hash == bank.content_hash
    classes = write(tmp_path / "classes.pt", {2: kind(FEATURES[3:5]), 0: kind(FEATURES[[0, 2]])}, how)
    bank = read_bank(classes, trust_pickle=True)
    assert bank.class_names == ("0", "2")
    np.testing.assert_array_equal(bank.features, FEATURES[[0, 2, 3, 4]])


def test_the_list_that_simple_shot_writes(tmp_path):
    by_class = collections.defaultdict(list)
    for row, label in zip(FEATURES, LABELS.tolist(), strict=True):
        by_class[label].append(row)
    content = [FEATURES.mean(0), -1, by_class, collections.defaultdict(list)]
    bank = read_bank(write(tmp_path / "output.plk", content, 3), trust_pickle=True)
    assert bank.class_sizes.tolist() == [2, 2, 2]
    np.testing.assert_array_equal(bank.features[bank.labels == 1], FEATURES[LABELS == 1])


def test_half_precision_stays_and_brain_floats_become_single(tmp_path):
    for kind, dtype in ((torch.float16, "float16"), (torch.bfloat16, "float32"), (torch.float64, "float32")):
        content = {"features": torch.ones(2, 3, dtype=kind), "labels": torch.tensor([0, 1]), "names": ["a", "b"]}
        bank = read_bank(write(tmp_path / f"{dtype}{kind}.pt", content, "zip"), trust_pickle=True)
        assert bank.dtype == dtype
        assert bank.class_names == ("a", "b")


class Payload:
    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return os.mkdir, self.arguments


@pytest.mark.parametrize("how", ["zip", "old torch", 0, 2, 5])
def test_nothing_is_unpickled_unless_the_user_says_so(tmp_path, how):
    content = {"features": FEATURES, "labels": LABELS, "extra": Payload(str(tmp_path / "trace"))}
    file = write(tmp_path / "evil.pkl", content, how)
    with pytest.raises(BankError, match=r"a pickle is a program.*trust_pickle=True"):
        read_bank(file)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("content", [3, [], {}, {"a": 3}, {"a": []}, [1, 2, 3], "text", {"features": FEATURES}])
def test_other_content_is_refused(tmp_path, content):
    with pytest.raises(BankError, match=r"neither features with labels nor a mapping|no columns beside its vectors"):
        read_bank(write(tmp_path / "odd.pkl", content), trust_pickle=True)


def test_ragged_and_cut_files_are_refused(tmp_path):
    for content in ({0: FEATURES, 1: FEATURES[:, :1]}, {0: [FEATURES[0], FEATURES[0, :1]]}):
        with pytest.raises(BankError, match="different shapes"):
            read_bank(write(tmp_path / "ragged.pkl", content), trust_pickle=True)
    for how in ("zip", "old torch", 4):
        path = write(tmp_path / f"cut {how}.pt", {"features": FEATURES, "labels": LABELS}, how)
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(BankError, match="cut short or of another kind"):
            read_bank(path, trust_pickle=True)
