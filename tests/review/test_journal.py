"""The journal: what was acknowledged is there, whatever happened, and nothing else is."""

import errno
import os
import stat

import pytest

from handful.errors import FileFormatError, StorageError
from handful.review import journal as journal_module
from handful.review.journal import ADDRESS_FILE, JOURNAL_FILE, LENGTH_FILE, opened, read_journal

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


def test_a_journal_of_a_later_version_says_so(tmp_path, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(journal_module, "VERSION", 2)
        with opened(tmp_path, ABOUT):
            pass
    with pytest.raises(FileFormatError, match="in format 2, and this handful reads 1; update handful"):
        events(tmp_path)


def test_cut_anywhere_it_has_all_whole_lines_and_goes_on(written):
    path = written / JOURNAL_FILE
    content = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        whole = max(sum(end <= cut for end in ends) - 1, 0)
        assert events(written) == EVENTS[:whole]
        with opened(written, ABOUT) as journal:
            assert journal.n_lost == len(EVENTS) - whole
            journal.append({"label": "bee"})
        with opened(written, ABOUT) as journal:
            assert journal.n_lost == 0
        (written / LENGTH_FILE).write_text(f"{1 + len(EVENTS)}\n")
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


def test_a_lost_journal_is_noticed_and_one_of_an_older_version_is_not_taken_for_cut(written):
    (written / LENGTH_FILE).unlink()
    with opened(written, ABOUT) as journal:
        assert (journal.events, journal.n_lost) == (EVENTS, 0)
        journal.append({"label": "bee"})
    (written / JOURNAL_FILE).unlink()
    with opened(written, ABOUT) as journal:
        assert (journal.events, journal.n_lost) == ([], len(EVENTS) + 1)
    for nonsense in (b"", b"many\n", b"\xff" * 50, b"-4"):
        (written / LENGTH_FILE).write_bytes(nonsense)
        with opened(written, ABOUT) as journal:
            assert journal.n_lost == 0


def test_a_second_start_says_where_the_review_is_open(written):
    with opened(written, ABOUT) as journal:
        journal.announce("http://127.0.0.1:80/?token=abc")
        with pytest.raises(StorageError, match=r"already open at http://127.0.0.1:80/\?token=abc; go on there"):
            events(written)
    assert events(written) == EVENTS
    (written / ADDRESS_FILE).write_text("of a process that was killed")
    with opened(written, ABOUT), pytest.raises(StorageError, match="another process"):
        events(written)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_only_the_owner_can_read_it(tmp_path):
    folder = tmp_path / "labels.csv.review"
    with opened(folder, ABOUT) as journal:
        journal.append(EVENTS[0])
        journal.announce("http://127.0.0.1:80")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    lock = modes.pop(".lock")
    assert modes == {folder.name: 0o700, JOURNAL_FILE: 0o600, LENGTH_FILE: 0o600, ADDRESS_FILE: 0o600}
    assert lock  # empty, and inside of the folder
    (folder / JOURNAL_FILE).chmod(0o644)  # an older version wrote it so
    events(folder)
    assert stat.S_IMODE((folder / JOURNAL_FILE).stat().st_mode) == 0o600


def test_what_is_no_journal_is_refused(tmp_path):
    (tmp_path / JOURNAL_FILE).write_text("label,certainty\nfox,1\n")
    with pytest.raises(FileFormatError, match="is damaged"), opened(tmp_path, ABOUT):
        pass
