"""What names an encoder, and vectors of old and new files of the same one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from handful.banks import FeatureBank
from handful.banks.bank import Provenance
from handful.catalogue.file import CatalogueFile
from handful.catalogue.vectors import GIVEN, EncoderId
from handful.extraction.decode import decode_image
from handful.extraction.encoder import Encoder
from handful.items import bring, vectors_of
from handful.items.embedding import encoder_id, encoder_of, recorded_id, unreadable
from tests.items.photographs import ENCODER, VOWELS, counting_encoder, photographs, register
from tests.items_at_hand import Resized, image_bytes, small_encoder, small_network


def test_the_numbers_of_the_weights_name_an_encoder():
    encoder = small_encoder()
    renamed = torch.nn.Sequential(torch.nn.Sequential(*small_network()))
    same = Encoder.of_images(renamed, Resized(), name="small")
    assert same.weights_hash != encoder.weights_hash
    assert encoder_id(same) == encoder_id(encoder)
    others = [small_encoder(seed=1), small_encoder(side=14), replace(encoder, name="other")]
    assert len({encoder_id(one) for one in (encoder, *others)}) == 4


def test_encoders_of_banks():
    assert recorded_id("timm:a, b, weights 12") == EncoderId("timm:a, b", "", "12")
    assert recorded_id("") == GIVEN


def test_a_bank_of_the_encoder_and_new_photographs_are_compared(tmp_path):
    register()
    images = [decode_image(image_bytes(k)) for k in range(3)]
    encoder = counting_encoder()
    told = Provenance(encoder=f"{encoder.name}, weights {encoder.weights_hash}")
    bank = FeatureBank.from_arrays(encoder.embed(images), [0, 1, 0], ["fox", "owl"], provenance=told)
    catalogue = CatalogueFile.open()
    assert str(bring(catalogue, "examples", bank)) == "3 rows are new"
    assert encoder_of(catalogue) == EncoderId(ENCODER, "", encoder.weights_hash)
    found = bring(catalogue, "monday", photographs(tmp_path / "monday", 3))
    assert found.n_embedded == 3
    assert len(catalogue.encoders) == 1
    vectors = vectors_of(catalogue, range(1, 7))
    assert np.abs(vectors[:3] - vectors[3:]).max() < 1e-4


def test_given_vectors_of_as_many_numbers_are_compared_with_those_of_the_encoder():
    register()
    catalogue = CatalogueFile.open()
    _ = bring(catalogue, "calls", ["wake me", "hello"], encoder=VOWELS)
    _ = bring(catalogue, "given", np.eye(5))
    assert vectors_of(catalogue, [1, 3]).shape == (2, 5)
    assert encoder_of(catalogue).name == VOWELS


@pytest.mark.parametrize("cached", [b"", b"[]", b"{", b"7"])
def test_a_damaged_cache_says_nothing(cached):
    catalogue = CatalogueFile.open()
    catalogue.cache("unreadable", cached)
    assert unreadable(catalogue) == {}


def test_the_usual_encoder_embeds_photographs(tmp_path):
    catalogue = CatalogueFile.open()
    found = bring(catalogue, "monday", photographs(tmp_path / "monday", 2))
    assert (found.n_embedded, encoder_of(catalogue).name) == (2, "efficientnet-lite0")
    assert vectors_of(catalogue, [1, 2]).shape == (2, 1280)
