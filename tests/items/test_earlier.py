"""The file of a catalogue of version 0.5 becomes the new one, and stays beside it; review/test_earlier.py kills it."""

import shutil
from pathlib import Path

import pytest

from handful.catalogue.file import CatalogueFile, is_catalogue_file
from handful.errors import HandfulError, OptionError
from handful.items import source_of
from handful.items.earlier import is_earlier, old_file, take_over_file

KEPT = Path(__file__).parents[1] / "old_files" / "v0_5_1" / "kinds.handful"


@pytest.fixture
def path(tmp_path):
    return Path(shutil.copy(KEPT, tmp_path / "birds.handful"))


def test_its_examples_are_items_with_answers(path):
    assert is_earlier(path)
    assert take_over_file(path).startswith(f"{path} was of an earlier version: it is {old_file(path)} now")
    assert old_file(path).read_bytes() == KEPT.read_bytes()
    with CatalogueFile.open(path) as file:
        assert len(file.said.answers) == 18
        assert file.said.classes == tuple(f"kind {k}" for k in range(6))
        assert source_of(file, "birds") == old_file(path)
    assert not is_earlier(path)
    assert take_over_file(path) == ""
    there = {one.name for one in path.parent.iterdir()} - {".birds.handful.lock"}
    assert there == {"birds.handful", "birds.old.handful"}


def test_the_copy_of_a_killed_process_is_taken(path):
    shutil.copy(path, old_file(path))
    take_over_file(path)
    assert is_catalogue_file(path)


def test_another_old_file_is_in_the_way(path):
    old_file(path).write_bytes(b"other")
    with pytest.raises(OptionError, match="is in the way; move one of them"):
        take_over_file(path)
    assert (path.read_bytes(), old_file(path).read_bytes()) == (KEPT.read_bytes(), b"other")


def test_what_cannot_be_read_stays_as_it_is(path):
    path.write_bytes(KEPT.read_bytes()[:-50])
    with pytest.raises(HandfulError):
        take_over_file(path)
    assert path.read_bytes() == KEPT.read_bytes()[:-50]
    assert not old_file(path).exists()


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "here" / "mine.handful"
    link.parent.mkdir()
    link.symlink_to(path)
    take_over_file(link)
    assert link.is_symlink()
    assert is_catalogue_file(path)
    assert old_file(link) == old_file(path)
