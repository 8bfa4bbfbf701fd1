import json

import numpy as np
import pytest

from handful.errors import FileFormatError
from handful.estimators import BatchClassifier
from handful.fitted import FittedModel, load_model, save_model
from handful.fitted.files import model_from, parts_of
from handful.machine.safetensors_format import read_tensors, write_tensors
from handful.model.left_out import LeftOutExamples


def catalogue() -> FittedModel:
    rng = np.random.default_rng(0)
    labels = np.array(["ant", "bee", "cat", "dog"] * 6)
    return FittedModel.of(rng.standard_normal((24, 5)), labels)


def separated() -> FittedModel:
    """Classes that can be told apart, so that items of no class can be, too."""
    rng = np.random.default_rng(0)
    codes = np.arange(8).repeat(5)
    made = FittedModel.of(rng.standard_normal((8, 12))[codes] + 0.3 * rng.standard_normal((40, 12)), codes)
    assert made.unknown_model is not None
    return made


def test_a_catalogue_comes_back_whole(tmp_path):
    made = catalogue()
    save_model(made, tmp_path / "c.safetensors")
    again = load_model(tmp_path / "c.safetensors")
    assert "head" in vars(again)
    assert again.content_hash == made.content_hash
    assert again.report() == made.report()
    assert "unknown_model" in vars(again)
    assert again.unknown_model == made.unknown_model
    save_model(separated(), tmp_path / "s")
    assert load_model(tmp_path / "s").unknown_model == separated().unknown_model
    assert len(again.head.left_out.rows) == 24
    for name in LeftOutExamples._fields:
        np.testing.assert_array_equal(getattr(again.head.left_out, name), getattr(made.head.left_out, name))
    assert again.examples.labels.tolist() == made.examples.labels.tolist()
    more = np.ones((2, 5)), np.array(["ant", "elk"])
    assert again.with_examples(*more).content_hash == made.with_examples(*more).content_hash


def changed(make=catalogue, about=lambda about: {}, **tensors):
    """Something that writes a file of a catalogue with some of it replaced."""

    def write(path):
        save_model(make(), path)
        held, metadata = read_tensors(path)
        now = json.loads(metadata["handful"])
        write_tensors(path, held | tensors, {"handful": json.dumps(now | about(now))})

    return write


GENUS = {"record.columns.genus": np.full(24, -1)}


def head(**numbers):
    return changed(about=lambda now: {"head": now["head"] | numbers})


def unknown(**pairs):
    return changed(separated, lambda now: {"unknown_model": now["unknown_model"] | pairs})


def record(**values):
    return changed(about=lambda now: {"record": now["record"] | values})


def labels(dtype, values):
    return changed(about=lambda _: {"classes": {"dtype": dtype, "values": values}})


def of_head(name, value):
    return changed(**{name: value})


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_tensors(path, {"features": np.zeros((2, 2))}),
        lambda path: write_tensors(path, {"features": np.zeros((2, 2))}, {"handful": "[" * 200_000}),
        changed(about=lambda now: dict.fromkeys(now)),
        *(changed(about=lambda _, version=version: {"format_version": version}) for version in (0, 2, 99)),
        changed(about=lambda _: {"transform": "range_scale"}),
        changed(about=lambda _: {"n_examples": None}),
        changed(about=lambda _: {"record": None}),
        changed(about=lambda _: {"classes": 3}),
        labels("object", 3),
        labels("object", [{"a": 1}, 2, 3, 4]),
        labels("V8", [1, 2, 3, 4]),
        labels("<U3", ["bee", "ant", "cat", "dog"]),
        labels("<U2", [1, 2, 3, 4]),
        labels("<U2", ["a", "a", "c", "d"]),
        labels("<U300000000", ["a", "b", "c", "d"]),
        labels("<U2", ["", "b", "c", "d"]),
        changed(codes=np.arange(24)),
        changed(codes=np.full(24, -1)),
        changed(codes=np.zeros(24)),
        changed(codes=np.array([0, 1, 2, 3] * 5 + [2**33, 2**62, 0, 0])),
        changed(codes=np.zeros(24, np.int64)),
        changed(codes=np.array([0, 1, 2, 3] * 5 + [0, 1, 2, 2])),
        changed(means=np.full((4, 5), np.nan)),
        changed(points=np.zeros((24, 5), np.int64)),
        changed(shots=np.zeros(4)),
        changed(origin=np.zeros(4)),
        changed(about=lambda _: {"head": None}),
        changed(about=lambda _: {"head": {}}),
        head(temperature=0.0),
        head(temperature="x"),
        head(temperature=1e308),
        head(temperature=1e-308),
        head(confidence=0.0),
        head(confidence=1.1),
        head(wrong_share=1.1),
        head(spread=-1.0),
        head(n_fitted=25),
        of_head("head.weights", np.zeros((4, 4))),
        of_head("head.weights", np.zeros((4, 5), np.float32)),
        of_head("head.offsets", np.full(4, np.nan)),
        of_head("head.mass", np.zeros(4)),
        of_head("left_out.rows", np.arange(23)),
        of_head("left_out.rows", np.arange(24) + 1),
        of_head("left_out.rows", np.arange(24.0)),
        of_head("left_out.rival", np.full(24, 4)),
        of_head("left_out.right", np.full(24, np.nan)),
        of_head("left_out.score", np.full(24, np.inf)),
        changed(about=lambda _: {"unknown_model": 3}),
        changed(about=lambda _: {"unknown_model": {}}),
        unknown(pair_odds=[0.0, -1.0]),
        unknown(distance=[0.0, 0.0]),
        unknown(level=[1.0, float("nan")]),
        unknown(level=[1.0]),
        unknown(score=[1.0]),
        unknown(scale=0.0),
        unknown(unknown=[1.0, -1.0]),
        unknown(quarter=0.0),
        unknown(farther=-1.0),
        unknown(other=[1.0, 1.0]),
        record(encoder=7),
        record(feature_names=["a"]),
        record(feature_names=7),
        record(feature_names=[1, 2, 3, 4, 5]),
        record(columns=7),
        changed(about=lambda now: {"record": now["record"] | {"columns": {"genus": [["a"]]}}}, **GENUS),
        record(columns={"genus": ["a"]}),
        changed(
            about=lambda now: {"record": now["record"] | {"columns": {"genus": ["a"]}}},
            **{"record.columns.genus": np.zeros(3, np.int64)},
        ),
    ],
)
def test_what_does_not_hold_together_is_refused(tmp_path, write):
    write(tmp_path / "c")
    with pytest.raises(FileFormatError, match="is not a model that this handful can read"):
        load_model(tmp_path / "c")


@pytest.mark.parametrize("only", [False, True])
def test_names_are_kept(tmp_path, only):
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((3, 8)), np.array(["ant", "bee", "emu"])
    if only:
        catalogue = FittedModel.of_names(vectors, labels)
    else:
        examples = rng.standard_normal((6, 8))
        catalogue = FittedModel.of(examples, np.array(["ant", "bee", "cat"] * 2)).with_names(vectors, labels)
    save_model(catalogue, tmp_path / "c.safetensors")
    loaded = load_model(tmp_path / "c.safetensors")
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
    tensors, about = parts_of(FittedModel.of_names(np.eye(2, 8), np.array(["ant", "bee"])))
    with pytest.raises(ValueError, match="names"):
        model_from(tensors | {name: value}, about)


def test_a_class_without_example_or_name_is_refused():
    tensors, about = parts_of(FittedModel.of_names(np.eye(2, 8), np.array(["ant", "bee"])))
    del tensors["names.points"]
    with pytest.raises(ValueError, match="an example or a name"):
        model_from(tensors, about)


def test_numbers_that_no_catalogue_can_have_are_refused_although_the_checksum_fits(tmp_path):
    examples = separated().examples
    tensors, about = parts_of(FittedModel.of(examples.points.astype(np.float32), examples.labels))
    for name in ("means", "origin", "points", "shots", "head.weights", "head.means", "head.mass", "head.offsets"):
        for value in (3e38, -3e38):
            changed = tensors[name].copy()
            changed.flat[0] = value
            with pytest.raises(ValueError, match=r"finite|feature|example|scores|positive"):
                model_from(tensors | {name: changed}, about)
    for name, value in about["unknown_model"].items():
        for large in (3e38, 1e300):
            other = large if isinstance(value, float) else (large, large)
            with pytest.raises(ValueError, match="of no class"):
                model_from(tensors, about | {"unknown_model": about["unknown_model"] | {name: other}})
    with pytest.raises(ValueError, match="spread"):
        model_from(tensors, about | {"head": about["head"] | {"spread": 3e38}})


@pytest.mark.parametrize("noise", [1e-12, 1e-6, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_every_catalogue_that_can_be_fitted_can_be_read(tmp_path, noise, scale):
    rng = np.random.default_rng(0)
    codes = np.arange(8).repeat(5)
    points = scale * (rng.standard_normal((8, 12))[codes] + noise * rng.standard_normal((40, 12)))
    for transform in ("l2", "raw"):
        save_model(FittedModel.of(points, codes, transform=transform), tmp_path / "c")
        load_model(tmp_path / "c")


@pytest.mark.parametrize("temperature", [1e-9, 1e9])
def test_a_catalogue_with_the_most_extreme_temperature_that_is_read_takes_answers(tmp_path, temperature):
    head(temperature=temperature)(tmp_path / "c.handful")
    batch = np.random.default_rng(1).standard_normal((9, 5))
    found = BatchClassifier.load(tmp_path / "c.handful").infer(batch, given={0: "ant", 1: None})
    assert np.isfinite(found.probabilities).all()


def test_a_catalogue_saved_through_a_link_leaves_the_link(tmp_path):
    (tmp_path / "new.handful").symlink_to(tmp_path / "elsewhere.handful")
    save_model(catalogue(), tmp_path / "new.handful")
    assert (tmp_path / "new.handful").is_symlink()
    assert load_model(tmp_path / "elsewhere.handful").n_classes == 4
