"""A person sees a whole batch on the page of a real server, with the keyboard alone, in few decisions; a kill in the
middle changes nothing."""

import csv
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from handful.catalogue.file import CatalogueFile
from tests.conftest import SHARED
from tests.review.person import Person

pytestmark = pytest.mark.beyond


def labels_of(folder, name="labels.csv"):
    with (folder / name).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_batch_of_the_demo_is_seen_within_ten_decisions(tmp_path, browser, start_review):
    from handful.datasets import load_clinc150, load_clinc150_sentences

    subprocess.run([sys.executable, "-m", "handful", "demo", "--out", "demo"], cwd=tmp_path, check=True)
    bank = load_clinc150()
    truth = dict(zip(load_clinc150_sentences(), np.array(bank.class_names)[bank.labels].tolist(), strict=True))
    server = start_review(tmp_path, "demo/catalogue.npz", "demo/batch.npz", "--out", "labels.csv")
    person = Person(browser, server.address, truth, bank.class_names)
    assert not person.sees(5)

    # Killed in the middle: the same command goes on, with the same question.
    shown = person.shown()
    server.kill()
    server = start_review(tmp_path, "demo/catalogue.npz", "demo/batch.npz", "--out", "labels.csv")
    person.open(server.address)
    assert person.shown() == shown
    assert person.sees(10)
    person.finishes()
    assert server.process.wait(timeout=60) == 0
    rows = labels_of(tmp_path)
    assert len(rows) == 75
    assert all(row["label"] == truth[row["text"]] for row in rows)
    assert person.wrong == []


CLASSES, EACH, SHOTS, MISSING = 10, 10, 5, "buddha"


def lay_out(archive, folder):
    """Photographs of 23 classes as examples; a batch of ten classes, one of which has no examples."""
    truth, rng = {}, np.random.default_rng(0)
    with zipfile.ZipFile(archive) as photographs:
        files = sorted(name for name in photographs.namelist() if name.endswith(".jpg"))
        kinds = sorted({name.split("/")[0] for name in files})
        items = []
        for place, kind in enumerate(kinds):
            mine = [name for name in files if name.startswith(f"{kind}/")]
            for name in mine[:SHOTS] if kind != MISSING else []:
                (folder / "photos" / kind).mkdir(parents=True, exist_ok=True)
                (folder / "photos" / name).write_bytes(photographs.read(name))
            if 3 <= place < 3 + CLASSES:
                items += [(kind, name) for name in mine[SHOTS : SHOTS + EACH]]
        (folder / "batch").mkdir()
        for number, at in enumerate(rng.permutation(len(items)).tolist()):
            kind, name = items[at]
            truth[f"{number:03}.jpg"] = kind
            (folder / "batch" / f"{number:03}.jpg").write_bytes(photographs.read(name))
    return truth, [kind for kind in kinds if kind != MISSING]


FEW_CLASSES, FEW_EACH = 5, 12


def lay_out_unlabelled(archive, folder):
    """Two batches of photographs of the same five classes, without any example; return their true classes."""
    found = []
    with zipfile.ZipFile(archive) as photographs:
        files = sorted(name for name in photographs.namelist() if name.endswith(".jpg"))
        kinds = sorted({name.split("/")[0] for name in files})[3 : 3 + FEW_CLASSES]
        for batch, first in (("photos", 0), ("next", FEW_EACH)):
            items = [
                name for kind in kinds for name in [f for f in files if f.startswith(f"{kind}/")][first:][:FEW_EACH]
            ]
            (folder / batch).mkdir()
            order = np.random.default_rng(first).permutation(len(items)).tolist()
            for number, at in enumerate(order):
                (folder / batch / f"{number:03}.jpg").write_bytes(photographs.read(items[at]))
            found.append({f"{number:03}.jpg": items[at].split("/")[0] for number, at in enumerate(order)})
    return found


def test_sixty_photographs_from_nothing_to_a_catalogue_and_the_next_batch_with_it(tmp_path, browser, start_review):
    archive = SHARED / "data" / "images" / "caltech24.zip"
    if not archive.is_file():
        pytest.skip("the photographs are not here: expected shared/data/images/caltech24.zip beside the repository")
    pytest.importorskip("efficientnet_lite_pytorch", reason="the encoder of photographs is not installed")
    truth, truth_of_next = lay_out_unlabelled(archive, tmp_path)
    server = start_review(tmp_path, "photos", "--out", "labels.csv")
    person = Person(browser, server.address, truth, [])
    assert person.sees(24), person.shown()["said"]
    person.finishes()
    assert "handful review photos.handful" in person.text("#asked code")
    assert server.process.wait(timeout=60) == 0
    assert {row["item"]: row["label"] for row in labels_of(tmp_path)} == truth
    assert person.wrong == []

    server = start_review(tmp_path, "photos.handful", "next", "--out", "next.csv")
    person = Person(browser, server.address, truth_of_next, sorted(set(truth.values())))
    assert person.sees(12), person.shown()["said"]
    person.finishes()
    assert server.process.wait(timeout=60) == 0
    assert {row["item"]: row["label"] for row in labels_of(tmp_path, "next.csv")} == truth_of_next
    assert person.wrong == []


def test_a_hundred_photographs_with_a_class_missing_are_seen_within_25_decisions(tmp_path, browser, start_review):
    archive = SHARED / "data" / "images" / "caltech24.zip"
    if not archive.is_file():
        pytest.skip("the photographs are not here: expected shared/data/images/caltech24.zip beside the repository")
    pytest.importorskip("efficientnet_lite_pytorch", reason="the encoder of photographs is not installed")
    truth, known = lay_out(archive, tmp_path)
    assert MISSING in truth.values()
    server = start_review(tmp_path, "photos", "batch", "--out", "labels.csv")
    person = Person(browser, server.address, truth, known)
    assert person.sees(25), person.shown()["said"]
    person.finishes()
    assert server.process.wait(timeout=60) == 0
    rows = {row["item"]: row["label"] for row in labels_of(tmp_path)}
    assert rows == truth
    with CatalogueFile.open(tmp_path / "photos.handful") as file:
        assert MISSING in file.said.classes
    assert person.wrong == []
