"""The catalogue of a review is found or made, and its batch is brought: what changed is said in one line."""

import os
import stat

import numpy as np
import pytest

from handful.errors import OptionError, StorageError
from handful.review.opening import open_batch
from handful.review.starting import catalogue_path, start
from tests.items.photographs import CALLS, ENCODER, photograph, photographs, register
from tests.review.reviews import say
from tests.worlds import Clouds

DIM = 8
READING = {"encoder": ENCODER}


@pytest.fixture
def tables(tmp_path):
    """A folder per class is too slow here: labelled rows, and two batches of the same two classes."""
    clouds = Clouds(2, DIM, apart=4)
    np.savez(tmp_path / "examples.npz", features=clouds.examples(3), labels=["fox"] * 3 + ["owl"] * 3)
    for name in ("monday", "tuesday"):
        np.savez(tmp_path / f"{name}.npz", features=clouds.around([0, 1] * 4))
    return tmp_path


def opened(*paths, **reading):
    """Start as the command does, and open the review."""
    catalogue, batch = paths if len(paths) == 2 else (None, *paths)
    started = start(catalogue, batch, person="Ada", reading=reading)
    return started, open_batch(started.file, started.batch, person="Ada", notes=started.notes)


def test_a_catalogue_is_beside_what_it_is_made_of(tmp_path):
    (tmp_path / "photos.2026").mkdir()
    assert catalogue_path(None, tmp_path / "photos.2026") == tmp_path / "photos.2026.handful"
    assert catalogue_path(None, tmp_path / "today.npz") == tmp_path / "today.handful"
    assert catalogue_path(tmp_path / "examples.csv", tmp_path / "today.npz") == tmp_path / "examples.handful"
    assert catalogue_path(tmp_path / "birds.handful", tmp_path / "today.npz") == tmp_path / "birds.handful"


def test_two_photographs_more_do_not_lock_anybody_out(tmp_path):
    """W1: on 0.5.0 the second start was refused, "is the review of another batch", after all were embedded again."""
    register()
    folder = photographs(tmp_path / "photos", 12)
    started, review = opened(folder, **READING)
    with started.file:
        assert (started.batch, started.notes, sum(CALLS)) == ("photos", [], 12)
        review.decide(review.number, [0, 1, 2], "new", "fox")
    photographs(folder, 2, first=12)
    CALLS.clear()
    started, review = opened(folder)
    with started.file:
        assert (review.notes, sum(CALLS)) == (["2 photographs are new."], 2)
        assert (len(review.batch.rows), review.n_steps) == (14, 1)
        assert review.session.said.given == dict.fromkeys(range(3), "fox")
    started, review = opened(tmp_path / "photos.handful", None)
    with started.file:
        assert (started.batch, review.notes, review.n_steps) == ("photos", [], 1)


def given_by_place(started, review):
    """What was said about each place."""
    here = started.file.said.places[started.batch]
    items = review.session.items.tolist()
    return {here[items[position]]: label for position, label in review.session.said.given.items()}


def test_many_photographs_come_go_move_and_change_and_the_review_goes_on(tmp_path):
    """W1 at length: 30 come, 10 go, 20 are renamed, 5 are edited."""
    register()
    folder = photographs(tmp_path / "photos", 100)
    started, review = opened(folder, **READING)
    with started.file:
        for position in range(60):
            say(review, position, f"kind {position % 3}")
        before, looks = given_by_place(started, review), review.session.looks
        calibration = review.session.calibration
    photographs(folder, 30, first=100)
    for k in range(10):
        (folder / f"{k:03d}.png").unlink()
    for k in range(10, 30):
        (folder / f"{k:03d}.png").rename(folder / f"renamed {k:03d}.png")
    for k in range(30, 35):
        photograph(folder / f"{k:03d}.png", 1000 + k)
    CALLS.clear()
    started, review = opened(folder)
    with started.file:
        assert review.notes == ["30 photographs are new, 10 are gone, 20 were moved, 5 were changed."]
        assert sum(CALLS) == 35
        stayed = {f"{k:03d}.png": before[f"{k:03d}.png"] for k in range(35, 60)}
        renamed = {f"renamed {k:03d}.png": before[f"{k:03d}.png"] for k in range(10, 30)}
        assert given_by_place(started, review) == stayed | renamed
        # Whatever was known about decisions and about labels that were wrong is known still.
        assert review.session.from_nothing
        assert (review.n_steps, review.session.looks) == (60, looks)
        assert review.session.calibration == calibration
        review.undo(review.number)
        assert review.n_steps == 59


def test_examples_are_items_that_have_answers_and_a_batch_joins_them(tables):
    started, review = opened(tables / "examples.npz", tables / "monday.npz")
    with started.file as file:
        assert (file.path, started.batch) == (tables / "examples.handful", "monday")
        assert sorted(file.said.classes) == ["fox", "owl"]
        assert not review.session.from_nothing
        assert review.session.result.labels.tolist() == ["fox", "owl"] * 4
        say(review, 0, "lynx")
    for _ in range(2):  # the same examples again change nothing
        started, review = opened(tables / "examples.npz", tables / "monday.npz")
        with started.file as file:
            assert (review.session.said.given, started.notes) == ({0: "lynx"}, [])
            revision = file.revision
    started, review = opened(tables / "examples.handful", tables / "tuesday.npz")
    with started.file as file:
        assert (started.batch, file.revision) == ("tuesday", revision + 1)
        assert review.session.result.classes.tolist() == ["fox", "lynx", "owl"]  # what was named on Monday
    started, _ = opened(tables / "examples.handful", None)
    with started.file:
        assert started.batch == "tuesday"


def test_batches_of_one_name_in_two_folders_are_two(tables):
    for place in ("a", "b"):
        (tables / place).mkdir()
        (tables / "monday.npz").read_bytes()
        (tables / place / "monday.npz").write_bytes((tables / "monday.npz").read_bytes())
    names = []
    for place in ("a", "b", "a", "b"):
        started, _ = opened(tables / "all.handful", tables / place / "monday.npz")
        with started.file as file:
            names.append(started.batch)
            assert len(file.said.places) == min(len(names), 2)
    assert names == ["monday", "b/monday"] * 2


def test_a_catalogue_without_a_batch_says_what_to_name(tables):
    with pytest.raises(OptionError, match="has no batch yet; name one: handful review"):
        opened(tables / "empty.handful", None)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_only_the_owner_can_read_a_catalogue(tables):
    """W10: on 0.5.0 the catalogue that Finish wrote had mode 0644."""
    started, _ = opened(tables / "monday.npz")
    with started.file as file:
        assert stat.S_IMODE(os.stat(file.path).st_mode) == 0o600


def test_a_folder_that_cannot_be_written_is_said(tables, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        with pytest.raises(StorageError, match=r"monday\.handful: Permission denied"):
            opened(tables / "monday.npz")
    opened(tables / "monday.npz")[0].file.close()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    with pytest.raises(StorageError, match="make it and its folder writable"):
        opened(tables / "monday.npz")
