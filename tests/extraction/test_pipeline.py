"""Batches of contents to vectors: in order, whatever the number of threads, and never far ahead of who takes them."""

import copy
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from handful.errors import ExtractionError
from handful.extraction.encoder import Encoder
from handful.extraction.pipeline import BATCHES_PER_THREAD, embedded
from handful.reading.contents import Unreadable
from tests.items_at_hand import Resized, image_bytes, small_encoder, small_network

CONTENTS = [image_bytes(seed) for seed in range(20)]


def all_of(contents, encoder=None, **options):
    """Vectors and skipped positions of all batches."""
    found = list(embedded(contents, encoder or small_encoder(), **{"batch_size": 3, **options}))
    skipped = [one for batch in found for one in batch.skipped]
    return np.concatenate([batch.vectors for batch in found]), skipped, [batch.n_contents for batch in found]


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_bit_and_no_order(threads):
    expected, _, sizes = all_of(CONTENTS)
    found, skipped, same_sizes = all_of(CONTENTS, threads=threads)
    np.testing.assert_array_equal(found, expected)
    assert sizes == same_sizes == [3, 3, 3, 3, 3, 3, 2]
    assert skipped == []


@pytest.mark.parametrize("threads", [1, 3])
def test_what_cannot_be_read_is_named_by_its_position(threads):
    contents = [*CONTENTS[:4], b"no image", *CONTENTS[4:6], Unreadable("gone"), Unreadable("gone too"), b"neither"]
    found, skipped, sizes = all_of(contents, threads=threads)
    np.testing.assert_allclose(found, all_of(CONTENTS[:6])[0], atol=1e-6)  # in other batches
    assert [position for position, _ in skipped] == [4, 7, 8, 9]
    assert [reason for _, reason in skipped][1:3] == ["gone", "gone too"]
    assert sizes == [3, 3, 3, 1]


def test_nothing_gives_nothing():
    assert list(embedded([], small_encoder(), batch_size=3, threads=2)) == []


def test_no_more_is_read_than_is_worked_on():
    """A folder of photographs is larger than memory."""
    read = []

    def contents():
        for number, content in enumerate(CONTENTS * 5):
            read.append(number)
            yield content

    batches = embedded(contents(), small_encoder(), batch_size=2, threads=2)
    for taken in range(1, 6):
        next(batches)
        assert len(read) <= 2 * (BATCHES_PER_THREAD * 2 + taken)
    batches.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("handful")]


def test_one_image_of_a_batch_is_decoded_at_a_time(monkeypatch):
    """Eight photographs of a good camera would take gigabytes on a machine with many cores."""
    there = []
    small = small_encoder()

    def decode(content):
        there.append("decoded")
        return content

    def prepare(image):
        assert there.pop() == "decoded"
        assert not there
        return small.prepare(small_image(image))

    def small_image(content):
        from handful.extraction.decode import decode_image

        return decode_image(content)

    monkeypatch.setattr("handful.extraction.pipeline.decode_image", decode)
    found, _, _ = all_of(CONTENTS, replace(small, prepare=prepare))
    assert len(found) == len(CONTENTS)


def test_batches_are_decoded_while_others_are_in_the_network():
    """The network waits for a second batch to be prepared: with one thread, that would never happen."""
    small = small_encoder()
    second = threading.Event()
    prepared = []

    def prepare(image):
        prepared.append(image)
        if len(prepared) > 3:
            second.set()
        return small.prepare(image)

    def forward(images):
        assert second.wait(30)
        return small.forward(images)

    found, _, _ = all_of(CONTENTS, replace(small, prepare=prepare, forward=forward), threads=2)
    np.testing.assert_array_equal(found, all_of(CONTENTS)[0])


def test_threads_have_their_own_copy_of_what_a_network_keeps_and_share_its_weights():
    class Keeping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = small_network()
            self.register_buffer("scale", torch.ones(1))
            self.kept = None

        def forward(self, images):
            self.kept = self.scale * self.inner(images)
            return self.kept

    encoder = Encoder.of_images(Keeping().eval(), Resized(), name="keeping")
    module, copied = encoder.forward.module, copy.deepcopy(encoder).forward.module
    assert copied is not module
    assert copied.inner is not module.inner
    pairs = zip(module.state_dict(keep_vars=True).values(), copied.state_dict(keep_vars=True).values(), strict=True)
    assert all(one is other for one, other in pairs)
    found, _, _ = all_of(CONTENTS, encoder, threads=3)
    np.testing.assert_array_equal(found, all_of(CONTENTS)[0])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("forward", "sentence"),
    [
        (lambda images: np.zeros((len(images), 7), np.float32), r"must give 32 numbers .* got shape \(3, 7\)"),
        (lambda images: np.full((len(images), 32), np.nan, np.float32), "not finite in float32"),
    ],
)
def test_a_network_that_fails_is_named(threads, forward, sentence):
    with pytest.raises(ExtractionError, match=sentence):
        all_of(CONTENTS, replace(small_encoder(), forward=forward), threads=threads)
