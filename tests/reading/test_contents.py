import pickle
import zipfile

import pytest

from handful.extraction.items import list_items
from handful.reading import contents
from handful.reading.contents import Unreadable, pick
from tests.items_at_hand import image_bytes, image_folder, zipped


def test_a_damaged_entry_of_a_zip_is_unreadable_and_the_others_are_not(tmp_path):
    archive = zipped(image_folder(tmp_path / "images", 1, 3), tmp_path / "a.zip")
    with zipfile.ZipFile(archive) as opened:
        start = opened.getinfo("class0/01.png").header_offset
    data = bytearray(archive.read_bytes())
    data[start + 60] ^= 255
    archive.write_bytes(data)
    first, second, third = list_items(archive).source
    assert isinstance(second, Unreadable)
    assert (first, third) == (image_bytes(0), image_bytes(2))


def test_a_file_larger_than_any_image_is_not_read_whole(tmp_path, monkeypatch):
    folder = image_folder(tmp_path / "images", 1, 1)
    monkeypatch.setattr(contents, "MAX_FILE_BYTES", 10)
    (found,) = list_items(folder).source
    assert isinstance(found, Unreadable)
    assert "larger than 10 bytes" in found.reason


def test_picked_contents_come_in_the_order_asked_for(tmp_path):
    folder = image_folder(tmp_path / "images", 1, 3)
    for place in (folder, zipped(folder, tmp_path / "a.zip")):
        assert list(pick(list_items(place).source, [2, 0])) == [image_bytes(2), image_bytes(0)]
    assert pick(("a", "b", "c"), [2, 0]) == ("c", "a")


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_items_can_be_sent_to_another_process(tmp_path, kind):
    folder = image_folder(tmp_path / "images", 1, 3)
    path = folder if kind == "folder" else zipped(folder, tmp_path / "a.zip")
    source = list_items(path).source[1:3]
    assert list(pickle.loads(pickle.dumps(source))) == list(source)
