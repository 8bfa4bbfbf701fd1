"""A review that is killed at any moment: whatever was acknowledged is there, and the same command goes on."""

import itertools
import os
import signal
import threading
import time
from urllib.error import URLError

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from handful.cli import review
from handful.cli.main import main
from handful.review.files import Outputs, finish
from handful.review.opening import open_batch
from handful.review.starting import start
from tests.kills_at_hand import PATIENCE, PROCESSES, start_server
from tests.review.reviews import Visitor
from tests.worlds import Clouds

pytest.importorskip("resource", reason="processes are killed as Unix does it")

CLASSES = ("ant", "bee", "cat")
KILLS = 8
# Calls of the system that change a file.
WRITES = ("write", "fsync", "ftruncate", "truncate", "replace", "unlink", "chmod")
MOST_WRITES = 100


@pytest.fixture
def folder(tmp_path):
    truth = np.repeat([0, 1, 2], 20)
    np.savez(tmp_path / "batch.npz", features=Clouds(3, 8, apart=2).around(truth))
    start_server("tests.review.test_killed", "handful.review.serve", "handful.cli.review", "uvicorn")
    return tmp_path


# -- while answers are posted ------------------------------------------------------------------------------------------


def run(folder, address):
    """`handful review` in a process; its address goes through a pipe."""
    os.chdir(folder)
    review._announce = address.send
    main(["review", "batch.npz", "--no-open"])


def begun(folder):
    """Start a review, and return its process and a browser at it."""
    here, there = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=run, args=(folder, there))
    process.start()
    there.close()
    assert here.poll(PATIENCE), "no review began"
    return process, Visitor(here.recv())


def answer_until_it_ends(visitor, rng, told):
    """Answer one thing after another; `told` gets what was sent last, and the last state that was acknowledged."""
    try:
        while True:
            state = told[-1]
            item = int(rng.integers(60))
            told.append(("decide", item))
            if rng.random() < 0.2 and state["n_steps"]:
                told[-1] = ("undo", None)
                answer = visitor.post("undo", number=state["number"])
            else:
                body = {"items": [item], "said": "new", "label": CLASSES[item // 20]}
                answer = visitor.post("decide", number=state["number"], **body)
            told[-2:] = [answer]
    except (URLError, OSError, ValueError):  # it was killed
        pass


def said_in(state):
    return {item: label for item, _, label, _ in state["decisions"]}


def test_nothing_that_was_acknowledged_is_lost_by_kills_at_random_moments(folder):
    rng = np.random.default_rng(0)
    n_acknowledged = 0
    before = {}
    for _ in range(KILLS):
        process, visitor = begun(folder)
        told = [visitor.get("state")]
        assert said_in(told[0]) == before
        first = told[0]["number"]
        person = threading.Thread(target=answer_until_it_ends, args=(visitor, rng, told), daemon=True)
        person.start()
        time.sleep(float(rng.exponential(0.6)))
        process.kill()
        process.join(PATIENCE)
        person.join(PATIENCE)
        kept, *in_flight = told
        n_acknowledged += kept["number"] - first
        with CatalogueFile.open(folder / "batch.handful") as file:
            opened = open_batch(file, "batch")
            before = {item: one.label for item, one in opened.decisions.items()}
            # What was sent last, and not acknowledged, has happened as a whole, or not at all.
            assert opened.number - kept["number"] in (0, len(in_flight))
            if opened.number == kept["number"]:
                assert before == said_in(kept)
    assert n_acknowledged > KILLS


# -- while labels are written ------------------------------------------------------------------------------------------


def killed(folder, number):
    """Finish in a process that is killed before the write of this number."""
    writes = itertools.count()

    def counted(call):
        def before(*given, **more):
            if next(writes) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **more)

        return before

    started = start(None, folder / "batch.npz")
    opened = open_batch(started.file, started.batch)
    for name in WRITES:
        setattr(os, name, counted(getattr(os, name)))
    finish(opened, Outputs(folder / "labels.csv"), "batch")
    os._exit(0)


def test_a_review_that_is_killed_in_finish_goes_on_and_finishes(folder):
    """W3: on 0.5.0 a kill when the catalogue appeared locked the person out; now Finish writes the labels alone."""
    started = start(None, folder / "batch.npz")
    with started.file as file:
        opened = open_batch(file, started.batch)
        for number, name in enumerate(CLASSES):
            opened.decide(opened.number, [20 * number, 20 * number + 1], "new", name)
        decisions = opened.decisions
        finish(opened, Outputs(folder / "whole.csv"), "batch")
    whole = (folder / "whole.csv").read_bytes()
    labels = folder / "labels.csv"
    for number in range(MOST_WRITES):
        labels.write_bytes(b"of yesterday")
        process = PROCESSES.Process(target=killed, args=(folder, number))
        process.start()
        process.join(PATIENCE)
        assert labels.read_bytes() in (b"of yesterday", whole)
        started = start(None, folder / "batch.npz")
        with started.file as file:
            opened = open_batch(file, started.batch)
            assert (opened.decisions, started.notes) == (decisions, [])
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert 0 < number < MOST_WRITES - 1
    assert labels.read_bytes() == whole
