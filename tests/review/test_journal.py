"""The journal: what was acknowledged is there, whatever happened, and nothing else is."""

import errno
import os

import pytest

from handful.errors import FileFormatError, StorageError
from handful.review import journal as journal_module
from handful.review.journal import JOURNAL_FILE, opened, read_journal

ABOUT = {"batch": "5d41"}
EVENTS = [{"label": "fox"}, {"label": "Käse \u2028\n"}, {"step": "undo"}]


@pytest.fixture
def written(tmp_path):
    with opened(tmp_path, ABOUT) as journal:
        for event in EVENTS:
            journal.append(event)
    return tmp_path


def events(folder):
    with opened(folder, ABOUT) as journal:
        return list(journal.events)


def test_it_goes_on_where_it_ended(written):
    with opened(written, ABOUT) as journal:
        assert journal.events == EVENTS
        journal.append({"label": "bee"})
    assert events(written) == [*EVENTS, {"label": "bee"}]


def test_cut_anywhere_it_has_all_whole_lines_and_goes_on(written):
    path = written / JOURNAL_FILE
    content = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        whole = max(sum(end <= cut for end in ends) - 1, 0)
        assert events(written) == EVENTS[:whole]
        with opened(written, ABOUT) as journal:
            journal.append({"label": "bee"})
        assert events(written) == [*EVENTS[:whole], {"label": "bee"}]


def test_every_flip_is_noticed(written):
    path = written / JOURNAL_FILE
    content = path.read_bytes()
    noticed = 0
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1
        path.write_bytes(bytes(flipped))
        try:
            found = read_journal(path)[:2]
        except FileFormatError:
            noticed += 1
        else:  # the last end of a line is gone, so that line was never acknowledged
            assert found == (ABOUT, EVENTS[:-1])
            assert at == len(content) - 1
    assert noticed == len(content) - 1


def test_lines_cannot_change_places(written):
    path = written / JOURNAL_FILE
    first, one, other, *rest = path.read_bytes().splitlines(keepends=True)
    for lines in ([first, other, one, *rest], [first, other, *rest], [first, one, one, other, *rest]):
        path.write_bytes(b"".join(lines))
        with pytest.raises(FileFormatError, match="is damaged"):
            events(written)


def test_a_full_disk_changes_nothing_and_is_said(written, monkeypatch):
    def full(handle, content):
        os.write(handle, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    before = (written / JOURNAL_FILE).read_bytes()
    with opened(written, ABOUT) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(journal_module, "_write_all", full)
            with pytest.raises(StorageError, match="the disk is full"):
                journal.append({"label": "bee"})
        assert (written / JOURNAL_FILE).read_bytes() == before
        assert journal.events == EVENTS
        journal.append({"label": "bee"})  # there is room again
    assert events(written) == [*EVENTS, {"label": "bee"}]


def test_a_sync_that_fails_is_not_acknowledged(written, monkeypatch):
    before = (written / JOURNAL_FILE).read_bytes()
    with opened(written, ABOUT) as journal, monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
        with pytest.raises(StorageError, match="the disk reports an error"):
            journal.append({"label": "bee"})
    assert (written / JOURNAL_FILE).read_bytes() == before


def test_one_review_at_a_time_and_of_one_batch(written):
    with opened(written, ABOUT), pytest.raises(StorageError, match="another process"), opened(written, ABOUT):
        pass
    with pytest.raises(FileFormatError, match="of another batch"), opened(written, {"batch": "other"}):
        pass


def test_what_is_no_journal_is_refused(tmp_path):
    (tmp_path / JOURNAL_FILE).write_text("label,certainty\nfox,1\n")
    with pytest.raises(FileFormatError, match="is damaged"), opened(tmp_path, ABOUT):
        pass
