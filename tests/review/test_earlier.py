"""Reviews of version 0.5 are taken over once, whole or not at all; the files in old_files are of the version itself."""

import hashlib
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile, is_catalogue_file
from handful.errors import FileFormatError
from handful.items import bring, import_labelled
from handful.review.earlier import read_review, take_over
from tests.kills_at_hand import PATIENCE, PROCESSES, start_server
from tests.old_files.opening import review_of, said_in

OLD = Path(__file__).parents[1] / "old_files" / "v0_5_1"
ROWS = np.eye(6, dtype=np.float32)
HASHES = [hashlib.sha256(row.tobytes()).hexdigest()[:16] for row in ROWS]
WHEN = "2026-01-05T10:00:00+00:00"
# Calls of the system that change files; SQLite has its own, so its transactions count too.
WRITES = ("replace", "unlink", "fsync", "open")
MOST_WRITES = 200


def journal(folder, *events, first=None, length=None):
    """Write the journal of a review beside labels.csv; return the labels."""
    kept = folder / "labels.csv.review"
    kept.mkdir(exist_ok=True)
    digest = ""
    lines = []
    for event in ({"handful_review": 1, "batch": "5d41"} if first is None else first, *events):
        text = json.dumps(event, separators=(",", ":"), sort_keys=True)
        digest = hashlib.sha256(f"{digest}{text}".encode()).hexdigest()
        lines.append(f"{digest[:16]} {text}\n")
    (kept / "journal.jsonl").write_text("".join(lines), encoding="utf-8")
    (kept / "journal.length").write_text(f"{length or len(lines)}\n", encoding="utf-8")
    return folder / "labels.csv"


def answer(items, label, kind="new", names=None):
    """Return the event of an answer about rows."""
    named = [[item, f"row {item}" if names is None else names[item], HASHES[item]] for item in items]
    said = {"kinds": [kind] * len(items), "labels": [label] * len(items), "was": [None] * len(items)}
    return {"step": "answer", "items": named, **said, "at": WHEN, "by": "ada"}


def brought(rows=ROWS):
    file = CatalogueFile.open()
    bring(file, "monday", rows)
    return file


def classes(file):
    return {item: one.label or one.kind for item, one in file.said.answers.items()}


def taken(file, labels):
    return take_over(read_review(labels), file, "monday", opens=None)


def test_there_is_none(tmp_path):
    assert read_review(tmp_path / "labels.csv") is None
    folder = tmp_path / "labels.csv.review"
    folder.mkdir()
    (folder / "journal.jsonl").write_bytes(b"half a li")
    assert read_review(tmp_path / "labels.csv") is None


def test_what_was_undone_or_dropped_is_left_out(tmp_path):
    events = [answer([0], "fox"), answer([1], "owl"), {"step": "undo"}, answer([2], "elk"), {"step": "drop", "at": 0}]
    file = brought()
    taken(file, journal(tmp_path, *events, {"step": "finished", "at": WHEN}))
    assert classes(file) == {3: "elk"}


def test_answers_are_taken_over_once_and_those_given_since_stay(tmp_path):
    file = brought()
    file.append("named", {"label": "dog", "batch": "monday"}, [EventItem(1)], person="bob")
    labels = journal(tmp_path, answer([0, 1, 2], "fox"))
    assert "The answers about 2 items in " in taken(file, labels)[0]
    assert classes(file) == {1: "dog", 2: "fox", 3: "fox"}
    revision = file.revision
    assert taken(file, labels) == []
    assert file.revision == revision
    # The old version went on.
    assert len(taken(file, journal(tmp_path, answer([0, 1, 2], "fox"), answer([0, 5], "elk")))) == 1
    assert classes(file) == {1: "dog", 2: "fox", 3: "fox", 6: "elk"}


def test_a_merge_renames_classes_of_its_batch_alone(tmp_path):
    merge = {"step": "merge", "names": ["fox", "red fox"], "at": WHEN, "by": "ada"}
    file = brought()
    taken(file, journal(tmp_path, answer([0, 1], "fox"), merge))
    assert classes(file) == {1: "red fox", 2: "red fox"}
    assert [event.kind for event in file.history.events] == ["arrived", "named", "renamed"]
    file = brought()
    import_labelled(file, (ROWS[3:4] + 1, ["fox"]), "examples")
    taken(file, journal(tmp_path, answer([0, 1], "fox"), merge))
    assert classes(file) == {1: "red fox", 2: "red fox", 7: "fox"}


def test_rows_that_shifted_are_found_by_their_contents(tmp_path):
    file = brought(ROWS[1:])
    notes = taken(file, journal(tmp_path, answer([0, 1], "fox"), answer([4], "owl")))
    assert classes(file) == {1: "fox", 4: "owl"}
    assert "; 1 other item of it is not in this batch as then. " in notes[0]


def test_a_review_of_other_items_says_so(tmp_path):
    notes = taken(brought(ROWS + 1), journal(tmp_path, answer([0], "fox")))
    assert "is about other items, so nothing of it was taken over" in notes[0]


def test_lines_that_were_lost_at_the_end_are_said(tmp_path):
    notes = taken(brought(), journal(tmp_path, answer([0], "fox"), length=4))
    assert notes[1] == "It had lost the last 2 lines of its journal: give these answers again."


def test_a_last_line_without_an_end_was_never_acknowledged(tmp_path):
    labels = journal(tmp_path, answer([0], "fox"))
    with (tmp_path / "labels.csv.review" / "journal.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('0123456789abcdef {"step":"un')
    file = brought()
    taken(file, labels)
    assert classes(file) == {1: "fox"}


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_damaged_line_is_refused_with_what_can_be_done(tmp_path, line):
    labels = journal(tmp_path, answer([0], "fox"), answer([1], "owl"))
    path = tmp_path / "labels.csv.review" / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = lines[line - 1].replace(b'"', b"'", 1)
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(FileFormatError, match=f"line {line} of .* is damaged; restore the file from a copy, cut it"):
        read_review(labels)


@pytest.mark.parametrize(
    "event",
    [
        {"step": "dance"},
        {"step": "drop", "at": 3},
        {"step": "answer", "items": [["a", "b", "c"]]},
        {"step": "answer", "items": 7},
        {"no": "step"},
        answer([0], None),
        answer([0], " "),
        answer([0], "fox", kind="maybe"),
        {**answer([0], "fox"), "was": []},
        {"step": "merge", "names": 7},
    ],
)
def test_what_is_no_event_of_a_review_is_refused(tmp_path, event):
    file = brought()
    with pytest.raises(FileFormatError, match="has an event that is none of a review"):
        taken(file, journal(tmp_path, event))
    assert not file.said.answers


@pytest.mark.parametrize("first", [{"handful_review": 2}, {"other": 1}])
def test_another_format_is_refused(tmp_path, first):
    with pytest.raises(FileFormatError, match="is no journal of a review of version"):
        read_review(journal(tmp_path, first=first))


# -- kills -------------------------------------------------------------------------------------------------------------


def begins(place, batch, catalogue):
    """Open the review of a batch, beside a catalogue or alone."""
    os.chdir(place)
    return review_of(catalogue and Path(catalogue), Path(batch), f"{Path(batch).stem}.labels.csv")


def killed(place, batch, catalogue, number):
    """Open a review in a process that is killed before the write of this number."""
    left = [number]

    def counted(call):
        def before(*given, **more):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **more)

        return before

    for name in WRITES:
        setattr(os, name, counted(getattr(os, name)))
    CatalogueFile.writing = counted(CatalogueFile.writing)
    CatalogueFile.close = counted(CatalogueFile.close)
    with begins(place, batch, catalogue):
        pass
    os._exit(0)


@pytest.mark.parametrize(
    ("batch", "catalogue", "file", "n_said"),
    [("friday.npz", None, "friday", 12), ("monday.npz", "kinds.handful", "kinds", 12)],
)
def test_whenever_it_is_killed_the_same_command_goes_on(tmp_path, monkeypatch, batch, catalogue, file, n_said):
    pytest.importorskip("resource", reason="processes are killed as Unix does it")
    start_server("tests.review.test_earlier")
    names = [f"{file}.handful", batch, f"{Path(batch).stem}.labels.csv.review"]
    before = (OLD / f"{file}.handful").read_bytes()
    expected = None
    for number in range(MOST_WRITES):
        place = tmp_path / f"{number}"
        place.mkdir()
        for name in names:
            (shutil.copytree if (OLD / name).is_dir() else shutil.copy)(OLD / name, place / name)
        process = PROCESSES.Process(target=killed, args=(place, batch, catalogue, number))
        process.start()
        process.join(PATIENCE)
        path = place / f"{file}.handful"
        if is_catalogue_file(path):
            assert (place / f"{file}.old.handful").read_bytes() == before
        else:
            assert path.read_bytes() == before
        monkeypatch.chdir(place)
        with begins(place, batch, catalogue) as review:
            found = said_in(review), review.session.first.codes.tolist(), sorted(review.session.file.said.classes)
            n_answers = len(review.session.file.said.answers)
        expected = expected or (found, n_answers)
        assert (found, n_answers) == expected, f"killed before write {number}"
        assert len(found[0]) == n_said
        assert not list(place.glob(".*.partial*"))
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert 10 < number < MOST_WRITES - 1
