"""label_groups, stopped at any moment of the writing, or with outputs that were damaged or deleted: the same bytes."""

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import pytest

from handful.errors import StorageError
from handful.estimators import BatchClassifier
from handful.executors import in_process
from handful.machine import outputs
from handful.many import label_groups, portions, run, write
from tests.kills_at_hand import PATIENCE, PROCESSES, start_server
from tests.many_at_hand import SMALL, contents, world, written

resource = pytest.importorskip("resource", reason="limits of the size of files are those of Unix")

MOMENTS = 20
# Files whose lines are the moments of the writing.
WRITERS = {write.__file__, outputs.__file__}


class Stopped(BaseException):
    """What a test raises in the middle of the writing; nobody catches it."""


def everything(out: Path) -> dict[str, bytes]:
    """Bytes of every file of the output by name, those of the list of checksums included."""
    assert not (out / "work").exists()
    return contents(out) | {write.SUMS: (out / write.SUMS).read_bytes()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Inputs, and the output of an undisturbed run. All groups begin in the first of four files; the third is empty."""
    folder = tmp_path_factory.mktemp("groups")
    rng = np.random.default_rng(0)
    given = world(n_groups=12)
    first = np.unique(given.groups, return_index=True)[1]
    rows = np.append(first, np.setdiff1d(np.arange(len(given.groups)), first))
    parts = [rows[:20], rows[20:50], rows[:0], rows[50:]]
    assert len(first) < 20
    tables = [given.table(part, note=[rng.bytes(200).hex() for _ in part]) for part in parts]
    written(tables, folder / "in", row_group_size=9)
    given.classifier.save(folder / "classifier")
    labelled(folder, folder / "whole")
    return folder, everything(folder / "whole")


def labelled(folder: Path, out: Path) -> None:
    classifier = BatchClassifier.load(folder / "classifier")
    with mock.patch.object(portions, "HELD_NUMBERS", SMALL):
        label_groups(classifier, folder / "in", out, group_by="site", executor=in_process())


def writing_watched(folder: Path, out: Path, at_line: Callable[[], None]) -> None:
    """Label, and call a function at every line of the writers, from the first file of the output on."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in WRITERS:
            return None
        if event == "line":
            at_line()
        return trace

    real = run._Run._write

    def watched(*arguments: Any) -> None:
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            real(*arguments)
        finally:
            sys.settrace(before)

    with mock.patch.object(run._Run, "_write", watched):
        labelled(folder, out)


def lines_of_writing(folder: Path, out: Path) -> int:
    lines = itertools.count()
    writing_watched(folder, out, lambda: next(lines) and None)
    return next(lines)


def moments(n_lines: int) -> list[int]:
    """Lines at which the writing is stopped: as many as wanted, evenly from the first to the last."""
    return np.linspace(0, n_lines - 1, MOMENTS).astype(int).tolist()


def stopped_at(folder: Path, out: Path, line: int, stop: Callable[[], None]) -> None:
    lines = itertools.count()
    writing_watched(folder, out, lambda: stop() if next(lines) == line else None)


def raise_stopped() -> None:
    raise Stopped


def killed_at(folder: Path, out: Path, line: int) -> None:
    stopped_at(folder, out, line, lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_stopped_at_twenty_moments_of_the_writing_it_ends_as_if_undisturbed(whole, tmp_path):
    folder, undisturbed = whole
    finished = set()
    for line in moments(lines_of_writing(folder, tmp_path / "watched")):
        out = tmp_path / str(line)
        with pytest.raises(Stopped):
            stopped_at(folder, out, line, raise_stopped)
        finished.add(len(contents(out)))
        labelled(folder, out)
        assert everything(out) == undisturbed, f"stopped at line {line}"
    assert finished >= {0, 2, 4, 6}  # before the first file, and after each but the last


@pytest.mark.beyond
def test_killed_at_twenty_moments_of_the_writing_it_ends_as_if_undisturbed(whole, tmp_path):
    folder, undisturbed = whole
    start_server(__name__)
    unfinished = 0
    for line in moments(lines_of_writing(folder, tmp_path / "watched")):
        out = tmp_path / str(line)
        process = PROCESSES.Process(target=killed_at, args=(folder, out, line))
        process.start()
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL
        unfinished += any(out.rglob(f"*{outputs.UNFINISHED}"))
        labelled(folder, out)
        assert everything(out) == undisturbed, f"killed at line {line}"
        assert not list(out.rglob(f"*{outputs.UNFINISHED}"))
    assert unfinished >= 5  # kills in the middle of a file


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def doubled(file: Path) -> None:
    file.write_bytes(2 * file.read_bytes())


@pytest.mark.parametrize("harm", [Path.unlink, flipped, doubled])
@pytest.mark.parametrize("name", ["items/part-0", "items/part-1", "groups/part-0", "groups/part-3", write.SUMS])
def test_a_file_that_was_deleted_or_damaged_is_made_again(whole, tmp_path, name, harm):
    folder, undisturbed = whole
    out = tmp_path / "out"
    shutil.copytree(folder / "whole", out)
    harm(out / (name if name == write.SUMS else f"{name}.parquet"))
    labelled(folder, out)
    assert everything(out) == undisturbed


def test_folders_that_were_deleted_are_made_again(whole, tmp_path):
    folder, undisturbed = whole
    for number, gone in enumerate((["items"], ["groups"], ["items", "groups"])):
        out = tmp_path / str(number)
        shutil.copytree(folder / "whole", out)
        for name in gone:
            shutil.rmtree(out / name)
        labelled(folder, out)
        assert everything(out) == undisturbed


def test_rows_are_taken_in_one_piece_whatever_was_written_before(whole):
    figures = np.zeros(10, portions.ITEM)
    figures["row"] = np.arange(10)
    pieces = write.InOrder(iter([write.columns_of(figures[:4]), write.columns_of(figures[4:])]), portions.ITEM)
    taken = pieces.until(6)
    assert taken["row"].to_pylist() == list(range(6))
    assert taken["row"].num_chunks == 1
    assert pieces.until(10)["row"].to_pylist() == [6, 7, 8, 9]
    assert len(write.InOrder(iter(()), portions.GROUP).until(5)) == 0


@pytest.mark.parametrize(("n_bytes", "stage"), [(2_000, "work/sort "), (30_000, "")])
def test_a_file_that_the_disk_refuses_is_named_in_a_sentence(whole, tmp_path, n_bytes, stage):
    folder, undisturbed = whole
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        with pytest.raises(StorageError, match="cannot be written: the file is larger than the disk") as refused:
            labelled(folder, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(refused.value).startswith(f"{tmp_path / 'out'}/{stage}")
    labelled(folder, tmp_path / "out")
    assert everything(tmp_path / "out") == undisturbed
