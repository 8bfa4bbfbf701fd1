"""From files to labels: every pairing of vectors, images and sentences; what does not belong together is refused."""

import json
import shutil
import warnings

import numpy as np
import pytest
from PIL import Image

from handful.banks import FeatureBank, Provenance, write_parquet
from handful.classification import (
    classify,
    dense_bytes,
    files,
    steps,
    task,
    write_predictions,
)
from handful.classification import known as known_module
from handful.classification.labelled import (
    PREDICTION_TYPES,
    class_names,
    doubtful_items,
    predictions,
    present_codes,
    rejected_items,
    unknown_summary,
)
from handful.classification.page import write_page
from handful.classification.page_data import embedded, page_data
from handful.datasets import load_clinc150
from handful.errors import BankError, FileFormatError, LabelError, OptionError, SkippedRowsWarning
from handful.estimators import BatchClassifier
from handful.estimators.answer import groups_of_items
from handful.estimators.batches import Batches
from handful.extraction.extract import extract
from handful.extraction.items import list_items
from handful.fitted import fitted, save_model
from handful.reading import read
from tests.items_at_hand import small_encoder

COLOURS = {"red": (200, 30, 30), "green": (30, 190, 40), "blue": (20, 40, 210), "grey": (120, 120, 120)}


def paint(path, colour: str, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(-25, 26, (20, 24, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((np.array(COLOURS[colour]) + noise).clip(0, 255).astype(np.uint8)).save(path)


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Four folders of painted noise, a batch of two of the colours with a broken file, and a small encoder."""
    monkeypatch.setattr("handful.extraction.encoders.load_encoder", lambda name, device: small_encoder())
    for k, colour in enumerate(COLOURS):
        for i in range(4):
            paint(tmp_path / "catalogue" / colour / f"{i}.png", colour, 10 * k + i)
    for i in range(9):
        paint(tmp_path / "batch" / f"{i}.png", "red" if i < 6 else "blue", 100 + i)
    (tmp_path / "batch" / "3 broken.png").write_bytes(b"no picture")
    return tmp_path


def rows_of_clinc(mixed=False):
    """FittedModel and batch of real sentences, as vectors, with the truth; neighbours in the bank are alike."""
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [np.flatnonzero(bank.labels == k) for k in range(30)]
    rows = [rng.permutation(of_class) for of_class in rows] if mixed else rows
    catalogue = np.concatenate([of_class[:5] for of_class in rows])
    batch = np.concatenate([rows[k][10:25] for k in (3, 17)])
    names = np.array(bank.class_names)[bank.labels]
    return bank.take(catalogue).astype(np.float32), names[catalogue], bank.take(batch).astype(np.float32), names[batch]


def test_vectors_in_parquet_and_arrays(tmp_path):
    known, labels, batch, truth = rows_of_clinc()
    classes, codes = np.unique(labels, return_inverse=True)
    bank = FeatureBank.from_arrays(known, codes, classes.tolist())
    write_parquet(bank, tmp_path / "catalogue.parquet")
    bank.save(tmp_path / "bank")
    np.savez(tmp_path / "batch.npz", features=batch, id=[f"s{i}" for i in range(len(batch))])
    expected = BatchClassifier().fit(known, labels).infer(batch)
    for catalogue in ("catalogue.parquet", "bank"):
        found = classify(tmp_path / catalogue, tmp_path / "batch.npz")
        table = predictions(found)
        assert tuple(table) == (*list(PREDICTION_TYPES)[:2], "id", *list(PREDICTION_TYPES)[2:])
        assert table["label"] == expected.labels.tolist()
        assert (np.array(table["label"]) == truth).mean() > 0.9
        assert table["item"][:2] == ["s0", "s1"]
        assert [class_names(found)[k] for k in present_codes(found)] == expected.present_classes.tolist()
        assert (found.about.n_examples, found.about.encoder, found.about.batch.contents) == (150, "", None)


def test_the_runner_up_is_the_second_likeliest(tmp_path):
    known, labels, batch, _ = rows_of_clinc()
    np.savez(tmp_path / "c.npz", features=known, labels=labels)
    np.save(tmp_path / "b.npy", batch)
    found = classify(tmp_path / "c.npz", tmp_path / "b.npy")
    table = predictions(found)
    wanted = BatchClassifier().fit(known, labels).infer(batch)
    ranked = np.sort(wanted.probabilities, axis=1)[:, ::-1] * (1 - wanted.unknown[:, None]) * 151 / 152
    np.testing.assert_allclose(table["certainty"], ranked[:, 0])
    np.testing.assert_allclose(table["runner_up_certainty"], ranked[:, 1])
    assert table["doubtful"] == wanted.doubtful.tolist() == found.to_frame()["doubtful"].tolist()
    assert all(a != b for a, b in zip(table["label"], table["runner_up"], strict=True))


def test_a_catalogue_of_one_class_has_no_runner_up(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(3, dtype=np.float32), labels=["a"] * 3)
    np.save(tmp_path / "b.npy", np.eye(3, dtype=np.float32))
    table = predictions(classify(tmp_path / "c.npz", tmp_path / "b.npy"))
    assert (table["label"], table["runner_up"], table["runner_up_certainty"]) == (["a"] * 3, [None] * 3, [None] * 3)


def is_large(answer):
    """Whether the probabilities of all classes were not kept."""
    try:
        return answer.probabilities is None
    except OptionError:
        return True


def test_a_large_batch_is_labelled_the_same(tmp_path, monkeypatch):
    known, labels, batch, _ = rows_of_clinc()
    np.savez(tmp_path / "c.npz", features=known, labels=labels)
    np.save(tmp_path / "b.npy", batch)
    dense = classify(tmp_path / "c.npz", tmp_path / "b.npy")
    assert dense_bytes(30, 30, 150, 384) == 4 * (30 * 30 + 180 * 384)
    monkeypatch.setattr(task, "MOST_DENSE_BYTES", dense_bytes(30, 30, 150, 384))
    assert classify(tmp_path / "c.npz", tmp_path / "b.npy").probabilities.shape == (30, 30)
    monkeypatch.setattr(task, "MOST_DENSE_BYTES", dense_bytes(30, 30, 150, 384) - 1)
    reports = []
    large = classify(tmp_path / "c.npz", tmp_path / "b.npy", on_progress=reports.append)
    assert is_large(large)
    assert {report.stage for report in reports} == {"label"}
    assert class_names(large) == class_names(dense)
    assert present_codes(large) == present_codes(dense)
    for name, values in predictions(dense).items():
        again = predictions(large)[name]
        if "certainty" in name:
            np.testing.assert_allclose(again, values, atol=1e-4)
        elif name == "unknown":
            np.testing.assert_allclose(again, values, atol=1e-3)
        elif name != "runner_up":
            assert again == values
    # Where the next likeliest has hardly any probability, rounding may put another in its place.
    told = dense.to_frame()["runner_up_certainty"].to_numpy() > 1e-3
    np.testing.assert_array_equal(large.codes[:, 1][told], dense.codes[:, 1][told])
    np.testing.assert_allclose(large.expected_counts, dense.expected_counts, atol=1e-3)
    np.testing.assert_allclose(large.presence, dense.presence, atol=1e-3)
    assert large.diagnostics == dense.diagnostics == ()


def test_unknown_items_of_a_large_batch_are_counted(tmp_path, monkeypatch):
    known, labels, batch, truth = rows_of_clinc()
    gone = truth[-1]
    np.savez(tmp_path / "c.npz", features=known[labels != gone], labels=labels[labels != gone])
    np.save(tmp_path / "b.npy", batch)
    monkeypatch.setattr(task, "MOST_DENSE_BYTES", 0)
    found = classify(tmp_path / "c.npz", tmp_path / "b.npy")
    assert is_large(found)
    np.testing.assert_array_equal(found.rejected, truth == gone)
    assert unknown_summary(found) == "15 items look like none of your 29 classes."
    assert predictions(found)["unknown"] == found.unknown.tolist()
    assert predictions(found)["proposal"] == [None] * 30
    low, high = found.unknown_interval
    assert low <= 0.5 <= high


def test_what_looks_wrong_with_a_large_batch_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(task, "MOST_DENSE_BYTES", 0)
    known, labels, _, _ = rows_of_clinc()
    np.savez(tmp_path / "c.npz", features=known, labels=labels)
    np.save(tmp_path / "b.npy", np.random.default_rng(0).standard_normal((30, 384)))
    found = classify(tmp_path / "c.npz", tmp_path / "b.npy")
    assert [diagnostic.name for diagnostic in found.diagnostics] == ["unlike_catalogue"]


def test_classes_without_examples_are_left_out(tmp_path, monkeypatch):
    bank = FeatureBank.from_arrays(np.eye(4, dtype=np.float32)[[0, 0, 2]], [0, 0, 2], ["a", "nobody", "c"])
    bank.save(tmp_path / "bank")
    np.save(tmp_path / "b.npy", np.eye(4, dtype=np.float32)[[2, 2, 0]])
    dense = classify(tmp_path / "bank", tmp_path / "b.npy")
    monkeypatch.setattr(task, "MOST_DENSE_BYTES", 0)
    large = classify(tmp_path / "bank", tmp_path / "b.npy")
    assert class_names(large) == class_names(dense) == ("a", "c")
    assert predictions(large)["label"] == predictions(dense)["label"] == ["c", "c", "a"]


def test_pictures_of_a_large_batch(pictures, monkeypatch):
    monkeypatch.setattr(task, "MOST_DENSE_BYTES", 0)
    found = classify(pictures / "catalogue", pictures / "batch")
    assert is_large(found)
    assert predictions(found)["label"] == ["red"] * 6 + ["blue"] * 3
    assert len(found.about.batch.skipped) == 1


def test_pictures_on_both_sides(pictures):
    found = classify(pictures / "catalogue", pictures / "batch")
    table = predictions(found)
    assert table["item"] == ["0.png", "1.png", "2.png", "3.png", "4.png", "5.png", "6.png", "7.png", "8.png"]
    assert table["row"] == [0, 1, 2, 4, 5, 6, 7, 8, 9]  # "3 broken.png" lies between
    assert table["label"] == ["red"] * 6 + ["blue"] * 3
    assert len(found.about.batch.skipped) == 1
    assert (found.about.batch.skipped[0].row, found.about.batch.skipped[0].name) == (3, "3 broken.png")
    assert list(found.about.batch.contents) == [(pictures / "batch" / name).read_bytes() for name in table["item"]]
    assert found.about.encoder == "small"


@pytest.mark.parametrize("name", ["2.png: x.png", "2\n.png", "2.png"], ids=ascii)
def test_labels_stay_with_their_items_whatever_a_broken_one_is_called(pictures, name):
    (pictures / "batch" / "3 broken.png").rename(pictures / "batch" / name)
    found = classify(pictures / "catalogue", pictures / "batch")
    table = predictions(found)
    colours = dict(zip(table["item"], table["label"], strict=True))
    assert colours == {f"{i}.png": "red" if i < 6 else "blue" for i in range(9) if f"{i}.png" != name}
    assert [item.name for item in found.about.batch.skipped] == [name]
    assert found.about.batch.skipped[0].row not in table["row"]
    write_predictions(found, pictures / "out.csv")


def test_a_catalogue_with_two_classes_of_one_name_is_refused(tmp_path):
    FeatureBank.from_arrays(np.eye(3), [0, 1, 2], ["crane", "crane", "heron"]).save(tmp_path / "bank")
    np.save(tmp_path / "b.npy", np.eye(3, dtype=np.float32))
    with pytest.raises(BankError, match="more than one class named 'crane'"):
        classify(tmp_path / "bank", tmp_path / "b.npy")


def test_a_bank_knows_its_encoder(pictures):
    extract(list_items(pictures / "catalogue"), small_encoder(), pictures / "bank")
    assert predictions(classify(pictures / "bank", pictures / "batch"))["label"] == ["red"] * 6 + ["blue"] * 3


def test_weights_other_than_the_banks_are_refused(pictures):
    extract(list_items(pictures / "catalogue"), small_encoder(seed=1), pictures / "bank")
    with pytest.raises(BankError, match="the given features were made by small with weights"):
        classify(pictures / "bank", pictures / "batch")


def test_a_bank_that_does_not_know_asks(pictures, tmp_path):
    bank = extract(list_items(pictures / "catalogue"), small_encoder(), pictures / "bank")
    FeatureBank.from_arrays(bank.features, bank.labels, bank.class_names).save(tmp_path / "bare")
    with pytest.raises(OptionError, match="which encoder made the features is not recorded"):
        classify(tmp_path / "bare", pictures / "batch")
    assert predictions(classify(tmp_path / "bare", pictures / "batch", encoder="small"))["label"][-1] == "blue"


def test_items_of_two_kinds_are_refused(pictures):
    (pictures / "words.jsonl").write_text(json.dumps({"text": "a red one"}) + "\n")
    with pytest.raises(OptionError, match="both be images or both be sentences"):
        classify(pictures / "catalogue", pictures / "words.jsonl")


def test_features_that_do_not_belong_together_are_refused(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["a", "b", "c"])
    np.save(tmp_path / "b.npy", np.eye(4))
    with pytest.raises(BankError, match="have 3 numbers, those of the batch 4"):
        classify(tmp_path / "c.npz", tmp_path / "b.npy")
    with pytest.raises(OptionError, match="both sides are features"):
        classify(tmp_path / "c.npz", tmp_path / "b.npy", encoder="minilm")
    for name in ("one", "two"):
        provenance = Provenance(encoder=f"net {name}")
        FeatureBank.from_arrays(np.eye(3), [0, 1, 2], ["a", "b", "c"], provenance=provenance).save(tmp_path / name)
    with pytest.raises(BankError, match="made by net one, the batch by net two"):
        classify(tmp_path / "one", tmp_path / "two")


def test_predictions_as_a_spreadsheet_and_a_table_that_excel_reads(tmp_path):
    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["Käse", "=1+1", "fox"])
    np.savez(tmp_path / "b.npz", features=np.eye(3)[[1, 1, 0]], id=["a", "b\x07", "c"])
    found = classify(tmp_path / "c.npz", tmp_path / "b.npz")
    for ending in (".xlsx", ".csv"):
        write_predictions(found, tmp_path / f"p{ending}")
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    sheet = openpyxl.load_workbook(tmp_path / "p.xlsx").active
    head, *rows = sheet.iter_rows(values_only=True)
    assert [row[head.index("label")] for row in rows] == predictions(found)["label"] == ["=1+1", "=1+1", "Käse"]
    assert sheet.cell(2, head.index("label") + 1).data_type == "s"  # no formula
    assert (tmp_path / "p.csv").read_bytes().startswith(b"\xef\xbb\xbfrow,item")
    assert read(tmp_path / "p.csv", features="certainty").values("label") == ["=1+1", "=1+1", "Käse"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b.npz", "c.npz", "p.csv", "p.xlsx"]


@pytest.mark.parametrize("rows_at_once", [4, 65_536])
def test_predictions_as_parquet_and_as_csv(pictures, monkeypatch, rows_at_once):
    monkeypatch.setattr(files, "ROWS_AT_ONCE", rows_at_once)
    pandas = pytest.importorskip("pandas")
    found = classify(pictures / "catalogue", pictures / "batch")
    write_predictions(found, pictures / "deep" / "p.parquet")
    write_predictions(found, pictures / "deep" / "p.csv")
    frame = pandas.read_parquet(pictures / "deep" / "p.parquet")
    assert frame.astype(object).where(frame.notna(), None).to_dict("list") == predictions(found)
    again = pandas.read_csv(pictures / "deep" / "p.csv")
    frame = frame.astype({"rejected": float})  # here nothing was judged: a CSV file has nothing, Parquet has null
    pandas.testing.assert_frame_equal(again, frame, check_dtype=False)
    assert sorted(file.name for file in (pictures / "deep").iterdir()) == ["p.csv", "p.parquet"]
    with pytest.raises(OptionError, match=r"written as \.parquet, \.csv"):
        write_predictions(found, pictures / "p.ods")


def test_items_know_the_nearest_example_of_their_label(pictures):
    (pictures / "catalogue" / "blue" / "0 torn.png").write_bytes(b"no picture")
    for i in range(2):
        (pictures / "catalogue" / "amber").mkdir(exist_ok=True)
        (pictures / "catalogue" / "amber" / f"{i}.png").write_bytes(b"a class of which nothing can be read")
    # Two items are copies of examples, so that these are the nearest.
    for item, example in (("0.png", "red/2.png"), ("7.png", "blue/3.png")):
        shutil.copy(pictures / "catalogue" / example, pictures / "batch" / item)
    with pytest.warns(SkippedRowsWarning, match="3 of 19 items are skipped: 3 unreadable: amber/0.png: "):
        found = classify(pictures / "catalogue", pictures / "batch", encoder="small")
    assert [one.name for one in found.about.skipped_examples] == ["amber/0.png", "amber/1.png", "blue/0 torn.png"]
    shown = found.about.shown
    assert len(shown.names) == 16
    assert not [name for name in shown.names if "torn" in name or "amber" in name]
    assert sorted(shown.nearest) == list(range(9))
    labels = predictions(found)["label"]
    assert all(shown.classes[row] == labels[item] for item, row in shown.nearest.items())
    of_item = {found.about.batch.names[item]: shown.names[row] for item, row in shown.nearest.items()}
    assert (of_item["0.png"], of_item["7.png"]) == ("red/2.png", "blue/3.png")
    with pytest.warns(SkippedRowsWarning):
        again = classify(pictures / "catalogue", pictures / "batch", encoder="small")
    assert again.about.shown.nearest == shown.nearest


def test_progress_is_reported_while_both_sides_are_embedded(pictures):
    reports = []
    classify(pictures / "catalogue", pictures / "batch", on_progress=reports.append)
    assert list(dict.fromkeys(report.stage for report in reports)) == ["embed the catalogue", "embed the batch"]
    last = [report for report in reports if report.stage == "embed the catalogue"][-1]
    assert (last.done, last.total, last.seconds_left) == (16, 16, 0)


@pytest.fixture
def vectors(tmp_path):
    """Thirty intents and a batch of two, as files; one of the two is to be ruled out."""
    known, labels, batch, truth = rows_of_clinc()
    np.savez(tmp_path / "c.npz", features=known, labels=labels)
    np.savez(tmp_path / "b.npz", features=batch, site=np.arange(len(batch)) % 2)
    classes = sorted(set(labels.tolist()))
    (tmp_path / "list.txt").write_text("\n".join(name for name in classes if name != truth[0]) + "\nelsewhere\n")
    weights = {name: 0.5 + k for k, name in enumerate(classes)}
    (tmp_path / "w.csv").write_text("class,weight\n" + "".join(f"{name},{w}\n" for name, w in weights.items()))
    return tmp_path, BatchClassifier().fit(known, labels), batch, truth, weights


@pytest.mark.parametrize("group_by", [None, "site"])
def test_candidates_and_prior_are_those_of_infer(vectors, group_by):
    folder, classifier, batch, truth, weights = vectors
    groups = None if group_by is None else np.arange(len(batch)) % 2
    candidates = [name for name in weights if name != truth[0]]
    for asked, expected in (
        ({"candidates": folder / "list.txt"}, {"candidates": candidates}),
        ({"prior": folder / "w.csv"}, {"prior": weights}),
        ({"candidates": folder / "list.txt", "prior": folder / "w.csv"}, {"candidates": candidates, "prior": weights}),
    ):
        found = classify(folder / "c.npz", folder / "b.npz", group_by=group_by, **asked)
        wanted = classifier.infer(batch, groups, **expected)
        assert predictions(found)["label"] == wanted.labels.tolist()
        np.testing.assert_allclose(found.certainty, wanted.certainty, atol=1e-6)
        np.testing.assert_allclose(found.presence, wanted.presence, atol=1e-6)
    before = predictions(classify(folder / "c.npz", folder / "b.npz", group_by=group_by))["label"]
    assert truth[0] in before
    assert truth[0] not in predictions(found)["label"]


def test_the_page_explains_labels_with_the_prior(vectors):
    folder, classifier, batch, truth, weights = vectors
    candidates = [name for name in weights if name != truth[0]]
    wanted = classifier.explain(batch, [0], candidates=candidates)[0]
    for group_by in (None, "site"):
        found = classify(folder / "c.npz", folder / "b.npz", group_by=group_by, candidates=folder / "list.txt")
        why = page_data(found, "t")["why"][0]
        assert class_names(found)[why[0]] == wanted.alone != truth[0]


def test_a_large_batch_takes_candidates_and_prior(vectors, monkeypatch):
    folder, _, _, truth, _ = vectors
    known = {"candidates": folder / "list.txt", "prior": folder / "w.csv"}
    in_memory = classify(folder / "c.npz", folder / "b.npz", **known)
    monkeypatch.setattr(task, "MOST_DENSE_BYTES", 0)
    large = classify(folder / "c.npz", folder / "b.npz", **known)
    assert is_large(large)
    assert predictions(large)["label"] == predictions(in_memory)["label"]
    np.testing.assert_allclose(large.presence, in_memory.presence, atol=1e-3)
    with pytest.raises(OptionError, match="30 items and 30 classes is too large for sequence; leave it out"):
        classify(folder / "c.npz", folder / "b.npz", sequence="site")
    (folder / "may.csv").write_text(f"site,class\n0,{truth[0]}\n")
    with pytest.raises(OptionError, match="too large for candidates of single items; leave it out"):
        classify(folder / "c.npz", folder / "b.npz", candidates=folder / "may.csv")


def test_siblings_need_groups(vectors):
    folder, *_ = vectors
    with pytest.raises(OptionError, match="pool and order need groups, and there are none"):
        classify(folder / "c.npz", folder / "b.npz", pool="site")


def test_columns_of_the_batch_say_what_is_known(vectors):
    folder, classifier, batch, truth, weights = vectors
    rng = np.random.default_rng(0)
    unit, visit = truth, np.arange(len(batch)) // 6
    columns = {"animal": unit, "visit": visit, "site": np.arange(len(batch)) % 2, "id": np.arange(len(batch))}
    weak = batch + 0.06 * rng.normal(size=batch.shape)
    np.savez(folder / "weak.npz", features=weak.astype(np.float32), **columns)

    def labels(**known):
        return predictions(classify(folder / "c.npz", folder / "weak.npz", **known))["label"]

    weak = weak.astype(np.float32)
    assert labels(sequence="animal") == classifier.predict(weak, sequence=unit).tolist()
    assert labels(group_by="visit", pool=True) == classifier.predict(weak, visit, pool=True).tolist()
    ordered = classifier.predict(weak, visit, pool=True, order=visit).tolist()
    assert labels(group_by="visit", pool=True, order="visit") == ordered
    # Of the first item, and of one of the sites.
    names = list(weights)
    for column, value, mine in (("id", 0, np.arange(len(batch)) == 0), ("site", 1, columns["site"] == 1)):
        (folder / "may.csv").write_text(f"{column},class\n{value},{names[0]}\n{value},{names[1]}\n")
        by_item = [names[:2] if one else None for one in mine.tolist()]
        found = np.array(labels(candidates=folder / "may.csv"))
        assert found.tolist() == classifier.predict(weak, candidates=by_item).tolist()
        assert set(found[mine]) <= set(names[:2])
        assert set(found[~mine]) - set(names[:2])
    (folder / "by.csv").write_text(f"site,class,weight\n1,{names[0]},5\n1,{names[1]},1\n")
    found = classifier.infer(weak, columns["site"], prior={1: {name: 5 if name == names[0] else 1 for name in names}})
    assert labels(group_by="site", prior=folder / "by.csv") == found.labels.tolist()
    (folder / "none.csv").write_text("id,class\n0,nobody\n")
    with pytest.raises(FileFormatError, match=r"names none of the \d+ classes for id '0'"):
        labels(candidates=folder / "none.csv")
    with pytest.raises(BankError, match="no column 'colony'"):
        labels(sequence="colony")
    with pytest.raises(OptionError, match="there is no argument 'cluster'"):
        labels(cluster="animal")


def test_what_a_person_said_cannot_be_ruled_out(vectors):
    folder, _, _, truth, _ = vectors
    with pytest.raises(LabelError, match="a class that prior or candidates exclude"):
        classify(folder / "c.npz", folder / "b.npz", given={0: truth[0]}, candidates=folder / "list.txt")


@pytest.mark.parametrize(
    ("asked", "error", "sentence"),
    [
        ({"candidates": "nowhere.txt"}, FileFormatError, "does not exist"),
        ({"prior": "nowhere.csv"}, FileFormatError, "does not exist"),
        ({"given": {0: "mauve"}}, LabelError, "was given the label 'mauve'"),
        ({"features": "emb"}, OptionError, "no input has a column 'emb' for the features"),
        ({"labels": "kind"}, BankError, "is not a table, so it has no column 'kind'"),
        ({"id_column": "id"}, BankError, "is not a table, so it has no column 'id'"),
    ],
)
def test_what_cannot_be_used_is_refused_before_images_are_embedded(pictures, monkeypatch, asked, error, sentence):
    monkeypatch.setattr(steps, "embed_items", None)
    ((name, value),) = asked.items()
    with pytest.raises(error, match=sentence):
        classify(
            pictures / "catalogue",
            pictures / "batch",
            **{name: pictures / value if name in ("candidates", "prior") else value},
        )


def test_options_about_items_are_refused_for_vectors(vectors):
    folder, *_ = vectors
    with pytest.raises(OptionError, match="device 'cuda' is for an encoder, but both sides are features; leave it out"):
        classify(folder / "c.npz", folder / "b.npz", device="cuda")


def test_columns_are_not_named_of_what_has_none(vectors):
    folder, classifier, batch, _, weights = vectors
    bank = FeatureBank.from_arrays(classifier.model_.means, np.arange(30), list(weights))
    bank.save(folder / "bank")
    np.save(folder / "b.npy", batch)
    with pytest.raises(OptionError, match="no input has a column 'features' for the features: none has columns"):
        classify(folder / "bank", folder / "b.npy", features="features")
    with pytest.raises(BankError, match="bank has no columns, so it has no column 'intent'"):
        classify(folder / "bank", folder / "b.npz", labels="intent")
    # It is the column of the other side.
    assert len(classify(folder / "bank", folder / "b.npz", features="features").about.batch.rows) == len(batch)


def test_labels_of_a_table_of_items_may_have_another_column(pictures):
    rows = [f"catalogue/{colour}/{i}.png,{k},{colour}" for k, colour in enumerate(COLOURS) for i in range(4)]
    (pictures / "c.csv").write_text("\n".join(["path,label,kind", *rows]))
    assert class_names(classify(pictures / "c.csv", pictures / "batch")) == ("0", "1", "2", "3")
    found = classify(pictures / "c.csv", pictures / "batch", labels="kind")
    assert class_names(found) == tuple(sorted(COLOURS))
    assert predictions(found)["label"][0] == "red"


def test_a_class_that_is_missing_is_found_by_the_first_rows_of_the_others():
    known, labels, batch, truth = rows_of_clinc()
    with warnings.catch_warnings(action="ignore"):
        found = BatchClassifier().fit(known[labels != truth[-1]], labels[labels != truth[-1]]).infer(batch)
    assert found.rejected.sum() > 10


@pytest.mark.parametrize("how", ["in memory", "large", "groups"])
def test_unknown_items_have_the_label_that_was_asked_for(tmp_path, monkeypatch, how):
    known, labels, batch, truth = rows_of_clinc(mixed=True)
    gone = truth[-1]
    np.savez(tmp_path / "c.npz", features=known[labels != gone], labels=labels[labels != gone])
    np.savez(tmp_path / "b.npz", features=batch, site=["all"] * len(batch))
    if how == "large":
        monkeypatch.setattr(task, "MOST_DENSE_BYTES", 0)
    group_by = "site" if how == "groups" else None
    least_bad = predictions(classify(tmp_path / "c.npz", tmp_path / "b.npz", group_by=group_by))
    found = classify(tmp_path / "c.npz", tmp_path / "b.npz", group_by=group_by, unknown="other")
    table, rejected = predictions(found), found.rejected
    fitted = BatchClassifier().fit(known[labels != gone], labels[labels != gone])
    assert table["label"] == fitted.predict(batch, unknown="other").tolist()
    assert rejected.sum() > 10
    for i, strange in enumerate(rejected.tolist()):
        if not strange:
            assert {name: table[name][i] for name in table} == {name: least_bad[name][i] for name in least_bad}
            continue
        assert (table["label"][i], table["runner_up"][i]) == ("other", least_bad["label"][i])
        assert table["certainty"][i] == table["unknown"][i] > 0.5
        assert table["runner_up_certainty"][i] == least_bad["certainty"][i] <= 1 - table["unknown"][i]
    # What a person says about an item counts more.
    first = int(np.flatnonzero(rejected)[0])
    again = classify(
        tmp_path / "c.npz", tmp_path / "b.npz", group_by=group_by, unknown="other", given={first: truth[0]}
    )
    assert predictions(again)["label"][first] == truth[0]


def counting(monkeypatch, module, name):
    """Count calls of a function by what its first arguments are."""
    real, calls = getattr(module, name), []

    def counted(*arguments, **options):
        calls.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_files_are_read_once_and_what_is_known_is_checked_once(vectors, monkeypatch):
    folder, _, _, truth, weights = vectors
    (folder / "coarse.csv").write_text("class,coarse\n" + "".join(f"{name},any {name[0]}\n" for name in weights))
    once = [
        counting(monkeypatch, known_module, "read_weights"),
        counting(monkeypatch, known_module, "read_candidates"),
        counting(monkeypatch, known_module, "read_coarse"),
        counting(monkeypatch, task, "read_known"),
        counting(monkeypatch, task, "BatchContexts"),
    ]
    files = {"prior": "w.csv", "candidates": "list.txt", "coarse": "coarse.csv"}
    classify(
        folder / "c.npz",
        folder / "b.npz",
        given={20: truth[20]},
        **{name: folder / file for name, file in files.items()},
    )
    assert [len(calls) for calls in once] == [1] * len(once)


@pytest.mark.parametrize("known", [{}, {"pool": True}, {"given": {0: None}}])
def test_rows_are_transformed_once_and_groups_labelled_once_even_with_a_page(vectors, monkeypatch, known):
    folder, classifier, batch, *_ = vectors
    transformed = counting(monkeypatch, fitted, "transform_rows")
    answers = counting(monkeypatch, Batches, "labelled")
    found = classify(folder / "c.npz", folder / "b.npz", group_by="site", **known)
    write_page(found, folder / "page.html", title="t")
    # Which items are none of these is compared with the batch once more.
    of_given = [1, 1, len(batch)] if "given" in known else []
    wanted = sorted([classifier.model_.n_examples, len(batch), *of_given])
    assert sorted(len(rows) for _, rows, *_ in transformed) == wanted
    assert len(answers) == (2 if "pool" in known else 1)  # with siblings, once alone and once with their help
    data = page_data(found, "t")
    assert sorted(data["why"]) == list(range(len(batch)))
    assert len(data["first"]) > 0


def test_of_many_groups_those_with_most_doubt_are_explained(vectors, monkeypatch):
    folder, *_ = vectors
    found = classify(folder / "c.npz", folder / "b.npz", group_by="site")
    doubt = doubtful_items(found) + rejected_items(found)
    monkeypatch.setattr(steps, "MOST_EXPLAINED", 20)
    some = classify(folder / "c.npz", folder / "b.npz", group_by="site")
    assert list(some.about.batches.in_doubt) == [int(np.argmax(doubt))]
    assert sorted(page_data(some, "t")["why"]) == np.flatnonzero(groups_of_items(some) == np.argmax(doubt)).tolist()


def test_a_batch_is_labelled_again_without_reading_embedding_or_fitting(pictures, monkeypatch):
    wanted = classify(pictures / "catalogue", pictures / "batch")
    rows = {1: "green", 2: None, 5: "violet"}
    known = {"given": rows, "new_classes": ["violet"]}
    with_given = classify(pictures / "catalogue", pictures / "batch", **known)
    inputs = task.read_inputs(pictures / "catalogue", pictures / "batch")
    fitted = steps.embed(task.check(inputs))
    first = steps.label_batch(fitted)
    monkeypatch.setattr(task, "read_input", None)
    monkeypatch.setattr(steps, "embed_items", None)
    same_head = fitted.catalogue.head
    again = [steps.label_batch(fitted, **known), steps.label_batch(fitted)]
    assert fitted.catalogue.head is same_head
    for found, expected in ((first, wanted), (again[0], with_given), (again[1], wanted)):
        assert embedded(page_data(found, "t")) == embedded(page_data(expected, "t"))
    assert (again[0].about.given, again[0].about.n_named) == ({1: 1, 2: None, 4: 4}, 1)
    with pytest.raises(LabelError, match="none of the 4 classes"):
        steps.label_batch(fitted, given={1: "grene"})


def test_a_pooled_batch_is_labelled_the_same_again(tmp_path):
    known, labels, batch, _ = rows_of_clinc(mixed=True)
    np.savez(tmp_path / "c.npz", features=known, labels=labels)
    np.savez(tmp_path / "b.npz", features=batch, site=np.arange(len(batch)) % 3)
    inputs = task.read_inputs(tmp_path / "c.npz", tmp_path / "b.npz")
    fitted = steps.embed(task.check(inputs, group_by="site", pool=True))
    first, second = steps.label_batch(fitted), steps.label_batch(fitted)
    np.testing.assert_array_equal(first.expected_counts, second.expected_counts)
    expected = classify(tmp_path / "c.npz", tmp_path / "b.npz", group_by="site", pool=True, expect_unknown=0.4)
    found = steps.label_batch(fitted, expect_unknown=0.4)
    np.testing.assert_array_equal(found.unknown, expected.unknown)
    assert found.unknown.mean() > first.unknown.mean()


def test_a_catalogue_that_is_fitted_is_not_fitted_again(tmp_path, monkeypatch):
    known, labels, batch, _ = rows_of_clinc()
    np.savez(tmp_path / "c.npz", features=known, labels=labels)
    np.save(tmp_path / "b.npy", batch)
    model = tmp_path / "c.model"
    catalogue = fitted.FittedModel.of(known, labels)
    save_model(catalogue, model)
    given = {0: labels[0], 3: "a new class"}
    about = {"given": given, "new_classes": ["a new class"]}
    wanted = classify(tmp_path / "c.npz", tmp_path / "b.npy"), classify(tmp_path / "c.npz", tmp_path / "b.npy", **about)
    assert catalogue.reference
    monkeypatch.setattr(fitted, "fit_unknown_model", None)
    found = classify(model, tmp_path / "b.npy")
    monkeypatch.undo()
    for one, expected in zip((found, classify(model, tmp_path / "b.npy", **about)), wanted, strict=True):
        assert (class_names(one), one.about.n_examples) == (class_names(expected), expected.about.n_examples)
        assert predictions(one)["label"] == predictions(expected)["label"]
        np.testing.assert_allclose(one.probabilities, expected.probabilities, atol=1e-6)


def test_vectors_in_a_folder_of_parquet_files_may_be_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    known, labels, batch, _ = rows_of_clinc()
    np.save(tmp_path / "b.npy", batch)
    (tmp_path / "c").mkdir()
    for part in range(2):
        rows = slice(part, None, 2)
        table = pa.table({"one": known[rows].tolist(), "two": known[rows].tolist(), "label": labels[rows].tolist()})
        parquet.write_table(table, tmp_path / "c" / f"{part}.parquet")
    assert classify(tmp_path / "c", tmp_path / "b.npy", features="two").about.n_examples == len(known)


@pytest.mark.parametrize("argument", ["sequence", "pool", "order", "group_by"])
def test_values_in_the_place_of_a_column_are_refused(tmp_path, argument):
    np.savez(tmp_path / "c.npz", features=np.eye(3), labels=["a", "b", "c"])
    np.save(tmp_path / "b.npy", np.eye(3)[[0, 0, 1]])
    for values in ([0, 0, 1], np.array([0, 0, 1]), 3):
        with pytest.raises(OptionError, match=f"{argument} must name a column of the batch"):
            classify(tmp_path / "c.npz", tmp_path / "b.npy", **{argument: values})
