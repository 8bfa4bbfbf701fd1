"""Files of classifiers: everything comes back, strangers' files are refused, nothing is executed."""

import datetime
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from handful.errors import FileFormatError, LabelError
from handful.estimators import BatchClassifier
from handful.fitted.labels import decode_labels, encode_labels, objects
from handful.machine.safetensors_format import read_tensors, write_tensors

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 5)) + np.repeat(3 * RNG.standard_normal((4, 5)), 3, axis=0)
Y = np.repeat(["ant", "bee", "cat", "dog"], 3)
BATCH = RNG.standard_normal((6, 5))
pytestmark = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")


def test_a_classifier_comes_back_whole(tmp_path):
    made = BatchClassifier().fit(X, Y)
    made.save(tmp_path / "c.safetensors")
    again = BatchClassifier.load(tmp_path / "c.safetensors")
    assert again.get_params() == made.get_params()
    assert again.classes_.dtype == made.classes_.dtype
    assert (again.predict_proba(BATCH) == made.predict_proba(BATCH)).all()
    assert again.partial_fit(X[:1], Y[:1]).n_features_in_ == 5


def test_names_of_features_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    BatchClassifier().fit(frame, Y).save(tmp_path / "c")
    again = BatchClassifier.load(tmp_path / "c")
    assert again.feature_names_in_.tolist() == list("abcde")
    again.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[list("edcba")])


def test_the_safetensors_package_reads_it(tmp_path):
    BatchClassifier().fit(X, Y).save(tmp_path / "c.safetensors")
    with safe_open(tmp_path / "c.safetensors", "np") as file:
        np.testing.assert_allclose(file.get_tensor("points"), X / np.linalg.norm(X, axis=1, keepdims=True), rtol=1e-6)
        assert file.get_tensor("shots").tolist() == np.unique(Y, return_counts=True)[1].tolist()
        assert json.loads(file.metadata()["handful"])["classes"]["values"] == ["ant", "bee", "cat", "dog"]


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "ü", "c"]),
        np.array([-3, 7], dtype=np.int8),
        np.array([1.5, 2.0]),
        np.array([False, True]),
        np.array(["2026-01-01", "2026-02-03"], dtype="datetime64[D]"),
        np.array([5, 60], dtype="timedelta64[s]"),
        objects(["a", "b"]),
        objects([("a", 1), ("a", (2, True))]),
    ],
    ids=str,
)
def test_labels_survive_json(labels):
    again = decode_labels(json.loads(json.dumps(encode_labels(labels))))
    assert again.dtype == labels.dtype
    assert again.tolist() == labels.tolist()


@pytest.mark.parametrize("labels", [objects([datetime.date(2026, 1, 1)]), np.array([b"a"])])
def test_labels_that_json_cannot_hold_are_refused(labels):
    with pytest.raises(LabelError, match="cannot be saved"):
        encode_labels(labels)


def test_saving_replaces_the_older_file(tmp_path):
    for n in (6, 12):
        BatchClassifier().fit(X[:n], Y[:n]).save(tmp_path / "c")
    assert len(BatchClassifier.load(tmp_path / "c").classes_) == 4
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_no_flipped_bit_changes_an_answer(tmp_path):
    made, file = BatchClassifier().fit(X, Y), tmp_path / "c"
    made.save(file)
    wanted, content = made.predict_proba(BATCH), file.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng = np.random.default_rng(0)
    refused = 0
    for place in [*rng.integers(0, len(content), 120).tolist(), *rng.integers(0, header, 80).tolist()]:
        file.write_bytes(content[:place] + bytes([content[place] ^ 1 << rng.integers(8)]) + content[place + 1 :])
        try:
            found = BatchClassifier.load(file)
        except FileFormatError:
            refused += 1
        else:
            assert (found.predict_proba(BATCH) == wanted).all()
            assert found.get_params() == made.get_params()
    assert refused >= 190


def test_exchanged_tensors_and_nan_are_refused(tmp_path):
    file = tmp_path / "c"
    BatchClassifier().fit(X, Y).save(file)
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]

    def write(header, data):
        text = json.dumps(header).encode()
        file.write_bytes(len(text).to_bytes(8, "little") + text + data)

    write(header, data)
    BatchClassifier.load(file)  # the same content, written in another way
    weights, means = header["head.weights"], header["head.means"]
    assert weights["shape"] == means["shape"]
    write(header | {"head.weights": means, "head.means": weights}, data)
    with pytest.raises(FileFormatError, match="does not fit its checksum"):
        BatchClassifier.load(file)
    start = header["left_out.score"]["data_offsets"][0]
    write(header, data[:start] + np.array([np.nan]).tobytes() + data[start + 8 :])
    with pytest.raises(FileFormatError, match="does not fit its checksum"):
        BatchClassifier.load(file)


def test_files_of_other_versions_say_to_fit_and_save_again(tmp_path):
    BatchClassifier().fit(X, Y).save(tmp_path / "c")
    held, metadata = read_tensors(tmp_path / "c")
    save_file(held, tmp_path / "c", metadata)  # without a checksum
    with pytest.raises(FileFormatError, match="fit and save"):
        BatchClassifier.load(tmp_path / "c")
    about = json.loads(metadata["handful"]) | {"format_version": 5}
    write_tensors(tmp_path / "c", held, {"handful": json.dumps(about)})
    with pytest.raises(FileFormatError, match=r"version 5, not 1.*fit and save it again"):
        BatchClassifier.load(tmp_path / "c")
