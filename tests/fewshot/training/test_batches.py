"""Batches: pictures decoded once, views and orders by their addresses."""

import numpy as np
import pytest
import torch

from handful.extraction.items import list_items
from handful_fewshot.errors import TrainingError
from handful_fewshot.training.batches import CentreViews, EpochBatches, Pictures, RandomViews
from handful_fewshot.training.recipe import Recipe
from tests.items_at_hand import image_folder, zipped


@pytest.fixture
def folder(tmp_path):
    return image_folder(tmp_path / "photos")


@pytest.mark.parametrize("kept_bytes", [0, 24 * 16 * 3 * 10, 2**30])
@pytest.mark.parametrize("packed", [False, True])
def test_pictures_are_the_same_from_memory_folder_and_archive(folder, tmp_path, kept_bytes, packed):
    expected = Pictures(list_items(folder))
    path = zipped(folder, tmp_path / "photos.zip") if packed else folder
    found = Pictures(list_items(path), kept_bytes=kept_bytes)
    assert len(found) == len(expected) == 24
    for row in range(24):
        assert np.array_equal(np.asarray(found[row]), np.asarray(expected[row]))


def test_unreadable_pictures_are_named_before_training(folder):
    for number in range(7):
        (folder / "class1" / f"{number:02d}.png").write_bytes(b"no picture")
    with pytest.raises(TrainingError) as error:
        Pictures(list_items(folder))
    said = str(error.value)
    assert "7 of 24 images cannot be read; fix or remove them" in said
    assert "class1/00.png" in said
    assert "and 2 more" in said


def test_a_picture_that_breaks_later_is_named(folder):
    found = Pictures(list_items(folder), kept_bytes=0)
    (folder / "class0" / "03.png").write_bytes(b"no picture")
    with pytest.raises(TrainingError, match=r"class0/03.png could be read before but no longer can"):
        found[3]


RECIPE = Recipe(network="conv4", side=12, smallest_area=0.3)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return Pictures(list_items(image_folder(tmp_path_factory.mktemp("photos"))))


def rows_of(sampler):
    return [row for batch in sampler for _, row in batch]


def test_an_epoch_is_a_function_of_seed_and_number():
    def order(seed, epoch):
        sampler = EpochBatches(40, 8, seed)
        sampler.set_epoch(epoch)
        return rows_of(sampler)

    assert order(0, 3) == order(0, 3)
    assert order(0, 3) != order(0, 4)
    assert order(0, 3) != order(1, 3)
    assert sorted(order(0, 3)) == list(range(40))


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_each_batch(processes):
    whole = [set(batch) for batch in EpochBatches(40, 8, seed=0)]
    shares = [list(EpochBatches(40, 8, 0, process, processes)) for process in range(processes)]
    for step, batch in enumerate(whole):
        parts = [share[step] for share in shares]
        assert all(len(part) == 8 // processes for part in parts)
        assert set().union(*parts) == batch


def test_batches_that_cannot_be_are_refused():
    with pytest.raises(TrainingError, match="multiple of 3"):
        EpochBatches(40, 8, 0, process=0, processes=3)
    with pytest.raises(TrainingError, match="there are 5; lower the batch size"):
        EpochBatches(5, 8, 0)


def test_a_view_depends_on_its_address_alone(pictures):
    views = RandomViews(pictures, RECIPE)
    images, labels = views[[(2, 5), (2, 9), (3, 5)]]
    alone, _ = views[[(2, 9)]]
    assert images.shape == (3, 3, 12, 12)
    assert torch.equal(images[1], alone[0])
    assert not torch.equal(images[0], images[2])
    assert labels.tolist() == [0, 1, 0]


def test_each_rotation_is_a_class_of_its_own(pictures):
    recipe = Recipe(network="conv4", side=12, smallest_area=1.0, jitter=0.0, flip=False, rotations=True)
    views = RandomViews(pictures, recipe)
    assert len(views) == 4 * 24
    assert views.n_classes == 4 * 3
    images, labels = views[[(0, 10 + 24 * turn) for turn in range(4)]]
    assert labels.tolist() == [1, 4, 7, 10]
    for turn in range(4):
        assert torch.equal(images[turn], torch.rot90(images[0], turn, (-2, -1)))


def test_validation_sees_what_extraction_will_see(pictures):
    rows, images = CentreViews(pictures, RECIPE)[[3, 7]]
    assert rows.tolist() == [3, 7]
    assert torch.equal(images[1], RECIPE.centre_view(pictures[7]))
