import copy
import subprocess
import sys

import numpy as np
import pytest
import torch

from handful.errors import ExtractionError
from handful.extraction.decode import decode_image
from handful.extraction.encoder import Encoder
from tests.items_at_hand import Resized, image_bytes, small_encoder, small_network

IMAGES = [decode_image(image_bytes(seed)) for seed in range(5)]


def test_a_module_with_a_transform_becomes_an_encoder():
    encoder, network = small_encoder(), small_network()
    expected = network(torch.stack([Resized()(image) for image in IMAGES])).detach().numpy()
    assert encoder.dim == expected.shape[1] == 32
    np.testing.assert_array_equal(encoder.embed(IMAGES), expected)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_pictures_without_three_channels_are_taken_as_files_of_them_are(mode):
    image = IMAGES[0].convert(mode)
    np.testing.assert_array_equal(small_encoder().embed([image]), small_encoder().embed([image.convert("RGB")]))


def test_an_item_does_not_depend_on_its_batch():
    encoder = small_encoder()
    alone = np.concatenate([encoder.embed([image]) for image in IMAGES])
    np.testing.assert_allclose(encoder.embed(IMAGES), alone, rtol=1e-5, atol=1e-6)


def test_dropout_is_off():
    network = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Flatten()).train()
    encoder = Encoder.of_images(network, Resized(), name="dropping")
    np.testing.assert_array_equal(encoder.embed(IMAGES), encoder.embed(IMAGES))


def test_the_fingerprint_is_the_same_in_another_process():
    program = "from tests.items_at_hand import small_encoder as b; print(b().weights_hash, b().fingerprint)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    encoder = small_encoder()
    assert found.stdout.split() == [encoder.weights_hash, encoder.fingerprint]


def test_one_bit_of_a_buffer_is_seen():
    network = torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.Flatten())
    before = Encoder.of_images(network, Resized(), name="n").weights_hash
    changed = copy.deepcopy(network)
    changed[0].running_mean[0] = 1e-30
    assert Encoder.of_images(changed, Resized(), name="n").weights_hash != before


def test_an_edited_transform_that_prints_the_same_is_seen():
    """Two versions of a function print alike; what they do to the probes does not."""

    def version(scale):
        def transform(image):
            return Resized()(image) * scale

        return Encoder.of_images(small_network(), transform, name="edited")

    assert version(1).preprocessing == version(2).preprocessing
    assert " at 0x" not in version(1).preprocessing
    assert version(1).fingerprint == version(1).fingerprint != version(2).fingerprint


def test_feature_maps_are_refused_with_a_sentence():
    with pytest.raises(ExtractionError, match=r"axes \(item, dim\), got shape \(2, 8, 10, 10\)"):
        Encoder.of_images(small_network()[:1], Resized(), name="map")
