"""Kills while a catalogue is being written: afterwards the file is the old or the new one, whole."""

import itertools
import os
import signal
import sys
import threading

import numpy as np
import pytest

from handful.fitted import load_model, save_model
from handful.machine import outputs, safetensors_format
from handful.machine.outputs import UNFINISHED
from tests.fitted.test_record import kept
from tests.kills_at_hand import PATIENCE, PROCESSES, start_server

resource = pytest.importorskip("resource", reason="limits of the size of files are those of Unix")

LINES, SIZES = 12, 8
# Files whose lines are moments of the writing.
WRITERS = {safetensors_format.__file__, outputs.__file__}


def changed(file):
    before = load_model(file)
    save_model(before.relabelled(np.char.replace(before.classes, "class 00", "zebra")), file)


def at_every_line_of_the_writers(at_line):
    """Call a function at each line, from the moment that the unfinished file is made until the change is done."""
    began = False

    def trace(frame, event, _):
        nonlocal began
        if frame.f_code.co_filename not in WRITERS:
            return None
        began = began or frame.f_code.co_name == "written_whole"
        if event == "line" and began:
            at_line()
        return trace

    sys.settrace(trace)


def lines_of_the_writers(file):
    lines = itertools.count()
    at_every_line_of_the_writers(lambda: next(lines) and None)
    try:
        changed(file)
    finally:
        sys.settrace(None)
    return next(lines)


def paused_at_line(file, line, reached):
    """Change the catalogue, and wait for ever at a line of the writers."""
    lines = itertools.count()

    def pause():
        if next(lines) == line:
            reached.set()
            threading.Event().wait()

    at_every_line_of_the_writers(pause)
    changed(file)


def ended_at_size(file, n_bytes):
    """Change the catalogue; the system ends the process when a file would be longer."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))
    changed(file)


def kill_at_line(file, line):
    reached = PROCESSES.Event()
    process = PROCESSES.Process(target=paused_at_line, args=(file, line, reached))
    process.start()
    assert reached.wait(PATIENCE), "the writer never came to this line"
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL


def kill_at_size(file, n_bytes):
    process = PROCESSES.Process(target=ended_at_size, args=(file, n_bytes))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGXFSZ


@pytest.mark.beyond
def test_twenty_kills_while_it_is_written_leave_the_old_catalogue_or_the_new_one(tmp_path):
    start_server(__name__)
    whole = tmp_path / "whole.handful"
    kept(whole)
    old = whole.read_bytes()
    n_lines = lines_of_the_writers(whole)
    new = whole.read_bytes()
    assert old != new
    assert n_lines > LINES
    last = (n_lines - 1) / (LINES - 1)
    moments = [
        *((kill_at_line, round(number * last)) for number in range(LINES)),
        *((kill_at_size, round(len(new) * (number + 0.5) / SIZES)) for number in range(SIZES)),
    ]
    file = tmp_path / "c.handful"
    found, unfinished = [], 0
    for kill, moment in moments:
        file.write_bytes(old)
        kill(file, moment)
        content = file.read_bytes()
        assert content in (old, new), f"{kill.__name__} {moment}"
        found.append(content == new)
        unfinished += any(tmp_path.glob(f".{file.name}.*{UNFINISHED}"))
        load_model(file)
        for left in tmp_path.glob(f".*{UNFINISHED}"):
            left.unlink()
    assert len(found) == 20
    assert unfinished >= SIZES + 2  # kills in the middle of the file, and between the file and its name
    assert True in found  # and at least one after it
