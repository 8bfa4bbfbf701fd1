import json

import numpy as np
import pytest

from handful.catalogue import Catalogue, load_catalogue, save_catalogue
from handful.catalogue.files import catalogue_of, parts_of
from handful.engine.left_out import LeftOutExamples
from handful.errors import FileFormatError
from handful.machine.safetensors_format import read_tensors, write_tensors


def catalogue() -> Catalogue:
    rng = np.random.default_rng(0)
    labels = np.array(["ant", "bee", "cat", "dog"] * 6)
    return Catalogue.of(rng.standard_normal((24, 5)), labels)


def separated() -> Catalogue:
    """Classes that can be told apart, so that items of no class can be, too."""
    rng = np.random.default_rng(0)
    codes = np.arange(8).repeat(5)
    made = Catalogue.of(rng.standard_normal((8, 12))[codes] + 0.3 * rng.standard_normal((40, 12)), codes)
    assert made.unknown_model is not None
    return made


def test_a_catalogue_comes_back_whole(tmp_path):
    made = catalogue()
    save_catalogue(made, tmp_path / "c.safetensors")
    again = load_catalogue(tmp_path / "c.safetensors")
    assert "head" in vars(again)
    assert again.content_hash == made.content_hash
    assert again.report() == made.report()
    assert "unknown_model" in vars(again)
    assert again.unknown_model == made.unknown_model
    assert len(again.head.left_out.rows) == 24
    for name in LeftOutExamples._fields:
        np.testing.assert_array_equal(getattr(again.head.left_out, name), getattr(made.head.left_out, name))
    assert again.examples.labels.tolist() == made.examples.labels.tolist()
    more = np.ones((2, 5)), np.array(["ant", "elk"])
    assert again.with_examples(*more).content_hash == made.with_examples(*more).content_hash


@pytest.mark.parametrize(
    "change",
    [
        {"format_version": 99},
        {"transform": "range_scale"},
        {"format_version": 1},
        {"format_version": 4},
        {"unknown_model": 3},
        {"unknown_model": {}},
        {"head": None},
        {"head": {"spread": 1.0, "temperature": 0.0, "wrong_share": 0.0, "confidence": 0.5}},
        {"head": {"spread": -1.0, "temperature": 1.0, "wrong_share": 0.0, "confidence": 0.5}},
        {"head": {"spread": 1.0, "temperature": "x", "wrong_share": 0.0, "confidence": 0.5}},
        {"classes": 3},
        {"n_examples": None},
    ],
)
def test_what_does_not_hold_together_is_refused(tmp_path, change):
    save_catalogue(catalogue(), tmp_path / "c")
    tensors, metadata = read_tensors(tmp_path / "c")
    write_tensors(tmp_path / "c", tensors, {"handful": json.dumps(json.loads(metadata["handful"]) | change)})
    with pytest.raises(FileFormatError, match="is not a catalogue that this handful can read"):
        load_catalogue(tmp_path / "c")


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("pair_odds", [0.0, -1.0]),
        ("distance", [0.0, 0.0]),
        ("level", [1.0, float("nan")]),
        ("known", [0.0, 1.0]),
        ("unknown", [1.0, -1.0]),
        ("score", [1.0]),
        ("other", [1.0, 1.0]),
    ],
)
def test_numbers_about_items_of_no_class_that_cannot_be_are_refused(tmp_path, name, pair):
    save_catalogue(separated(), tmp_path / "c")
    assert load_catalogue(tmp_path / "c").unknown_model == separated().unknown_model
    tensors, metadata = read_tensors(tmp_path / "c")
    about = json.loads(metadata["handful"])
    about["unknown_model"][name] = pair
    write_tensors(tmp_path / "c", tensors, {"handful": json.dumps(about)})
    with pytest.raises(FileFormatError, match="is not a catalogue that this handful can read"):
        load_catalogue(tmp_path / "c")


@pytest.mark.parametrize(
    "change",
    [
        {"head.weights": np.zeros((4, 4))},
        {"head.weights": np.zeros((4, 5), np.float32)},
        {"head.offsets": np.full(4, np.nan)},
        {"head.mass": np.zeros(4)},
        {"left_out.rows": np.arange(23)},
        {"left_out.rows": np.arange(24) + 1},
        {"left_out.rows": np.arange(24.0)},
        {"left_out.rival": np.full(24, 4)},
        {"left_out.right": np.full(24, np.nan)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_head_that_does_not_fit_is_refused(tmp_path, change):
    save_catalogue(catalogue(), tmp_path / "c")
    tensors, metadata = read_tensors(tmp_path / "c")
    write_tensors(tmp_path / "c", tensors | change, metadata)
    with pytest.raises(FileFormatError, match="is not a catalogue that this handful can read"):
        load_catalogue(tmp_path / "c")


@pytest.mark.parametrize("only", [False, True])
def test_names_are_kept(tmp_path, only):
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((3, 8)), np.array(["ant", "bee", "emu"])
    if only:
        catalogue = Catalogue.of_names(vectors, labels)
    else:
        examples = rng.standard_normal((6, 8))
        catalogue = Catalogue.of(examples, np.array(["ant", "bee", "cat"] * 2)).with_names(vectors, labels)
    save_catalogue(catalogue, tmp_path / "c.safetensors")
    loaded = load_catalogue(tmp_path / "c.safetensors")
    assert loaded.content_hash == catalogue.content_hash
    assert loaded.names.classes.tolist() == ["ant", "bee", "emu"]
    np.testing.assert_array_equal(loaded.names.points, catalogue.names.points)
    assert loaded.only_names == only


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("names.codes", np.array([0, 0])),
        ("names.codes", np.array([0, 9])),
        ("names.codes", np.array([0.0, 1.0])),
        ("names.points", np.full((2, 8), np.nan)),
        ("names.points", np.zeros((1, 8))),
    ],
)
def test_names_that_do_not_fit_are_refused(name, value):
    tensors, about = parts_of(Catalogue.of_names(np.eye(2, 8), np.array(["ant", "bee"])))
    with pytest.raises(ValueError, match="names"):
        catalogue_of(tensors | {name: value}, about)


def test_a_class_without_example_or_name_is_refused():
    tensors, about = parts_of(Catalogue.of_names(np.eye(2, 8), np.array(["ant", "bee"])))
    del tensors["names.points"]
    with pytest.raises(ValueError, match="an example or a name"):
        catalogue_of(tensors, about)
