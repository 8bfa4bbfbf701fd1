import numpy as np
import pytest

from handful.errors import TrainingError
from handful.extraction.items import list_items
from handful.fewshot.training.pictures import Pictures
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
