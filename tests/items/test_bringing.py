"""Batches that live: what comes, goes, moves and changes is seen; only what is new is embedded; answers stay."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from handful.catalogue.events import EventItem
from handful.catalogue.file import CatalogueFile
from handful.errors import BankError, OptionError
from handful.items import bring, source_of, vectors_of, with_vectors
from tests.items.photographs import CALLS, ENCODER, VOWELS, aged, photograph, photographs, register
from tests.items_at_hand import image_bytes, small_encoder, zipped

START = "from handful.catalogue.file import CatalogueFile; from handful.items import bring; import sys\n"


@pytest.fixture(autouse=True)
def _encoder():
    register()


def answers(catalogue, batch="monday"):
    """Answer of each place that has one."""
    here = catalogue.said.places[batch]
    return {here[item]: one.label for item, one in catalogue.said.answers.items() if item in here}


def test_only_what_is_new_is_embedded_and_answers_stay(tmp_path):
    folder = photographs(tmp_path / "monday", 300)
    catalogue = CatalogueFile.open(tmp_path / "photos.handful")
    first = bring(catalogue, "monday", folder, encoder=ENCODER)
    assert str(first) == "300 photographs are new"
    assert (sum(CALLS), first.n_embedded, first.skipped) == (300, 300, ())
    here = catalogue.said.places["monday"]
    for item, place in here.items():
        catalogue.append("named", {"label": place[:2]}, [EventItem(item)])
    before = answers(catalogue)

    photographs(folder, 30, first=300)
    for k in range(10):
        (folder / f"{k:03d}.png").unlink()
    for k in range(10, 30):
        (folder / f"{k:03d}.png").rename(folder / f"moved {k:03d}.png")
    for k in range(30, 35):
        photograph(folder / f"{k:03d}.png", 1000 + k)
    CALLS.clear()
    second = bring(catalogue, "monday", folder)
    assert str(second) == "30 photographs are new, 10 are gone, 20 were moved, 5 were changed"
    assert (sum(CALLS), second.n_embedded) == (35, 35)
    after = answers(catalogue)
    moved = {f"moved {k:03d}.png": before[f"{k:03d}.png"] for k in range(10, 30)}
    assert after == {place: label for place, label in before.items() if place >= "035"} | moved
    assert len(catalogue.said.answers) == 300  # those of what went are kept

    CALLS.clear()
    assert str(bring(catalogue, "monday")) == "320 photographs, nothing has changed"
    assert CALLS == []
    revision = catalogue.revision
    assert bring(catalogue, "monday").n_embedded == 0
    assert catalogue.revision == revision  # nothing was said

    photographs(folder, 10)
    assert str(bring(catalogue, "monday")) == "10 photographs came back"
    assert CALLS == []
    assert answers(catalogue)["003.png"] == "00"
    items = list(catalogue.said.places["monday"])
    assert vectors_of(catalogue, items).shape == (330, 32)
    catalogue.close()


def test_vectors_are_those_of_the_encoder(tmp_path):
    from handful.extraction.decode import decode_image

    catalogue = CatalogueFile.open(tmp_path / "photos.handful")
    _ = bring(catalogue, "monday", photographs(tmp_path / "monday", 70), encoder=ENCODER)
    here = catalogue.said.places["monday"]
    expected = small_encoder().embed([decode_image(image_bytes(int(place[:3]))) for place in here.values()])
    assert np.abs(vectors_of(catalogue, list(here)) - expected).max() < 1e-4


def test_copies_are_embedded_once(tmp_path):
    folder = tmp_path / "monday"
    for k in range(6):
        photograph(folder / f"{k}.png", k % 2)
    catalogue = CatalogueFile.open()
    found = bring(catalogue, "monday", folder, encoder=ENCODER)
    assert (found.n_embedded, len(found.new)) == (2, 6)
    photograph(tmp_path / "tuesday" / "again.png", 1)
    CALLS.clear()
    found = bring(catalogue, "tuesday", tmp_path / "tuesday")
    assert (str(found), found.n_embedded, CALLS) == ("1 photograph is new", 0, [])


def test_an_embedding_that_was_killed_goes_on(tmp_path):
    folder = photographs(tmp_path / "monday", 300)
    file = tmp_path / "photos.handful"
    program = (
        f"{START}from tests.items.photographs import register\nregister(slow=0.05)\n"
        f"bring(CatalogueFile.open({str(file)!r}), 'monday', {str(folder)!r}, encoder={ENCODER!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    n_there = 0
    until = time.monotonic() + 120
    while n_there == 0 and time.monotonic() < until:
        time.sleep(0.02)
        if file.exists() and file.stat().st_size:
            with CatalogueFile.open(file) as seen:
                items = list(seen.said.places.get("monday", ()))
                n_there = len(with_vectors(seen, items)) if items else 0
    process.send_signal(signal.SIGKILL)
    process.wait()
    with CatalogueFile.open(file) as catalogue:
        items = list(catalogue.said.places["monday"])
        done = len(with_vectors(catalogue, items))
        assert 0 < done < 300
        CALLS.clear()
        found = bring(catalogue, "monday", folder)
        assert (str(found), found.n_embedded) == ("300 photographs, nothing has changed", 300 - done)
        assert sum(CALLS) == 300 - done
        assert len(vectors_of(catalogue, items)) == 300


def test_a_second_start_is_quick_and_loads_nothing(tmp_path):
    folder = photographs(tmp_path / "monday", 300)
    file = tmp_path / "photos.handful"
    with CatalogueFile.open(file) as catalogue:
        _ = bring(catalogue, "monday", folder, encoder=ENCODER)
    program = (
        f"{START}import time\n"
        f"print(bring(CatalogueFile.open({str(file)!r}), 'monday'))\n"
        "print([name for name in ('torch', 'sklearn', 'scipy', 'pandas', 'PIL') if name in sys.modules])\n"
        "print(time.process_time())"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said, loaded, seconds = found.stdout.splitlines()
    assert (said, loaded) == ("300 photographs, nothing has changed", "[]")
    assert float(seconds) < 1.5


def test_images_that_cannot_be_read_are_listed_and_not_tried_again(tmp_path):
    folder = photographs(tmp_path / "monday", 3)
    (folder / "broken.png").write_bytes(b"no image")
    aged(folder / "broken.png")
    catalogue = CatalogueFile.open()
    first = bring(catalogue, "monday", folder, encoder=ENCODER)
    assert (first.n_items, first.n_embedded) == (4, 3)
    ((name, reason),) = [(one.name, one.reason) for one in first.skipped]
    assert name == "broken.png"
    assert "cannot identify" in reason
    CALLS.clear()
    second = bring(catalogue, "monday")
    assert (CALLS, second.skipped) == ([], first.skipped)
    items = list(catalogue.said.places["monday"])
    assert len(with_vectors(catalogue, items)) == 3
    with pytest.raises(OptionError, match="1 items have no vector"):
        vectors_of(catalogue, items)
    photograph(folder / "broken.png", 9)
    third = bring(catalogue, "monday")
    assert (str(third), third.skipped, third.n_embedded) == ("1 photograph was changed", (), 1)


def test_a_file_that_changes_while_it_is_embedded_is_embedded_next_time(tmp_path, monkeypatch):
    folder = photographs(tmp_path / "monday", 3)
    arrive = CatalogueFile.arrive

    def meanwhile(*arguments, **named):
        photograph(folder / "001.png", 50)
        return arrive(*arguments, **named)

    catalogue = CatalogueFile.open()
    monkeypatch.setattr(CatalogueFile, "arrive", meanwhile)
    found = bring(catalogue, "monday", folder, encoder=ENCODER)
    assert [(one.name, one.reason) for one in found.skipped] == [
        ("001.png", "it was changed while it was read; bring it again")
    ]
    monkeypatch.undo()
    again = bring(catalogue, "monday")
    assert (str(again), again.n_embedded, again.skipped) == ("1 photograph was changed", 1, ())


def test_other_weights_are_refused_before_anything_changes(tmp_path):
    folder = photographs(tmp_path / "monday", 3)
    catalogue = CatalogueFile.open()
    _ = bring(catalogue, "monday", folder, encoder=ENCODER)
    photographs(folder, 1, first=3)
    register(seed=1)
    revision = catalogue.revision
    with pytest.raises(OptionError, match="other weights, or prepares items otherwise"):
        bring(catalogue, "monday")
    with pytest.raises(OptionError, match=f"made by {ENCODER}, and those of minilm"):
        bring(catalogue, "monday", folder, encoder="minilm")
    register()
    with pytest.raises(OptionError, match=r"reads items of kind image, but .* has items of kind text"):
        bring(catalogue, "calls", ["wake me"])
    with pytest.raises(OptionError, match="have 3 numbers, and those of this catalogue 32"):
        bring(catalogue, "vectors", np.eye(3))
    assert catalogue.revision == revision
    assert bring(catalogue, "monday").n_embedded == 1


def test_rows_keep_their_answers_when_others_come_and_go(tmp_path):
    table = tmp_path / "calls.csv"
    texts = ["wake me", "hello", "wake me", "where is my bag"]

    def written(texts):
        pd.DataFrame({"text": texts}).to_csv(table, index=False)

    written(texts)
    catalogue = CatalogueFile.open(tmp_path / "calls.handful")
    assert bring(catalogue, "calls", table, encoder=VOWELS).n_embedded == 3
    for item, label in zip(catalogue.said.places["calls"], ("early", "greeting", "late", "luggage"), strict=True):
        catalogue.append("named", {"label": label}, [EventItem(item)])
    written(["good day", *texts])
    found = bring(catalogue, "calls")
    assert (str(found), found.n_embedded) == ("1 text is new", 1)
    assert answers(catalogue, "calls") == dict(
        zip(("row 1", "row 2", "row 3", "row 4"), ("early", "greeting", "late", "luggage"), strict=True)
    )
    written(["good day", *texts[1:]])
    assert str(bring(catalogue, "calls")) == "1 text is gone"
    assert answers(catalogue, "calls") == {"row 1": "greeting", "row 2": "late", "row 3": "luggage"}


@pytest.mark.parametrize("kind", ["array", "frame", "csv", "npz"])
def test_vectors_join_from_anywhere(tmp_path, kind):
    vectors = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    data = {"array": vectors, "frame": pd.DataFrame({"emb": list(vectors)})}.get(kind)
    if kind == "csv":
        data = tmp_path / "a.csv"
        pd.DataFrame(vectors, columns=[f"emb_{k}" for k in range(4)]).to_csv(data, index=False)
    elif kind == "npz":
        data = tmp_path / "a.npz"
        np.savez(data, features=vectors)
    catalogue = CatalogueFile.open()
    assert str(bring(catalogue, "tuesday", data)) == "5 rows are new"
    assert np.array_equal(vectors_of(catalogue, list(catalogue.said.places["tuesday"])), vectors)
    if kind in ("array", "frame"):
        with pytest.raises(OptionError, match="was in memory; give what is in it"):
            bring(catalogue, "tuesday")
    else:
        assert str(bring(catalogue, "tuesday")) == "5 rows, nothing has changed"


def test_a_zip_and_a_folder_of_folders(tmp_path):
    folder = photographs(tmp_path / "monday" / "wood", 3)
    photographs(tmp_path / "monday" / "marsh", 3, first=3)
    archive = zipped(folder.parent, tmp_path / "monday.zip")
    catalogue = CatalogueFile.open()
    assert bring(catalogue, "monday", folder.parent, encoder=ENCODER).n_embedded == 6
    found = bring(catalogue, "packed", archive)
    assert (str(found), found.n_embedded) == ("6 photographs are new", 0)
    assert sorted(catalogue.said.places["packed"].values()) == sorted(catalogue.said.places["monday"].values())


def test_catalogue_and_folder_can_be_moved_together(tmp_path):
    here = tmp_path / "here"
    photographs(here / "monday", 2)
    with CatalogueFile.open(here / "photos.handful") as catalogue:
        _ = bring(catalogue, "monday", here / "monday", encoder=ENCODER)
        assert catalogue.said.sources["monday"]["folder"] == "monday"
    os.rename(here, tmp_path / "there")
    with CatalogueFile.open(tmp_path / "there" / "photos.handful") as catalogue:
        assert source_of(catalogue, "monday") == tmp_path / "there" / "monday"
        assert str(bring(catalogue, "monday")) == "2 photographs, nothing has changed"
        os.rename(tmp_path / "there" / "monday", tmp_path / "elsewhere")
        with pytest.raises(BankError):
            bring(catalogue, "monday")
        assert str(bring(catalogue, "monday", tmp_path / "elsewhere")) == "2 photographs, nothing has changed"
        assert source_of(catalogue, "monday").resolve() == tmp_path / "elsewhere"
        with pytest.raises(OptionError, match="'sunday' is not in this catalogue"):
            bring(catalogue, "sunday")
        with pytest.raises(OptionError, match="a batch needs a name"):
            bring(catalogue, " ", np.eye(2))


def test_a_batch_is_read_as_before(tmp_path):
    (tmp_path / "a.csv").write_text("what;when;e0;e1\nfox;1;0.5;1\nowl;2;1;0\n")
    catalogue = CatalogueFile.open(tmp_path / "a.handful")
    _ = bring(catalogue, "a", tmp_path / "a.csv", features="e", id_column="what")
    assert list(catalogue.said.places["a"].values()) == ["fox", "owl"]
    assert str(bring(catalogue, "a")) == "2 rows, nothing has changed"
    (tmp_path / "a.csv").write_text("what;when;e0;e1\nowl;2;1;0\n")
    assert str(bring(catalogue, "a")) == "1 row is gone"
