"""Kills at every write of Finish: afterwards the same command goes on, with every answer, and can finish."""

import itertools
import os
import shutil
import signal

import numpy as np
import pytest

from handful.classification.building import build_catalogue
from handful.classification.label import embed
from handful.classification.task import check, read_inputs
from handful.classification.unlabelled import read_unlabelled
from handful.fitted import load_catalogue
from handful.review import files, unlabelled
from handful.review.files import Outputs
from handful.review.serve import Address
from tests.kills_at_hand import PATIENCE, PROCESSES, start_server
from tests.worlds import Clouds

pytest.importorskip("resource", reason="processes are killed as Unix does it")

CLASSES = ("ant", "bee", "cat")
# Calls of the system that change a file.
WRITES = ("write", "fsync", "ftruncate", "truncate", "replace", "unlink", "chmod")
MOST_WRITES = 200


def without_catalogue(place, served):
    """Open the review of a batch alone; `served` gets the page, and what finishes it."""
    unlabelled.serve = lambda page, finish, where: served(page.review, lambda: finish(page.review, False))
    found = read_unlabelled(place / "batch.npz", place)
    return unlabelled.review_unlabelled(found, Outputs(place / "batch.labels.csv"), "batch", Address())


def with_catalogue(place, served):
    """Open the review of a batch beside a catalogue, to which what was said is added."""
    files.serve = lambda page, finish, where: served(page.review, lambda: finish(page.review, True))
    ready = embed(check(read_inputs(place / "batch.handful", place / "batch.npz")), place)
    return files.review_files(ready, Outputs(place / "batch.labels.csv"), "batch", Address())


def answered(review, finish):
    for number, name in enumerate(CLASSES):
        review.decide(number, [2 * number, 2 * number + 1], "new", name)


def finished(review, finish):
    return finish(), review.state.decisions


def killed(door, place, number):
    """Finish in a process that is killed before the write of this number."""

    def dies(review, finish):
        writes = itertools.count()

        def counted(call):
            def before(*given, **more):
                if next(writes) == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*given, **more)

            return before

        for name in WRITES:
            setattr(os, name, counted(getattr(os, name)))
        finish()

    door(place, dies)
    os._exit(0)


def begun(door, place):
    """Begin the review of a batch of three classes, of which a person names six items."""
    place.mkdir()
    rng = np.random.default_rng(0)
    clouds = Clouds(6, 8, rng, apart=2)
    np.savez(place / "batch.npz", features=clouds.around(np.repeat([0, 1, 2], 4)))
    if door is with_catalogue:
        np.savez(place / "examples.npz", features=clouds.around(np.repeat([3, 4, 5], 2)), labels=[*"ddeeff"])
        build_catalogue(place / "examples.npz", place / "batch.handful")
    door(place, answered)


@pytest.mark.parametrize("door", [without_catalogue, with_catalogue])
def test_a_review_that_is_killed_in_finish_goes_on_and_finishes(door, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "serve", None)
    monkeypatch.setattr(unlabelled, "serve", None)
    start_server("tests.review.test_finish_killed")
    begun(door, tmp_path / "begun")
    for number in range(MOST_WRITES):
        place = shutil.copytree(tmp_path / "begun", tmp_path / f"{number}")
        process = PROCESSES.Process(target=killed, args=(door, place, number))
        process.start()
        process.join(PATIENCE)
        done, decisions = door(place, finished)
        assert {item: one.label for item, one in decisions.items()} == dict(enumerate(np.repeat(CLASSES, 2)))
        assert str(place / "batch.handful") in done.written, f"killed before write {number}"
        assert set(CLASSES) <= set(load_catalogue(place / "batch.handful").classes.tolist())
        assert (place / "batch.labels.csv").read_text().count("ant") >= 2
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert 10 < number < MOST_WRITES - 1
