import errno
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from handful.banks import FeatureBank
from handful.banks.bank import Provenance
from handful.errors import ExtractionError, OptionError
from handful.extraction.decode import decode_image
from handful.extraction.extract import extract, skipped_items
from handful.extraction.items import list_items
from handful.reading import contents
from handful.workers import here
from tests.items_at_hand import image_bytes, image_folder, small_encoder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def items(tmp_path):
    return list_items(image_folder(tmp_path / "images"))


def counted(seen: list):
    """Workers that note the shards it is asked for."""

    def run(function, tasks):
        for task in tasks:
            seen.append(task[0].number)
            yield from here()(function, [task])

    return run


def stopping_after(n_shards: int):
    def run(function, tasks):
        for count, task in enumerate(tasks):
            if count == n_shards:
                raise KeyboardInterrupt
            yield from here()(function, [task])

    return run


def test_rows_are_the_vectors_of_the_items(tmp_path, items):
    encoder = small_encoder()
    provenance = Provenance("noise", "CC0")
    bank = extract(items, encoder, tmp_path / "bank", batch_size=4, shard_size=10, provenance=provenance)
    images = [decode_image(data) for data in items.source]
    np.testing.assert_allclose(bank.features, encoder.embed(images), rtol=1e-3, atol=1e-4)
    assert bank.dtype == "float16"
    assert bank.labels.tolist() == items.labels.tolist()
    assert bank.class_names == items.class_names
    assert bank.content_hash == bank.verify()
    told = bank.provenance
    assert (told.dataset, told.licence, told.preprocessing) == ("noise", "CC0", encoder.preprocessing)
    assert told.encoder == f"small, weights {encoder.weights_hash}"
    assert told.versions["torch"] == torch.__version__
    assert skipped_items(bank) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank", "images"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_same_bytes_on_any_number_of_threads(tmp_path, items, workers, threads):
    torch.set_num_threads(threads)
    try:
        bank = extract(items, small_encoder(), tmp_path / "bank", shard_size=5, threads=workers)
    finally:
        torch.set_num_threads(1)
    assert bank.content_hash == extract(items, small_encoder(), tmp_path / "again", shard_size=5).content_hash


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, items):
    whole = extract(items, small_encoder(), tmp_path / "whole", shard_size=4)
    with pytest.raises(KeyboardInterrupt):
        extract(items, small_encoder(), tmp_path / "bank", shard_size=4, workers=stopping_after(2))
    assert not (tmp_path / "bank").exists()
    seen, progress = [], []
    resumed = extract(
        items,
        small_encoder(),
        tmp_path / "bank",
        shard_size=4,
        workers=counted(seen),
        on_progress=lambda report: progress.append((report.done, report.total)),
    )
    assert seen == [2, 3, 4, 5]
    assert progress == [(done, 24) for done in (8, 12, 16, 20, 24)]
    assert resumed.content_hash == whole.content_hash


def interrupted(tmp_path, items, **changes):
    with pytest.raises(KeyboardInterrupt):
        extract(items, small_encoder(), tmp_path / "bank", shard_size=4, workers=stopping_after(3), **changes)


@pytest.mark.parametrize("change", ["weights", "preprocessing", "data", "batch size", "shard size", "dtype"])
def test_a_stale_shard_is_never_used(tmp_path, items, change):
    interrupted(tmp_path, items)
    encoder, settings = small_encoder(), {"shard_size": 4}
    if change == "weights":
        encoder = small_encoder(seed=1)
    elif change == "preprocessing":
        encoder = small_encoder(side=13)
    elif change == "data":
        (tmp_path / "images" / "class0" / "00.png").write_bytes(image_bytes(999))
        items = list_items(tmp_path / "images")
    elif change == "shard size":
        settings = {"shard_size": 6}
    else:
        settings |= {"batch size": {"batch_size": 3}, "dtype": {"dtype": "float32"}}[change]
    seen = []
    bank = extract(items, encoder, tmp_path / "bank", workers=counted(seen), **settings)
    assert seen == list(range(24 // settings["shard_size"]))
    assert bank.content_hash == extract(items, encoder, tmp_path / "fresh", **settings).content_hash


@pytest.mark.parametrize("damage", ["cut short", "empty", "garbage", "flipped", "exchanged"])
def test_a_damaged_shard_is_computed_again(tmp_path, items, damage):
    interrupted(tmp_path, items)
    first, second, *_ = sorted((tmp_path / ".bank.shards").glob("*/[0-9]*"))
    if damage == "exchanged":
        one, two = first.read_bytes(), second.read_bytes()
        first.write_bytes(two)
        second.write_bytes(one)
    elif damage == "flipped":
        data = bytearray(first.read_bytes())
        data[len(data) // 2] ^= 1
        first.write_bytes(data)
    else:
        data = first.read_bytes()
        first.write_bytes({"cut short": data[: len(data) // 2], "empty": b"", "garbage": b"x" * len(data)}[damage])
    seen = []
    bank = extract(items, small_encoder(), tmp_path / "bank", shard_size=4, workers=counted(seen))
    assert seen == [0, *([1] if damage == "exchanged" else []), 3, 4, 5]
    assert bank.content_hash == extract(items, small_encoder(), tmp_path / "fresh", shard_size=4).content_hash


def test_corrupt_images_are_skipped_and_listed(tmp_path):
    folder = image_folder(tmp_path / "images")
    (folder / "class0" / "03.png").write_bytes(b"")
    (folder / "class1" / "00.png").write_bytes(image_bytes(0)[:-50])
    bank = extract(list_items(folder), small_encoder(), tmp_path / "bank", shard_size=5, batch_size=2)
    assert [item.name for item in skipped_items(bank)] == ["class0/03.png", "class1/00.png"]
    assert bank.class_sizes.tolist() == [7, 7, 8]
    (folder / "class0" / "03.png").unlink()
    (folder / "class1" / "00.png").unlink()
    clean = extract(list_items(folder), small_encoder(), tmp_path / "clean")
    np.testing.assert_allclose(bank.features, clean.features, rtol=1e-3, atol=1e-4)
    assert bank.labels.tolist() == clean.labels.tolist()


def test_a_bank_needs_at_least_one_readable_item(tmp_path):
    folder = image_folder(tmp_path / "images", 1, 1)
    (folder / "class0" / "00.png").write_bytes(b"")
    with pytest.raises(
        ExtractionError, match=r"none of the 1 items could be read.*damaged, or no image: cannot identify"
    ):
        extract(list_items(folder), small_encoder(), tmp_path / "bank")


def test_an_image_that_is_gone_is_skipped_and_listed(tmp_path, items):
    (tmp_path / "images" / "class1" / "00.png").unlink()
    bank = extract(items, small_encoder(), tmp_path / "bank")
    assert [item.name for item in skipped_items(bank)] == ["class1/00.png"]


def test_a_disk_that_fails_is_not_mistaken_for_a_corrupt_image(tmp_path, items, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(contents, "_limited", fails)
    with pytest.raises(OSError, match="Input/output error"):
        extract(items, small_encoder(), tmp_path / "bank")


def test_a_finished_extraction_is_returned_and_not_repeated(tmp_path, items):
    first = extract(items, small_encoder(), tmp_path / "bank")
    (tmp_path / ".bank.shards" / "left behind").mkdir(parents=True)
    seen = []
    again = extract(items, small_encoder(), tmp_path / "bank", workers=counted(seen))
    assert (again.content_hash, seen) == (first.content_hash, [])
    assert not (tmp_path / ".bank.shards").exists()


@pytest.mark.parametrize("there", ["another extraction", "another bank", "a file"])
def test_nothing_is_overwritten(tmp_path, items, there):
    if there == "another extraction":
        extract(items, small_encoder(seed=1), tmp_path / "bank")
    elif there == "another bank":
        FeatureBank.from_arrays([[1.0]], [0], ["a"]).save(tmp_path / "bank")
    else:
        (tmp_path / "bank").write_text("hello")
    with pytest.raises(ExtractionError, match="choose another name"):
        extract(items, small_encoder(), tmp_path / "bank")


def test_values_that_half_precision_cannot_hold_are_refused(tmp_path, items):
    small = small_encoder()
    encoder = replace(small, forward=lambda batch: small.forward(batch) * 1e9)
    with pytest.raises(ExtractionError, match=r"not finite in float16; try float32"):
        extract(items, encoder, tmp_path / "bank")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"batch_size": 0}, "at least 1, got 0 and 256"),
        ({"shard_size": 0}, "at least 1, got 8 and 0"),
        ({"dtype": "int8"}, "float16 or float32, got 'int8'"),
    ],
)
def test_settings_out_of_range_are_refused(tmp_path, items, settings, sentence):
    with pytest.raises(OptionError, match=sentence):
        extract(items, small_encoder(), tmp_path / "bank", **settings)


def test_images_and_sentences_are_not_confused(tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("text,label\nhello,greeting\n")
    with pytest.raises(ExtractionError, match="reads items of kind image, but these are of kind text"):
        extract(list_items(table), small_encoder(), tmp_path / "bank")
