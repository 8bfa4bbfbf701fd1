"""Vectors: 32 bits are kept as they came, and 16 bits change no label."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from handful import BatchClassifier
from handful.catalogue.file import CatalogueFile
from handful.catalogue.vectors import GIVEN, LARGEST, EncoderId, packed, unpacked
from handful.errors import FileFormatError, OptionError
from tests.catalogue.people import photographs
from tests.items_at_hand import shared_data
from tests.worlds import Clouds, names_of

LAPTOP = EncoderId("minilm", "1", "5d41")
# What 16 bits may move a probability by, also with one example of each class; labels stay. The largest that was seen is
# 2e-5; -s prints all. docs/understand/catalogue_file.md states it.
TOLERANCE = 1e-4

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
tables = arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=finite)


@given(tables)
def test_32_bits_are_exact_and_16_bits_are_wrong_by_half_a_step(vectors):
    dim = vectors.shape[1]
    assert unpacked(packed(vectors, 32), dim, 32, "here").tobytes() == vectors.tobytes()
    found = unpacked(packed(vectors, 16), dim, 16, "here")
    scales = np.abs(vectors).max(1, keepdims=True).astype(np.float64)
    errors = np.abs(found.astype(np.float64) - vectors)
    # Half a step, and what 32 bits themselves round.
    assert (errors <= scales / (2 * LARGEST) * (1 + 1e-6) + np.spacing(np.abs(vectors)) + 1e-45).all()
    assert (found[np.abs(vectors) == scales] == vectors[np.abs(vectors) == scales]).all()  # the largest stays


@pytest.mark.parametrize("bits", [16, 32])
def test_no_vectors_and_vectors_of_zeros(bits):
    assert unpacked([], 3, bits, "here").shape == (0, 3)
    assert (unpacked(packed(np.zeros((2, 3)), bits), 3, bits, "here") == 0).all()


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("length", [0, 3, 11, 13, 1000])
def test_other_lengths_are_refused(bits, length):
    good = packed(np.ones((1, 4)), bits)
    with pytest.raises(FileFormatError, match="has not the size of its encoder"):
        unpacked([*good, bytes(length)], 4, bits, "here")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(number):
    blob = np.array([1.0, number, 2.0], "<f4").tobytes()
    with pytest.raises(FileFormatError, match="not finite"):
        unpacked([blob], 3, 32, "here")
    with pytest.raises(FileFormatError, match="not finite"):
        unpacked([np.array([number], "<f4").tobytes() + bytes(6)], 3, 16, "here")


def test_a_file_keeps_vectors_of_contents_once(tmp_path):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(4, 5)).astype(np.float32)
    with CatalogueFile.open(tmp_path / "a.handful") as catalogue:
        catalogue.arrive("monday", photographs(4))
        assert catalogue.vectors(LAPTOP, [1, 2]) == {}
        assert catalogue.dim(LAPTOP) == 0
        catalogue.put_vectors(GIVEN, [1, 2, 3], vectors[:3])
        catalogue.put_vectors(LAPTOP, [1, 2], vectors[:2])
        catalogue.put_vectors(LAPTOP, [2, 3], 7 * vectors[2:])  # that of content 2 is there already
    with CatalogueFile.open(tmp_path / "a.handful") as catalogue:
        assert catalogue.encoders == [GIVEN, LAPTOP]
        found = catalogue.vectors(GIVEN, [1, 2, 3, 4])
        assert {content: vector.tolist() for content, vector in found.items()} == {
            content + 1: vectors[content].tolist() for content in range(3)
        }
        found = catalogue.vectors(LAPTOP, [1, 2, 3])
        assert np.allclose([found[1], found[2], found[3]], [vectors[0], vectors[1], 7 * vectors[3]], atol=1e-3)


def test_vectors_that_no_file_can_keep_are_refused(tmp_path):
    with CatalogueFile.open(tmp_path / "a.handful") as catalogue:
        catalogue.arrive("monday", photographs(2))
        catalogue.put_vectors(LAPTOP, [1], np.ones((1, 3)))
        for wrong, sentence in (
            ([[1.0, np.nan, 1.0]], "not finite"),
            ([[1e300, 1.0, 1.0]], "not finite in 32 bits"),
            ([[1.0, 2.0]], "have 3 numbers, got 2"),
            (np.zeros((1, 0)), "vectors need numbers"),
        ):
            with pytest.raises(OptionError, match=sentence):
                catalogue.put_vectors(LAPTOP, [2], np.array(wrong))
        with pytest.raises(OptionError, match="16 bits, not of 32"):
            catalogue.put_vectors(LAPTOP._replace(bits=32), [2], np.ones((1, 3)))
        with pytest.raises(OptionError, match="16 or 32 bits"):
            catalogue.put_vectors(LAPTOP._replace(name="other", bits=8), [2], np.ones((1, 3)))
    with CatalogueFile.open(tmp_path / "a.handful") as catalogue:
        assert list(catalogue.vectors(LAPTOP, [1, 2])) == [1]


def kept_in_16_bits(vectors):
    return unpacked(packed(vectors, 16), vectors.shape[1], 16, "here")


def moved(examples, labels, batch):
    """How many labels 16 bits change, and by how much they move a probability at most."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            BatchClassifier().fit(keep(examples), labels).infer(keep(batch))
            for keep in (lambda rows: np.asarray(rows, np.float32), kept_in_16_bits)
        ]
    tables = [np.asarray(one.probabilities) for one in found]
    return int((found[0].labels != found[1].labels).sum()), float(np.abs(tables[0] - tables[1]).max())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n_classes", "dim", "noise"), [(60, 64, 0.6), (60, 256, 1.0), (20, 32, 0.8)])
def test_16_bits_change_no_label_with_one_example_of_each_class(n_classes, dim, noise, seed):
    clouds = Clouds(n_classes, dim, seed)
    examples = clouds.examples(1, noise)
    batch = clouds.around(np.repeat([3, 5, 11, 17], 15), noise)
    n_labels, most = moved(examples, names_of(n_classes), batch)
    print(f"{n_classes} classes, {dim} numbers, seed {seed}: {n_labels} labels, {most:.1e}")
    assert n_labels == 0
    assert most < TOLERANCE


def test_16_bits_change_no_label_of_sentences():
    bank = shared_data("clinc150-minilm")
    features = np.load(bank / "features.npy").astype(np.float32)
    labels = np.load(bank / "labels.npy")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(labels))
    firsts = np.array([order[labels[order] == k][0] for k in np.unique(labels)])
    left = np.setdiff1d(order, firsts)
    for draw in range(5):
        some = rng.permutation(np.unique(labels))[:6]
        batch = rng.choice(left[np.isin(labels[left], some)], 60, replace=False)
        n_labels, most = moved(features[firsts], labels[firsts], features[batch])
        print(f"sentences, draw {draw}: {n_labels} labels, {most:.1e}")
        assert n_labels == 0
        assert most < TOLERANCE
