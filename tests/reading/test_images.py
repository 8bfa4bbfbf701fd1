import zipfile

import pytest

from handful.errors import BankError
from handful.extraction.items import list_items
from handful.reading import contents, read
from handful.reading.contents import Unreadable
from tests.items_at_hand import image_bytes, image_folder, zipped


def test_images_of_a_folder_and_of_a_zip_are_listed_by_folder(tmp_path):
    for name in ("cat", "cat-wild", "cat/tabby"):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "images" / name / "9.png").write_bytes(image_bytes(0))
    archive = zipped(tmp_path / "images", tmp_path / "a.zip", "deep/er/")
    for place in (tmp_path / "images", archive / "deep" / "er"):
        table = read(place)
        assert table.names == ("cat/9.png", "cat-wild/9.png", "cat/tabby/9.png")
        assert table.classes == table.columns["folder"] == ["cat", "cat-wild", "cat/tabby"]
        assert list(table.images) == [image_bytes(0)] * 3


def test_other_files_and_hidden_ones_are_left_out(tmp_path):
    folder = image_folder(tmp_path / "images", 1, 2)
    (folder / "README.md").write_text("photographs")
    (folder / "class0" / ".00.png").write_bytes(b"")
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX" / "00.png").write_bytes(b"")
    assert read(folder).n_rows == 2


def test_archives_without_images_or_damaged_are_refused(tmp_path):
    (tmp_path / "x.zip").write_text("hello")
    with pytest.raises(BankError, match=r"not a complete \.zip"):
        read(tmp_path / "x.zip")
    archive = zipped(image_folder(tmp_path / "images", 1, 1), tmp_path / "a.zip")
    with pytest.raises(BankError, match="contains no image"):
        read(archive / "nowhere")


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
