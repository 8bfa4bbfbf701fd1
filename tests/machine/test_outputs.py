import os
import unicodedata
from pathlib import Path

import pytest

from handful.errors import OptionError
from handful.machine.outputs import refuse_overwriting


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with inputs, in which relative paths begin."""
    (tmp_path / "photos" / "cats").mkdir(parents=True)
    (tmp_path / "photos" / "cats" / "1.jpg").write_bytes(b"cat")
    (tmp_path / "batch.csv").write_text("old")
    (tmp_path / "other.csv").write_text("other")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(read, write, **options):
    with pytest.raises(OptionError) as error:
        refuse_overwriting({"batch": read}, {"predictions": write}, **options)
    return str(error.value)


def test_the_same_path_is_refused_with_both_names(here):
    said = "the predictions (batch.csv) would overwrite the batch (batch.csv); choose another path"
    assert refused("batch.csv", "batch.csv") == said


@pytest.mark.parametrize(
    "spelling",
    ["./batch.csv", "deep/../batch.csv", "deep/er/../../batch.csv", "{here}/batch.csv", "{here}//./batch.csv"],
)
def test_other_spellings_are_the_same_path(here, spelling):
    path = spelling.format(here=here)
    assert "would overwrite" in refused("batch.csv", path)
    assert "would overwrite" in refused(path, "batch.csv")
    assert "would overwrite" in refused(Path(path), f"file://{here}/batch.csv")


def test_links_are_followed_in_every_part_of_a_path(here):
    (here / "link.csv").symlink_to("batch.csv")
    (here / "again.csv").symlink_to("link.csv")
    (here / "folder").symlink_to(here)
    os.link(here / "batch.csv", here / "deep" / "hard.csv")
    for other in ("link.csv", "again.csv", "folder/batch.csv", "folder/again.csv", "deep/hard.csv"):
        assert "would overwrite" in refused("batch.csv", other)
        assert "would overwrite" in refused(other, "batch.csv")
    # `..` after a link is the folder above the one it leads to.
    (here / "sideways").symlink_to(here / "deep" / "er")
    assert "would overwrite" in refused("deep/hard.csv", "sideways/../hard.csv")
    refuse_overwriting({"batch": "batch.csv"}, {"predictions": "sideways/../batch.csv"})


def test_a_link_to_an_output_that_does_not_exist_yet(here):
    (here / "later.csv").symlink_to("new.csv")
    with pytest.raises(OptionError, match=r"the page \(later\.csv\) would overwrite the predictions \(new\.csv\)"):
        refuse_overwriting({}, {"predictions": "new.csv", "page": "later.csv"})


def test_an_output_inside_an_input_folder_is_refused(here):
    for inside in ("photos/labels.csv", "photos/cats/1.jpg", "photos/new/labels.csv", "deep/../photos/x"):
        assert "is inside the batch (photos); choose a path outside of it" in refused("photos", inside)
    (here / "way").symlink_to("photos/cats")
    assert "is inside" in refused("photos", "way/labels.csv")
    # The link itself would be replaced, not what it leads to.
    (here / "photos" / "out.csv").symlink_to(here / "elsewhere.csv")
    assert "is inside" in refused("photos", "photos/out.csv")


def test_an_output_that_contains_an_input_is_refused(here):
    for write in (".", here, "photos", "photos/..", here.parent):
        assert "contains the batch (photos/cats)" in refused("photos/cats", write)
    assert "contains the batch (pictures.zip/cats)" in refused("pictures.zip/cats", "pictures.zip")


def test_a_file_that_a_folder_reads_through_a_link_is_refused(here):
    (here / "far.jpg").write_bytes(b"far")
    (here / "hard.jpg").write_bytes(b"hard")
    (here / "photos" / "cats" / "2.jpg").symlink_to(here / "far.jpg")
    os.link(here / "hard.jpg", here / "photos" / "cats" / "3.jpg")
    assert "would overwrite photos/cats/2.jpg, a file of the batch (photos)" in refused("photos", "far.jpg")
    assert "would overwrite photos/cats/3.jpg, a file of the batch (photos)" in refused("photos", "hard.jpg")


def test_files_that_a_table_names_are_refused(here):
    said = refused("batch.csv", "photos/cats/1.jpg", files=[Path("photos/cats/1.jpg")])
    assert "would overwrite photos/cats/1.jpg, a file of the items" in said

    def never():
        raise AssertionError("nothing is there to be overwritten")
        yield

    refuse_overwriting({"batch": "batch.csv"}, {"predictions": "new.csv"}, files=never())


def test_two_outputs_are_never_the_same(here):
    for page in ("new.csv", "./new.csv", "NEW.csv", "batch.csv/../new.csv"):
        with pytest.raises(OptionError, match=r"the page .* would overwrite the predictions \(new\.csv\)"):
            refuse_overwriting({}, {"predictions": "new.csv", "page": page})
    refuse_overwriting({}, {"predictions": "new.csv", "page": "new.html"})


def test_names_that_some_file_systems_take_for_equal_are_equal_until_they_exist(here):
    composed, apart = (unicodedata.normalize(form, "Käse.csv") for form in ("NFC", "NFD"))
    with pytest.raises(OptionError, match="would overwrite"):
        refuse_overwriting({}, {"predictions": composed, "page": apart})


def test_a_file_system_that_ignores_case_is_asked(here, monkeypatch):
    stat = Path.stat
    monkeypatch.setattr(Path, "stat", lambda self, **how: stat(self.with_name(self.name.lower()), **how))
    assert "would overwrite" in refused("batch.csv", "BATCH.csv")
    monkeypatch.undo()
    if not (here / "BATCH.csv").exists():
        refuse_overwriting({"batch": here / "batch.csv"}, {"predictions": here / "BATCH.csv"})


def test_a_labelled_copy_may_replace_its_input_and_nothing_else(here):
    copy = {"replaces": {"predictions": "batch"}}
    reads = {"catalogue": "other.csv", "batch": "batch.csv"}
    refuse_overwriting(reads, {"predictions": "batch.csv"}, **copy)
    refuse_overwriting({**reads, "catalogue": "batch.csv"}, {"predictions": "deep/../batch.csv"}, **copy)
    with pytest.raises(OptionError, match=r"would overwrite the catalogue \(other\.csv\)"):
        refuse_overwriting(reads, {"predictions": "other.csv"}, **copy)
    with pytest.raises(OptionError, match=r"the page \(batch\.csv\) would overwrite the batch"):
        refuse_overwriting(reads, {"predictions": "new.csv", "page": "batch.csv"}, **copy)
    with pytest.raises(OptionError, match=r"the page \(batch\.csv\) would overwrite the (batch|predictions)"):
        refuse_overwriting(reads, {"predictions": "batch.csv", "page": "batch.csv"}, **copy)


def test_neighbours_and_what_is_no_path_pass(here):
    reads = {"catalogue": [[1.0]], "batch": "photos", "names": None, "queries": "s3://bucket/x"}
    writes = {"predictions": "photos.csv", "run": "photos.csv.run", "page": None, "folder": "s3://bucket/x"}
    refuse_overwriting(reads, writes)
    refuse_overwriting({"batch": "missing/batch.csv"}, {"predictions": "missing/labels.csv"})
