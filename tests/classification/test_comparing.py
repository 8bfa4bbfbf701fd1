"""Which encoder: the same left-out examples for all, and no difference where there is none."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from handful.banks import FeatureBank
from handful.classification.comparing import compare_encoders
from handful.errors import BankError, LabelError, MissingExtraError, OptionError, SkippedRowsWarning
from handful.extraction.encoder import Encoder
from handful.extraction.encoders import register_encoder
from tests.items_at_hand import image_bytes, small_encoder


@pytest.fixture(autouse=True)
def _few_batches(monkeypatch):
    monkeypatch.setattr("handful.fitted.left_out_batches.BATCHES_OF_PART", 6)


def frame_of(n_classes=9, shots=5, noise=(0.3, 0.3), seed=0, dim=12):
    """Return a table with the columns a and b, whose vectors have this much noise each."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, dim)).repeat(shots, 0)
    frame = pd.DataFrame({"label": np.repeat([f"class {k}" for k in range(n_classes)], shots)})
    for name, size in zip("ab", noise, strict=True):
        frame[name] = list(centres + size * rng.normal(size=centres.shape))
    return frame


def test_the_better_encoder_is_named_and_the_other_is_worse():
    found = compare_encoders(frame_of(noise=(0.4, 3.0)), features=["b", "a"])
    assert found.best.name == "a"
    assert [one.verdict for one in found.encoders] == ["worse", "best"]
    behind = found.encoders[0].behind
    assert behind.low < behind.value < behind.high < 0
    assert "b has" in str(found)


def test_the_same_vectors_turned_or_scaled_cannot_be_told_apart():
    frame = frame_of(noise=(1.2, 1.2))
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
    frame["b"] = list(1_000 * np.stack(frame["a"].tolist()) @ turn)
    found = compare_encoders(frame, features=["a", "b"])
    assert {one.verdict for one in found.encoders} == {"best", "cannot tell"}
    one, other = found.encoders
    assert one.jointly.value == pytest.approx(other.jointly.value, abs=0.02)
    assert one.behind.low <= 0 <= one.behind.high


def test_an_interval_is_never_empty_even_if_all_labels_are_right():
    found = compare_encoders(frame_of(noise=(0.01, 0.01)), features=["a", "b"])
    for one in found.encoders:
        assert one.jointly.value == 1
        assert one.jointly.low < 0.97
        assert one.jointly.high == 1
    assert found.encoders[1].verdict == "cannot tell"
    assert found.encoders[1].behind.low < 0 < found.encoders[1].behind.high


def test_a_copy_is_left_out_with_its_example():
    """Vectors without any meaning look right if a copy of each stays in the catalogue."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 3).repeat(2)
    points = rng.normal(size=(24, 12)).repeat(2, 0)
    points[1::2] += 1e-3 * rng.normal(size=(24, 12))
    frame = pd.DataFrame({"label": labels, "a": list(points)})
    found = compare_encoders(frame, features="a")
    assert found.encoders[0].alone.value < 0.5
    assert found.n_left_out == 24
    assert "24 examples nearly equal to another" in str(found)


def test_frames_of_a_sequence_are_left_out_together():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 6)
    burst = np.arange(48) // 3
    points = rng.normal(size=(16, 12)).repeat(3, 0) + 0.4 * rng.normal(size=(48, 12))
    frame = pd.DataFrame({"label": labels, "burst": burst, "a": list(points)})
    alone = compare_encoders(frame, features="a").encoders[0].alone
    apart = compare_encoders(frame, features="a", sequence="burst")
    assert alone.value > 0.6
    assert apart.encoders[0].alone.value < 0.5
    assert apart.n_left_out == 16


def test_an_example_with_two_labels_is_left_out():
    frame = frame_of()
    frame.loc[7, ["a", "b"]] = frame.loc[0, ["a", "b"]].values
    found = compare_encoders(frame, features=["a", "b"])
    assert "2 examples left out, because an equal one has another label." in found.notes
    assert found.n_examples == 43


def test_classes_with_one_example_stay_and_are_named():
    frame = frame_of()
    frame = frame.drop(index=range(1, 5))
    found = compare_encoders(frame, features=["a", "b"])
    assert found.n_classes == 9
    assert found.n_left_out == 40
    assert "1 class with one example, which is never left out: class 0." in found.notes


def test_no_class_with_two_examples_is_refused():
    with pytest.raises(LabelError, match="0 classes of 9 has two different examples"):
        compare_encoders(frame_of(shots=1), features=["a", "b"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_two_classes_can_be_compared(n_classes):
    found = compare_encoders(frame_of(n_classes=n_classes, shots=8, noise=(0.2, 6.0)), features=["a", "b"])
    assert found.best.name == "a"
    assert found.encoders[1].jointly.high > found.encoders[1].jointly.low
    if n_classes == 2:
        assert found.encoders[0].unknown is None
        assert any("could not be ranked" in note for note in found.notes)


def test_the_work_is_bounded(monkeypatch):
    monkeypatch.setattr("handful.fitted.left_out_batches.MOST_CLASSES", 8)
    monkeypatch.setattr("handful.fitted.left_out_batches.MOST_EXAMPLES", 3)
    found = compare_encoders(frame_of(n_classes=30), features=["a", "b"])
    assert (found.n_classes, found.n_examples) == (8, 24)
    assert any("8 classes of 30 and 24 examples of 150" in note for note in found.notes)


def test_more_examples_are_asked_for_where_they_help_more():
    """The encoders hardly differ, and their labels get better with every example."""
    frame = frame_of(n_classes=24, shots=9, noise=(2.0, 2.0), dim=40)
    points = np.stack(frame["a"].tolist())
    frame["b"] = list(points + 0.2 * np.random.default_rng(2).normal(size=points.shape))
    found = compare_encoders(frame, features=["a", "b"])
    other = next(one for one in found.encoders if one.verdict != "best")
    assert other.doubled.low > 0
    assert other.more_examples
    assert "More examples would help more than another of these encoders." in str(found)


def test_the_same_seed_gives_the_same_answer_and_a_table():
    frame = frame_of(noise=(1.0, 1.5))
    first, second = (compare_encoders(frame, features=["a", "b"], seed=3).table() for _ in range(2))
    np.testing.assert_equal(first, second)
    assert pd.DataFrame(first)["encoder"].tolist() == ["a", "b"]
    assert np.isnan(first["seconds"]).all()


def test_rows_without_a_vector_of_one_encoder_are_left_out_for_all():
    frame = frame_of()
    frame.loc[3, "b"] = None
    with pytest.warns(SkippedRowsWarning):
        found = compare_encoders(frame, features=["a", "b"])
    assert found.n_examples == 44
    assert "1 example left out: an encoder has no vector of it." in found.notes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "name the encoders to compare"),
        ({"features": ["a", "a"]}, "'a' is named twice"),
        ({"encoder": "minilm"}, "an encoder is for images and sentences"),
        ({"features": "a", "seed": -1}, "seed"),
        ({"features": "a", "colour": "red"}, "there is no argument 'colour'"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, said):
    with pytest.raises(OptionError, match=said):
        compare_encoders(frame_of()[["label", "a"]], **options)


def photographs(folder):
    """Write three pictures of each of four classes, and one more that cannot be read."""
    for k in range(4):
        (folder / f"class {k}").mkdir(parents=True)
        for n in range(3):
            (folder / f"class {k}" / f"{n}.png").write_bytes(image_bytes(10 * k + n))
    (folder / "class 3" / "broken.png").write_bytes(b"no picture")


def test_an_encoder_that_is_not_installed_names_its_extra_before_any_work(tmp_path, monkeypatch):
    photographs(tmp_path)
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.setattr("handful.classification.comparing.extracted", lambda *_: pytest.fail("embedded too early"))
    register_encoder("small for this", lambda device: small_encoder())
    with pytest.raises(MissingExtraError, match=r"\[timm\]"):
        compare_encoders(tmp_path, encoder=["small for this", "timm:resnet18"])


def test_photographs_are_embedded_timed_and_those_that_cannot_be_read_left_out(tmp_path):
    photographs(tmp_path)
    register_encoder("small for this", lambda device: small_encoder())
    with pytest.warns(SkippedRowsWarning, match="broken.png"):
        found = compare_encoders(tmp_path, encoder="small for this")
    (only,) = found.encoders
    assert found.n_examples == 12
    assert 0 <= only.seconds.low <= only.seconds.value <= only.seconds.high
    assert only.verdict == "best"
    assert "small for this" in str(found)


def vowels(sentences):
    return torch.tensor([[float(sentence.count(letter)) for letter in "aeiou"] for sentence in sentences])


def test_sentences_are_embedded_beside_vectors_of_the_same_table(tmp_path):
    register_encoder(
        "vowels for this", lambda device: Encoder.of_sentences(torch.nn.Identity(), vowels, name="vowels for this")
    )
    frame = frame_of(n_classes=6, noise=(0.3, 4.0)).rename(columns={"b": "noise"}).drop(columns="a")
    frame["question"] = [f"{'aeiou!'[row // 5] * 9} {'aeiou'[row % 5]} {row}" for row in range(30)]
    frame.to_parquet(tmp_path / "questions.parquet")
    found = compare_encoders(
        tmp_path / "questions.parquet", encoder="vowels for this", features="noise", text="question"
    )
    assert {one.name: one.dim for one in found.encoders} == {"vowels for this": 5, "noise": 12}
    assert found.best.name == "vowels for this"
    assert found.encoders[1].seconds is None


def test_only_what_is_drawn_is_embedded(tmp_path, monkeypatch):
    monkeypatch.setattr("handful.fitted.left_out_batches.MOST_CLASSES", 3)
    photographs(tmp_path)
    (tmp_path / "class 3" / "broken.png").unlink()
    embedded = []

    def small(device):
        encoder = small_encoder()
        return replace(encoder, forward=lambda images: embedded.append(len(images)) or encoder.forward(images))

    register_encoder("small for this", small)
    found = compare_encoders(tmp_path, encoder="small for this")
    assert (found.n_classes, found.n_examples) == (3, 9)
    assert sorted(embedded[:2]) == [1, 8]  # what follows is timed


def test_a_bank_has_no_columns_to_compare(tmp_path):
    bank = FeatureBank.from_arrays(np.eye(4, dtype=np.float32), [0, 0, 1, 1], ["a", "b"])
    bank.save(tmp_path / "bank")
    with pytest.raises(OptionError, match="has one vector per example, and no columns"):
        compare_encoders(tmp_path / "bank", features=["a", "b"])


def test_measurements_have_no_encoder(tmp_path):
    (tmp_path / "m.csv").write_text("height,width,label\n1,2,a\n5,6,b\n")
    with pytest.raises(BankError, match=r"measurements in the columns height, width, and encoders make vectors"):
        compare_encoders(tmp_path / "m.csv", encoder="efficientnet-lite0")
