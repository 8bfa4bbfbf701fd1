import pytest
import torch

from handful.errors import TrainingError
from handful.extraction.items import list_items
from handful.fewshot.training.batches import CentreViews, EpochBatches, RandomViews
from handful.fewshot.training.pictures import Pictures
from handful.fewshot.training.recipe import Recipe
from tests.items_at_hand import image_folder

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
