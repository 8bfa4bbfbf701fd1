"""What is recorded about examples comes back from a file, and goes with its examples."""

import numpy as np

from handful.fitted import FittedModel, Record, Source, load_model, save_model
from tests.clouds_at_hand import clouds


def kept(path, **options):
    """A catalogue of clouds in a file, with a record."""
    X, y = clouds(**options)
    sources = {row: Source(f"{row}.jpg", "photos", f"content {row}", date="2026-11-17") for row in range(len(y))}
    previews = {row: b"JPEG %d" % row for row in range(0, len(y), 2)}
    columns = {"genus": {row: label[:7] for row, label in enumerate(y.tolist())}}
    record = Record("network, weights 12", "image", None, sources, previews, columns)
    save_model(FittedModel.of(X, y).with_record(record), path)
    return load_model(path)


def test_a_record_comes_back(tmp_path):
    made = kept(tmp_path / "c.handful").record
    assert made.encoder == "network, weights 12"
    assert made.kind == "image"
    assert made.sources[3] == Source("3.jpg", "photos", "content 3", date="2026-11-17")
    assert made.previews[4] == b"JPEG 4"
    assert made.columns["genus"][5] == "class 0"
    assert len(made.sources) == 80
    assert len(made.previews) == 40


def test_texts_come_back_as_texts(tmp_path):
    X, y = clouds(2, 2)
    save_model(FittedModel.of(X, y).with_record(Record(kind="text", previews={1: "wäre", 3: ""})), tmp_path / "c")
    assert load_model(tmp_path / "c").record.previews == {1: "wäre", 3: ""}


def test_a_class_goes_with_its_record(tmp_path):
    file = tmp_path / "c.handful"
    before = kept(file)
    save_model(before.without(np.array(["class 19"])), file)
    there = load_model(file)
    assert sorted(there.record.sources) == list(range(76))
    assert set(there.record.previews) <= set(there.record.sources)


def test_a_class_with_another_name_keeps_its_record(tmp_path):
    before = kept(tmp_path / "c.handful")
    names = before.classes.copy()
    names[0] = "zebra"
    assert before.relabelled(names).record.sources == before.record.sources
