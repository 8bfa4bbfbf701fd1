"""The file: what was acknowledged is there, whatever happened to process, disk and file, and nothing else is.

`HANDFUL_KILLS=1000`, `HANDFUL_ANSWERS=10000` and `HANDFUL_MUTATED=3000` ask for as many in place of some.
"""

import os
import random
import shutil
import signal
import sqlite3
import stat
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from handful.catalogue import file as file_module
from handful.catalogue.events import Event
from handful.catalogue.file import Arrival, CatalogueFile, ItemContent
from handful.catalogue.join import join
from handful.catalogue.said import Said
from handful.catalogue.vectors import GIVEN, EncoderId
from handful.errors import BehindError, FileFormatError, HandfulError, OptionError, StorageError
from tests.catalogue.failing_disk import full_from, kill_at, needs_library
from tests.catalogue.people import NAMES, by_key, copied, items_of, photograph, photographs, says_something
from tests.catalogue.processes import Child
from tests.catalogue.reference import reference, state_of
from tests.hostile_at_hand import grown

N_KILLS = int(os.environ.get("HANDFUL_KILLS", "40"))
N_ANSWERS = int(os.environ.get("HANDFUL_ANSWERS", "200"))
N_MUTATED = int(os.environ.get("HANDFUL_MUTATED", "300"))
MOST_MEGABYTES = 300
ENCODER = EncoderId("efficientnet-lite0", "1", "5d41")

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has neither forks nor these rights")


@pytest.fixture
def written(tmp_path):
    """A file with something of everything."""
    path = tmp_path / "a.handful"
    with CatalogueFile.open(path) as catalogue:
        catalogue.arrive("monday", photographs(6))
        catalogue.arrive("tuesday", [Arrival("1", ItemContent(b"t", "text", "hello"), {"site": "A", "n": 3})])
        catalogue.put_vectors(ENCODER, [1, 2, 3], np.random.default_rng(0).normal(size=(3, 8)))
        catalogue.put_vectors(GIVEN, [4, 5], np.random.default_rng(1).normal(size=(2, 8)))
        catalogue.cache("head", b"1234")
        rng = random.Random(0)
        for _ in range(20):
            says_something(catalogue, rng)
    return path


def state(path):
    with CatalogueFile.open(path, create=False) as catalogue:
        return state_of(catalogue.said)


# -- what a file does --------------------------------------------------------------------------------------------------


def test_it_is_there_again_when_it_is_opened_again(written):
    with CatalogueFile.open(written) as catalogue:
        assert state_of(catalogue.said) == reference(catalogue.history.events)
        assert catalogue.cached("head") == b"1234"
        assert catalogue.cached("other") is None
        (row,) = [row for row in catalogue.rows(list(dict(catalogue.keys()))) if row.kind == "text"]
        assert (row.text, row.columns, row.batch) == ("hello", {"site": "A", "n": 3}, "tuesday")
        with pytest.raises(OptionError, match="has no item 999"):
            catalogue.rows([1, 999])
    assert [path.name for path in written.parent.iterdir()] == [written.name]


@posix
def test_only_the_owner_can_read_a_new_file(tmp_path):
    before = os.umask(0)
    try:
        CatalogueFile.open(tmp_path / "a.handful").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.handful").stat().st_mode) == 0o600


def test_an_event_that_no_file_can_keep_is_not_said(written):
    with CatalogueFile.open(written) as catalogue:
        before = catalogue.revision
        for kind, about, items in (
            ("named", {}, ()),
            ("named", {"label": 7}, items_of(1)),
            ("named", {"label": "\ud800"}, items_of(1)),
            ("open", {"note": float("nan")}, items_of(1)),
            ("forgotten", {}, ()),
            ("named", {"label": "fox"}, items_of(999)),
            ("named", {"label": "fox"}, items_of(1, 1)),
            ("taken_back", {"event": 3}, ()),
        ):
            with pytest.raises(HandfulError):
                catalogue.append(kind, about, items)
        with pytest.raises(HandfulError):
            catalogue.append("taken_back", {"event": "of another catalogue"})
        with pytest.raises(OptionError, match="only what a person said"):
            catalogue.take_back(catalogue.history.events[0].event)
        with pytest.raises(OptionError, match="only what a person said"):
            catalogue.take_back("of another catalogue")
        with pytest.raises(OptionError, match="at the same place"):
            catalogue.arrive("monday", [photograph("a", "x.jpg"), photograph("b", "x.jpg")])
        with pytest.raises(OptionError, match="half a character"):
            catalogue.arrive("monday", [photograph("a", "gr\udcfcn.jpg")])
        assert catalogue.revision == before
        assert state_of(catalogue.said) == reference(catalogue.history.events)
    assert state(written)["places"].keys() == {"monday", "tuesday"}


def test_what_settling_refuses_was_not_said(written):
    with CatalogueFile.open(written) as catalogue:
        before = state_of(catalogue.said)
        for error in (OptionError("two classes are needed"), BehindError("behind"), KeyboardInterrupt()):

            def settles(error=error):
                raise error

            with pytest.raises(type(error)):
                catalogue.append("named", {"label": "kraken"}, items_of(1), settles=settles)
            assert state_of(catalogue.said) == before
        catalogue.append("named", {"label": "kraken"}, items_of(1))
    assert state(written)["answers"][1][1] == "kraken"


def test_who_is_behind_is_told_and_nothing_is_written(written):
    with CatalogueFile.open(written) as mine, CatalogueFile.open(written) as yours:
        seen = mine.revision
        yours.append("named", {"label": "fox"}, items_of(1), revision=seen, person="Ana")
        with pytest.raises(BehindError, match="said since this was shown"):
            mine.append("named", {"label": "wolf"}, items_of(1), revision=seen)
        assert mine.said.answers[1].label == "fox"  # and what happened since is known
        mine.append("named", {"label": "wolf"}, items_of(1), revision=mine.revision)
        (event,) = yours.refresh()
        assert event.about["label"] == "wolf"
        assert yours.refresh() == []
        assert state_of(mine.said) == state_of(yours.said)


# -- at once -----------------------------------------------------------------------------------------------------------


def answers(say, path, person, n):
    rng = random.Random(person)
    with CatalogueFile.open(path) as catalogue:
        for _ in range(n):
            while True:
                try:
                    said = catalogue.append(
                        "named",
                        {"label": rng.choice(NAMES)},
                        items_of(rng.randint(1, 6)),
                        revision=catalogue.revision,
                        person=person,
                    )
                except BehindError:
                    continue
                break
            say(said.event)


@posix
def test_two_processes_lose_no_answer(tmp_path):
    path = tmp_path / "a.handful"
    with CatalogueFile.open(path) as catalogue:
        catalogue.arrive("monday", photographs(6))
        children = [Child(answers, path, person, N_ANSWERS // 2) for person in ("Ana", "Ben")]
        acknowledged = []
        for child in children:
            ended = child.ended()
            assert ended.code == 0
            acknowledged += ended.lines
        catalogue.refresh()
        found = catalogue.history.events[1:]
        assert len(found) == len(acknowledged) == N_ANSWERS // 2 * 2
        assert {event.event for event in found} == set(acknowledged)
        last = {event.items[0].item: event.about["label"] for event in found}
        assert {item: one.label for item, one in catalogue.said.answers.items()} == last
        assert not catalogue.said.disputed
        with CatalogueFile.open() as alone:  # the same, said by one process
            alone.arrive("monday", photographs(6))
            for event in found:
                alone.append(event.kind, event.about, event.items)
            assert {item: one.label for item, one in alone.said.answers.items()} == last
            assert alone.said.classes == catalogue.said.classes
        with CatalogueFile.open(path) as again:
            assert state_of(again.said) == state_of(catalogue.said)


def test_threads_of_one_process_take_turns(written):
    with CatalogueFile.open(written) as catalogue:
        before = len(catalogue.history.events)
        threads = [
            threading.Thread(
                target=lambda k=k: [catalogue.append("named", {"label": f"{k}"}, items_of(1)) for _ in range(20)]
            )
            for k in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(catalogue.history.events) == before + 80
        now = state_of(catalogue.said)
    assert state(written) == now


def makes(say, path):
    CatalogueFile.open(path).close()
    say("made")


@posix
def test_two_processes_make_one_file(tmp_path):
    for number in range(5):
        path = tmp_path / f"{number}.handful"
        children = [Child(makes, path) for _ in range(3)]
        assert [child.ended() for child in children] == [(["made"], 0)] * 3
        CatalogueFile.open(path, create=False).close()


# -- killed ------------------------------------------------------------------------------------------------------------


def works(say, path, copy, seed):
    """Say things at random for as long as this process lives, and acknowledge each."""
    rng = random.Random(seed)
    with CatalogueFile.open(path) as catalogue:
        say("open")
        while True:
            chance = rng.random()
            if chance < 0.1:
                content = rng.randint(1, 6)
                catalogue.put_vectors(ENCODER._replace(weights=str(seed)), [content], np.ones((1, 300)))
                say(f"vector {seed} {content}")
            elif chance < 0.15:
                with CatalogueFile.open(copy) as other:
                    says_something(other, rng)
                    join(catalogue, other)
                    say(f"event {other.history.head[0]}")
            else:
                says_something(catalogue, rng)
                say(f"event {catalogue.history.head[0]}")


@posix
def test_a_process_that_is_killed_at_any_moment_loses_nothing(tmp_path):
    path = tmp_path / "a.handful"
    copy = tmp_path / "copy.handful"
    rng = random.Random(1)
    n_events = n_writing = 0
    for number in range(N_KILLS):
        if number % 20 == 0:  # a new one: joins make it long
            for place in tmp_path.iterdir():  # a journal belongs to the file that it was beside
                place.unlink()
            with CatalogueFile.open(path) as catalogue:
                catalogue.arrive("monday", photographs(6))
            shutil.copyfile(path, copy)
            acknowledged = set()
        child = Child(works, path, copy, number)
        heard = child.heard()
        time.sleep(rng.random() * 0.05)
        child.signal(signal.SIGKILL)
        ended = child.ended(heard)
        assert ended.code == -signal.SIGKILL
        n_writing += (tmp_path / "a.handful-journal").exists()
        acknowledged |= set(ended.lines[1:])
        with CatalogueFile.open(path) as catalogue:
            for line in acknowledged:
                what, *about = line.split()
                if what == "event":
                    assert about[0] in catalogue.history
                else:
                    encoder = ENCODER._replace(weights=about[0])
                    assert list(catalogue.vectors(encoder, [int(about[1])])) == [int(about[1])]
            catalogue.append("known", {"batch": "monday", "options": {}})
            if number % 20 == 19:
                assert state_of(catalogue.said) == reference(catalogue.history.events)
        n_events += len(ended.lines) - 1
    print(f"{N_KILLS} kills, {n_writing} of them in the middle of a transaction; {n_events} acknowledged")
    assert n_events > 0  # how many depends on the machine


def appends(path):
    with CatalogueFile.open(path) as catalogue:
        catalogue.append("named", {"label": "kraken"}, items_of(1, 2, 3))


def arrives(path):
    with CatalogueFile.open(path) as catalogue:
        catalogue.arrive("monday", [photograph("new"), photograph("0", "elsewhere.jpg")])


def puts_vectors(path):
    with CatalogueFile.open(path) as catalogue:
        catalogue.put_vectors(ENCODER._replace(name="new"), [1, 2, 3], np.ones((3, 9000)))


def takes_back(path):
    with CatalogueFile.open(path) as catalogue:
        catalogue.take_back(next(one.event for one in catalogue.history.events if one.kind == "named"))


def joins(path):
    with CatalogueFile.open(path) as catalogue, CatalogueFile.open(path.with_suffix(".copy")) as copy:
        join(catalogue, copy)


def is_made(path):
    CatalogueFile.open(path).close()


DONE = {"appends": appends, "arrives": arrives, "puts_vectors": puts_vectors, "takes_back": takes_back, "joins": joins}


def whole(path):
    """How much a file has of everything."""
    with CatalogueFile.open(path, create=False) as catalogue:
        kinds = [event.kind for event in catalogue.history.events]
        n_vectors = {encoder.name: len(catalogue.vectors(encoder, range(9))) for encoder in catalogue.encoders}
        return kinds, len(catalogue.keys()), n_vectors


def killed_while(say, work, path, step):
    kill_at(step)
    work(path)


@posix
@needs_library
@pytest.mark.parametrize("name", DONE)
def test_a_process_that_is_killed_before_any_write_leaves_all_or_nothing(written, name, tmp_path):
    path = tmp_path / "b.handful"
    with copied(CatalogueFile.open(written), tmp_path / "b.copy") as copy:
        copy.arrive("monday", [photograph("of the copy")])
        copy.put_vectors(ENCODER, [4], np.ones((1, 8)))
        copy.append("named", {"label": "wolf"}, items_of(1, 2))
    before = whole(written)
    shutil.copyfile(written, path)
    DONE[name](path)
    after = whole(path)
    assert after != before
    step = 0
    found = []
    while True:
        shutil.copyfile(written, path)
        ended = Child(killed_while, DONE[name], path, step).ended()
        found.append(whole(path))
        assert found[-1] in (before, after)
        with CatalogueFile.open(path) as catalogue:
            catalogue.append("named", {"label": "fox"}, items_of(1))
        if ended.code == 0:
            break
        assert ended.code == -signal.SIGKILL
        step += 1
    print(f"{name}: killed before each of {step} writes")
    assert step > 5
    assert before in found
    assert found == sorted(found, key=lambda one: one == after)  # all before a write, and nothing before that


@posix
@needs_library
def test_a_process_that_is_killed_while_it_makes_a_file_locks_nobody_out(tmp_path):
    path = tmp_path / "a.handful"
    step = 0
    while True:
        for place in tmp_path.iterdir():
            place.unlink()
        ended = Child(killed_while, is_made, path, step).ended()
        with CatalogueFile.open(path) as catalogue:
            catalogue.arrive("monday", photographs(1))
        assert state(path)["places"] == {"monday": {1: "0.jpg"}}
        if ended.code == 0:
            break
        step += 1
    assert step > 10


# -- a disk that is full, gone, read-only or locked --------------------------------------------------------------------


def full_while(say, work, path, step):
    full = True
    full_from(step, lambda: full)
    try:
        work(path)
        say("done")
    except StorageError as error:
        full = False
        say(str(error))
        work(path)  # there is room again


@posix
@needs_library
@pytest.mark.parametrize("name", DONE)
def test_a_disk_that_is_full_at_any_write_changes_nothing_and_says_so(written, name, tmp_path):
    path = tmp_path / "b.handful"
    with copied(CatalogueFile.open(written), tmp_path / "b.copy") as copy:
        copy.append("named", {"label": "wolf"}, items_of(1, 2))
    shutil.copyfile(written, path)
    DONE[name](path)
    after = whole(path)
    for step in range(200):
        shutil.copyfile(written, path)
        (line,), code = Child(full_while, DONE[name], path, step).ended()
        assert code == 0
        assert whole(path) == after
        if line == "done":
            break
        assert "is full; make room, and say it again" in line
    assert step > 5


def test_a_catalogue_goes_on_when_there_is_room_again(written):
    with CatalogueFile.open(written) as catalogue:
        before = state_of(catalogue.said)
        catalogue._connection.execute("PRAGMA max_page_count = 1")
        large = {"batch": "monday", "options": {"note": "x" * 100_000}}
        with pytest.raises(StorageError, match=r"the disk of .* is full; make room, and say it again"):
            catalogue.append("known", large)
        assert state_of(catalogue.said) == before
        catalogue._connection.execute("PRAGMA max_page_count = 100000")
        catalogue.append("named", {"label": "fox"}, items_of(1))
        after = state_of(catalogue.said)
    assert state(written) == after


def reads_only(say, path, user):
    if user is not None:
        os.setuid(user)
    with CatalogueFile.open(path) as catalogue:
        say(f"{catalogue.writable} {len(catalogue.history.events)}")
        for act in (
            lambda: catalogue.append("named", {"label": "fox"}, items_of(1)),
            lambda: catalogue.arrive("monday", photographs(1)),
            lambda: CatalogueFile.open(path.with_name("new.handful")),
        ):
            try:
                act()
                say("written")
            except HandfulError as error:
                say(str(error))


@posix
@pytest.mark.parametrize("only", ["file", "folder"])
def test_a_file_or_folder_that_cannot_be_written_is_read(written, only):
    n_events = len(CatalogueFile.open(written).history.events)
    nobody = 65534 if os.getuid() == 0 else None  # rights do not bind root
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = shutil.copyfile(written, folder / "a.handful")
        path.chmod(0o444 if only == "file" else 0o666)
        folder.chmod(0o755 if only == "file" and nobody is not None else 0o555)
        try:
            lines, code = Child(reads_only, path, nobody).ended()
        finally:
            folder.chmod(0o755)
        assert code == 0
        assert lines[0] == f"False {n_events}"
        assert all("cannot be written; make it and its folder writable" in line for line in lines[1:3])
        assert "new.handful" in lines[3]


def test_a_file_that_another_process_writes_says_so(written, monkeypatch):
    monkeypatch.setattr(file_module, "PATIENCE", 0.05)
    other = sqlite3.connect(written, isolation_level=None)
    with CatalogueFile.open(written) as catalogue:
        before = state_of(catalogue.said)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match=r"another process is writing .*; try again when it has finished"):
            catalogue.append("named", {"label": "kraken"}, items_of(1))
        assert state_of(catalogue.said) == before
        catalogue.refresh()  # it can be read meanwhile
        other.execute("ROLLBACK")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="another process is writing"):
            CatalogueFile.open(written)
        with pytest.raises(StorageError, match="another process is writing"):
            catalogue.refresh()
        other.execute("ROLLBACK")
        catalogue.append("named", {"label": "kraken"}, items_of(1))
        # One who reads keeps the writer waiting at the very end.
        reader = sqlite3.connect(written, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM events").fetchone()
        before = state_of(catalogue.said)
        with pytest.raises(StorageError, match="another process is writing"):
            catalogue.append("named", {"label": "fox"}, items_of(1))
        assert state_of(catalogue.said) == before
        reader.close()
        catalogue.append("named", {"label": "fox"}, items_of(1))
        after = state_of(catalogue.said)
    other.close()
    assert state(written) == after


@posix
@pytest.mark.parametrize("how", ["gone", "replaced", "cut", "folder gone"])
def test_a_file_that_goes_away_takes_no_answer(written, how, tmp_path):
    folder = tmp_path / "drive"
    folder.mkdir()
    path = shutil.copyfile(written, folder / "a.handful")
    with CatalogueFile.open(path) as catalogue:
        if how == "gone":
            path.unlink()
        elif how == "replaced":
            os.replace(shutil.copyfile(written, folder / "other"), path)
        elif how == "cut":
            os.truncate(path, path.stat().st_size // 2)
        else:
            shutil.rmtree(folder)
        for _ in range(2):
            with pytest.raises(HandfulError) as raised:
                catalogue.append("named", {"label": "kraken"}, items_of(1))
            assert str(path) in str(raised.value)
    if how == "replaced":
        assert state(path) == state(written)


def test_what_is_not_there_or_no_catalogue_is_named(tmp_path):
    (tmp_path / "text.handful").write_text("label,certainty\nfox,1\n" * 100)
    (tmp_path / "empty.handful").touch()
    sqlite3.connect(tmp_path / "other.handful").execute("CREATE TABLE a (b)").connection.close()
    for name, sentence in (
        ("none.handful", "there is no catalogue"),
        ("", "there is no catalogue"),
        ("text.handful", "is damaged, or not a catalogue"),
        ("empty.handful", "is not a catalogue"),
        ("other.handful", "is not a catalogue"),
    ):
        with pytest.raises(HandfulError, match=sentence):
            CatalogueFile.open(tmp_path / name, create=False)
    with pytest.raises(FileFormatError, match="not a catalogue"):
        CatalogueFile.open(tmp_path / "text.handful")
    with pytest.raises(FileFormatError, match="not a catalogue"):
        CatalogueFile.open(tmp_path / "other.handful")
    with pytest.raises(StorageError):
        CatalogueFile.open(tmp_path / "nowhere" / "a.handful")
    assert (tmp_path / "text.handful").read_text().startswith("label,")


# -- copies of a file that is written ----------------------------------------------------------------------------------


@posix
def test_a_copy_made_while_the_file_is_written_opens_or_is_refused(written, tmp_path):
    copy = shutil.copyfile(written, tmp_path / "copy.handful")
    child = Child(works, written, copy, 3)
    heard = child.heard()
    n_opened = 0
    refused = set()
    for number in range(40):
        place = tmp_path / f"{number}.handful"
        place.write_bytes(written.read_bytes())
        try:
            with CatalogueFile.open(place) as catalogue:
                found = state_of(catalogue.said)
                assert found == state_of(Said(catalogue.history))
                n_opened += 1
        except HandfulError as error:
            refused.add(str(error))
        place.unlink()
    child.signal(signal.SIGKILL)
    ended = child.ended(heard)
    assert n_opened
    assert all("restore it from a copy" in sentence for sentence in refused)
    with CatalogueFile.open(written) as catalogue:
        for line in ended.lines[1:]:
            assert line.startswith("vector") or line.split()[1] in catalogue.history


def test_a_copy_that_is_cut_anywhere_is_refused(written, tmp_path):
    content = written.read_bytes()
    rng = random.Random(0)
    place = tmp_path / "cut.handful"
    for cut in [15, 16, 50, 99, 100, 511, 512, *(rng.randrange(len(content)) for _ in range(60))]:
        place.write_bytes(content[:cut])
        with pytest.raises(FileFormatError, match=r"restore it from a copy|not a catalogue"):
            CatalogueFile.open(place)
        assert place.read_bytes() == content[:cut]


# -- a stranger's file -------------------------------------------------------------------------------------------------


def use(path):
    """Do everything with a file; return what it says, which must be what its events say."""
    with CatalogueFile.open(path) as catalogue, CatalogueFile.open() as mine:
        assert state_of(catalogue.said) == reference(catalogue.history.events)
        items = list(dict(catalogue.keys()))
        rows = catalogue.rows(items)
        for encoder in catalogue.encoders:
            vectors = catalogue.vectors(encoder, [row.content for row in rows])
            assert all(np.isfinite(vector).all() for vector in vectors.values())
        mine.arrive("monday", photographs(3))
        mine.append("named", {"label": "fox"}, items_of(1))
        join(mine, catalogue)
        join(catalogue, mine)
        assert by_key(mine) == by_key(catalogue)
        catalogue.append("named", {"label": "fox"}, items_of(*items[:1]))
        catalogue.arrive("monday", photographs(2))
    return "right"


def outcome(path):
    begun = time.process_time()
    try:
        found = use(path)
    except HandfulError as error:
        found = str(error)
        assert "\n" not in found
        assert found
    assert time.process_time() - begun < 10
    return found


def mutated(content, rng):
    """A file with some bytes flipped, lost, new, or of another place."""
    kind = rng.randrange(6)
    at = rng.randrange(len(content))
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + rng.randbytes(rng.randint(1, 40)) + content[at:]
    if kind == 2:
        return content[:at] + content[at + rng.randint(1, 40) :]
    found = bytearray(content)
    if kind == 3:
        other = rng.randrange(len(content))
        n_bytes = rng.randint(1, 200)
        found[at : at + n_bytes] = content[other : other + n_bytes]
        return bytes(found[: len(content)])
    used = [place for place, byte in enumerate(content) if byte]  # most of a page is empty
    for _ in range(rng.choice((1, 1, 3, 30))):
        found[rng.choice(used)] = rng.randrange(256)
    return bytes(found)


@posix
def test_mutated_files_are_refused_with_a_sentence_or_say_what_their_events_say(written, tmp_path):
    content = written.read_bytes()
    place = tmp_path / "mutated.handful"

    def try_all(path):
        found = {}
        for seed in range(N_MUTATED):
            for left in place.parent.glob("mutated.handful*"):
                left.unlink()
            place.write_bytes(mutated(content, random.Random(seed)))
            try:
                said = outcome(place)
            except Exception as error:
                said = f"seed {seed}: {type(error).__name__}: {error}"
                (tmp_path / f"failed{seed}").write_bytes(b"")
            found[seed] = said
        wrong = [said for said in found.values() if said.startswith("seed")]
        return wrong, sum(said == "right" for said in found.values())

    said, megabytes = grown(try_all, written)
    print(said, f"{megabytes:.0f} MB")
    assert said.startswith("returned ([], ")
    assert megabytes < MOST_MEGABYTES


DEEP = "[" * 100_000 + "]" * 100_000
EVENT = (
    "INSERT INTO events SELECT 9999, '{}', 1 + max(revision), json_array((SELECT event FROM events ORDER BY revision "
    "DESC, event DESC LIMIT 1)), '', '', '{}', '{}' FROM events"
)


def event(kind, about, name="new"):
    """A statement that appends an event."""
    return EVENT.format(name, kind, about.replace("'", "''"))


REFUSED = {
    "a further table": "CREATE TABLE more (a)",
    "a view": "CREATE VIEW more AS SELECT * FROM events",
    "a trigger": "CREATE TRIGGER more AFTER INSERT ON events BEGIN DELETE FROM items; END",
    "an index": "CREATE INDEX more ON events (kind)",
    "another column": "ALTER TABLE items ADD COLUMN more TEXT",
    "a table that is missing": "DROP TABLE caches",
    "a table of another name": "ALTER TABLE caches RENAME TO cache",
    "statistics": "ANALYZE",
    "another application": "PRAGMA application_id = 7",
    "a later version": "PRAGMA user_version = 2",
    "an earlier version": "PRAGMA user_version = 0",
    "a vector of another length": "UPDATE vectors SET numbers = x'00' WHERE content = 1",
    "a vector of no length": "UPDATE vectors SET numbers = x''",
    "an infinite number": f"UPDATE vectors SET numbers = x'0000807f{'00' * 28}' WHERE content = 4",
    "a number that is none": f"UPDATE vectors SET numbers = x'0000c07f{'00' * 16}' WHERE content = 1",
    "an encoder of other bits": "UPDATE encoders SET bits = 8",
    "an encoder without numbers": "UPDATE encoders SET dim = 0",
    "an encoder of negative size": "UPDATE encoders SET dim = -8",
    "an encoder of huge size": "UPDATE encoders SET dim = 9223372036854775807",
    "an item that is not there": "UPDATE event_items SET item = 999 WHERE item = 1",
    "an event that is not there": "UPDATE event_items SET number = 999 WHERE number = 1",
    "a content that is not there": "UPDATE items SET content = 999 WHERE item = 1",
    "a kind that nobody knows": event("forgotten", "{}"),
    "no label": event("named", "{}"),
    "a label that is a number": event("named", '{"label": 7}'),
    "a label that is null": event("removed", '{"label": null}'),
    "a new name that is a list": event("renamed", '{"label": "fox", "into": ["a"]}'),
    "no batch": event("arrived", "{}"),
    "a batch that is a number": event("gone", '{"batch": 3}'),
    "nothing that is known": event("known", '{"batch": "monday"}'),
    "known as a list": event("known", '{"batch": "monday", "options": []}'),
    "taken back, and nothing": event("taken_back", "{}"),
    "taken back what is not there": event("taken_back", '{"event": "nothing"}'),
    "taken back itself": event("taken_back", '{"event": "new"}'),
    "no JSON": event("open", "{"),
    "a list": event("open", "[]"),
    "a number": event("open", "7"),
    "deep nesting": event("open", f'{{"a": {DEEP}}}'),
    "nesting that Python reads": event("open", f'{{"a": {"[" * 500 + "]" * 500}}}'),
    "a huge number": event("open", '{"a": 1e999}'),
    "a huge whole number": event("open", f'{{"a": {"9" * 100_000}}}'),
    "not a number": event("open", '{"a": NaN}'),
    "infinity": event("open", '{"a": -Infinity}'),
    "half a character": event("named", '{"label": "\\ud800"}'),
    "after nothing": "UPDATE events SET after = '[\"nothing\"]' WHERE revision = 5",
    "after itself": "UPDATE events SET after = json_array(event) WHERE revision = 5",
    "after what comes after it": (
        "UPDATE events SET after = json_array((SELECT event FROM events WHERE revision = 7)) WHERE revision = 5"
    ),
    "after a number": "UPDATE events SET after = '[7]' WHERE revision = 5",
    "after a list": "UPDATE events SET after = '[[\"a\"]]' WHERE revision = 5",
    "after no list": "UPDATE events SET after = '{}' WHERE revision = 5",
    "after no JSON": "UPDATE events SET after = 'first' WHERE revision = 5",
    "a huge revision": "UPDATE events SET revision = 9223372036854775807 WHERE revision = 5",
    "a revision of another": "UPDATE events SET revision = 4 WHERE revision = 5",
    "bytes that are no text": "UPDATE events SET about = CAST(x'7b22ff227d' AS TEXT) WHERE revision = 5",
    "columns that are no JSON": "UPDATE items SET columns = '{' WHERE item = 1",
    "columns that are a list": "UPDATE items SET columns = '[]' WHERE item = 1",
    "columns that are deep": f"UPDATE items SET columns = '{DEEP}' WHERE item = 1",
}
RIGHT = {
    "an event more": event("named", '{"label": "fox", "later": 3}'),
    "a name with all signs": event("named", '{"label": "a\\u0000\\u202e\\n"}', "a\x1b[31m\n"),
    "an event that takes one back": event("removed", '{"label": "x"}'),
    "a risk that is infinite": "UPDATE event_items SET risk = 9e999",
    "an item without a place": "UPDATE event_items SET place = NULL",
    "a time that is none": "UPDATE events SET time = 'yesterday'",
    "columns with every number": "UPDATE items SET columns = '{\"a\": 1e308}' WHERE item = 1",
    "a cache": "UPDATE caches SET value = zeroblob(1000)",
    "no id": "DELETE FROM about",
}


def changed(path, statement):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_handful_writes_is_refused(written, name):
    changed(written, REFUSED[name])
    assert outcome(written) != "right"


@pytest.mark.parametrize("name", RIGHT)
def test_what_looks_odd_and_is_allowed(written, name):
    changed(written, RIGHT[name])
    assert outcome(written) == "right"


def test_a_table_that_only_looks_like_ours_is_refused(written):
    connection = sqlite3.connect(written)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET type = 'view' WHERE name = 'caches'")
    connection.commit()
    connection.close()
    with pytest.raises(FileFormatError):
        CatalogueFile.open(written)


@posix
@pytest.mark.parametrize("kind", ["forks", "joins", "renamings"])
def test_many_events_made_to_cost_much_take_little(written, kind):
    """1,500 events that each come after two, after the same one, or rename what the one before named."""
    with CatalogueFile.open(written) as catalogue:
        before = catalogue.history.events[-1]
        events = [before]
        for number in range(1500):
            after = {"forks": events[:1], "joins": events[-2:], "renamings": events[-1:]}[kind]
            revision = 1 + max(one.revision for one in after)
            about = {"label": f"{number}", "into": f"{number + 1}"} if kind == "renamings" else {}
            names = tuple(one.event for one in after)
            made = Event(f"{number:04}", revision, names, "", "", "renamed" if about else "open", about)
            events.append(made)
        with catalogue.writing() as connection:
            for one in events[1:]:
                file_module.insert_event(connection, one)

    def opens(path):
        begun = time.process_time()
        with CatalogueFile.open(path) as found:
            _ = found.said.answers
        return time.process_time() - begun < 10

    said, megabytes = grown(opens, written)
    print(said, f"{megabytes:.0f} MB")
    assert said == "returned True"
    assert megabytes < MOST_MEGABYTES
