import collections
import io
import os
import pickle

import numpy as np
import pytest
import torch

from handful.banks import read_bank
from handful.errors import BankError
from tests.banks_at_hand import random_bank

FEATURES = np.arange(12, dtype=np.float32).reshape(6, 2)
LABELS = np.array([0, 1, 0, 2, 2, 1])


def write(path, content, how):
    if how == "zip":
        torch.save(content, path)
    elif how == "old torch":
        torch.save(content, path, _use_new_zipfile_serialization=False)
    else:
        path.write_bytes(pickle.dumps(content, protocol=how))
    return path


@pytest.mark.parametrize("how", ["zip", "old torch", 0, 2, 4, 5])
@pytest.mark.parametrize("kind", [torch.from_numpy, np.asarray], ids=["tensor", "array"])
def test_features_with_labels(tmp_path, how, kind):
    content = {"concat_features": kind(FEATURES), "concat_labels": kind(LABELS)}
    bank = read_bank(write(tmp_path / "test.plk", content, how))
    np.testing.assert_array_equal(bank.features, FEATURES)
    np.testing.assert_array_equal(bank.labels, LABELS)
    pair = read_bank(write(tmp_path / "pair.pt", (kind(FEATURES), kind(LABELS)), how))
    assert pair.content_hash == bank.content_hash


@pytest.mark.parametrize("how", ["zip", "old torch", 2, 5])
def test_a_mapping_from_class_to_features(tmp_path, how):
    content = {2: torch.from_numpy(FEATURES[3:5]), 0: torch.from_numpy(FEATURES[[0, 2]])}
    bank = read_bank(write(tmp_path / "test.pt", content, how))
    assert bank.class_names == ("0", "2")
    np.testing.assert_array_equal(bank.features, FEATURES[[0, 2, 3, 4]])
    named = read_bank(write(tmp_path / "named.pt", {"bee": FEATURES[:2], "ant": FEATURES[2:]}, how))
    assert named.class_names == ("bee", "ant")


def test_the_list_that_simple_shot_writes(tmp_path):
    by_class = collections.defaultdict(list)
    for row, label in zip(FEATURES, LABELS.tolist(), strict=True):
        by_class[label].append(row)
    content = [FEATURES.mean(0), -1, by_class, collections.defaultdict(list)]
    bank = read_bank(write(tmp_path / "output.plk", content, 3))
    assert bank.class_sizes.tolist() == [2, 2, 2]
    np.testing.assert_array_equal(bank.features[bank.labels == 1], FEATURES[LABELS == 1])


def test_half_precision_stays_and_brain_floats_become_single(tmp_path):
    for kind, dtype in ((torch.float16, "float16"), (torch.bfloat16, "float32"), (torch.float64, "float32")):
        content = {"features": torch.ones(2, 3, dtype=kind), "labels": torch.tensor([0, 1]), "names": ["a", "b"]}
        bank = read_bank(write(tmp_path / f"{dtype}{kind}.pt", content, "zip"))
        assert bank.dtype == dtype
        assert bank.class_names == ("a", "b")


class Payload:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


@pytest.mark.parametrize("how", ["zip", "old torch", 0, 2, 5])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_payload_is_refused_and_never_runs(tmp_path, how, hidden):
    trace = tmp_path / "trace"
    payload = Payload(os.mkdir, str(trace))
    content = {"features": FEATURES, "labels": LABELS, "extra": payload} if hidden else payload
    with pytest.raises(BankError, match="is refused"):
        read_bank(write(tmp_path / "evil.pkl", content, how))
    assert not trace.exists()


def test_a_payload_inside_a_storage_is_refused(tmp_path):
    trace, inner = tmp_path / "trace", io.BytesIO()
    torch.save(Payload(os.mkdir, str(trace)), inner)
    outer = Payload(torch.storage._load_from_bytes, inner.getvalue())
    with pytest.raises(BankError, match="is refused"):
        read_bank(write(tmp_path / "evil.pkl", outer, 4))
    assert not trace.exists()


@pytest.mark.parametrize("call", [eval, getattr, __import__, exec, np.load, torch.load])
def test_names_beyond_arrays_and_containers_are_refused(tmp_path, call):
    with pytest.raises(BankError, match="it names"):
        read_bank(write(tmp_path / "evil.pkl", Payload(call, "1"), 4))


def test_codecs_are_not_a_way_in(tmp_path):
    import _codecs

    with pytest.raises(BankError, match="codec 'zip'"):
        read_bank(write(tmp_path / "evil.pkl", Payload(_codecs.encode, b"0", "zip"), 4))


@pytest.mark.parametrize("content", [3, [], {}, {"a": 3}, {"a": []}, [1, 2, 3], "text", {"features": FEATURES}])
def test_other_content_is_refused(tmp_path, content):
    with pytest.raises(BankError, match=r"neither features with labels nor a mapping|no column that looks like labels"):
        read_bank(write(tmp_path / "odd.pkl", content, 4))


def test_ragged_and_cut_files_are_refused(tmp_path):
    with pytest.raises(BankError, match="different shapes"):
        read_bank(write(tmp_path / "ragged.pkl", {0: FEATURES, 1: FEATURES[:, :1]}, 4))
    for how in ("zip", "old torch", 4):
        path = write(tmp_path / f"cut {how}.pt", {"features": FEATURES, "labels": LABELS}, how)
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(BankError):
            read_bank(path)


def test_columns_can_be_named(tmp_path):
    bank = random_bank()
    path = write(tmp_path / "x.pt", {"z": torch.from_numpy(bank.features), "k": torch.from_numpy(bank.labels)}, "zip")
    read = read_bank(path, features="z", labels="k")
    np.testing.assert_array_equal(read.features, bank.features)
