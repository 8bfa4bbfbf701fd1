"""Labels are what people mean: blanks at either end do not count, at any door; names that look alike are reported."""

import json
import sys

import numpy as np
import pytest

from handful import Session
from handful.banks import FeatureBank
from handful.catalogue.file import CatalogueFile
from handful.classification import classify, rescore
from handful.classification.labelled import class_names, messages, predictions
from handful.classification.names import read_names
from handful.errors import HandfulError, LabelError, SimilarNamesWarning, SkippedRowsWarning
from handful.estimators import BatchClassifier, TopScores, infer_scores
from handful.estimators.given import new_class_names
from handful.extraction.items import list_items
from handful.fitted import FittedModel, save_model
from handful.items import bring, import_labelled
from handful.items.classes import merge, rename
from handful.reading import read_bank
from handful.reading.class_names import BLANKS, is_missing, merged_names, plain_label, plain_labels, similar_names
from handful.review.memory import PageLabeller
from handful.review.opening import open_batch
from tests.review.reviews import under_review

COMPOSED, DECOMPOSED = "Käse", "Ka\u0308se"
X = np.eye(4, dtype=np.float32)
Y = [f"{COMPOSED} ", f"\xa0{DECOMPOSED}", "Brot\t", "Brot\ufeff"]
CLASSES = ["Brot", COMPOSED]


def test_every_blank_of_unicode_is_one():
    assert all(chr(c) in BLANKS for c in range(sys.maxunicode + 1) if chr(c).isspace())


def test_labels_that_are_not_text_stay_as_they_are():
    for labels in (np.array([1, -1]), np.array([0.5, 2.0]), np.array([True, False]), np.array(["a", "b"])):
        assert plain_labels(labels) is labels
    assert plain_labels(np.array(["a ", 7, None], dtype=object)).tolist() == ["a", 7, None]
    assert plain_labels(np.array([["a "], ["b"]])).tolist() == [["a"], ["b"]]
    assert plain_label(("a ", 3)) == ("a", 3)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), "", " \u200b", "nan", b" ", "<NA>"])
def test_missing_labels(missing):
    assert is_missing(missing)


def test_missing_labels_of_pandas():
    pandas = pytest.importorskip("pandas")
    assert is_missing(pandas.NA)
    assert is_missing(pandas.NaT)


@pytest.mark.parametrize("label", ["NA", "Unknown", "None", "null", "-", 0, False, "0"])
def test_words_are_labels(label):
    assert not is_missing(label)


def test_equal_names_stay_separate_classes_and_others_are_merged():
    codes, names, places = merged_names(np.array([0, 1, 2, 3]), ["same", "same", "a", "a "])
    assert (codes.tolist(), names, places.tolist()) == ([0, 1, 2, 2], ("same", "same", "a"), [0, 1, 2, 2])


@pytest.mark.parametrize(
    "names",
    [
        ("Fox", "fox"),
        ("red  fox", "red fox"),
        ("red_fox", "Red-Fox"),
        ("½", "1⁄2"),
        ("straße", "STRASSE"),
        ("ﬁsh", "fish"),
    ],
)
def test_names_that_look_alike(names):
    assert [one.names for one in similar_names(["wolf", *names], [1, 2, 3])] == [names]


def test_names_that_do_not_look_alike():
    assert similar_names(["-1", "1", "+1", "C", "C-", "a b", "ab", "Käse", "Kase", 1, ("a",), ("A",)], [1] * 12) == []


# -- every door ------------------------------------------------------------------------------------------------------


def csv_file(folder):
    rows = [",".join(map(str, [*vector, f'"{label}"'])) for vector, label in zip(X.tolist(), Y, strict=True)]
    (folder / "x.csv").write_text("\n".join(["e0,e1,e2,e3,label", *rows]) + "\n", encoding="utf-8")
    return folder / "x.csv"


def json_lines(folder):
    rows = [json.dumps({"features": v, "label": label}) for v, label in zip(X.tolist(), Y, strict=True)]
    (folder / "x.jsonl").write_text("\n".join(rows))
    return folder / "x.jsonl"


def spreadsheet(folder):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in (["e0", "e1", "e2", "e3", "label"], *([*v, k] for v, k in zip(X.tolist(), Y, strict=True))):
        book.active.append(row)
    book.save(folder / "x.xlsx")
    return folder / "x.xlsx"


def parquet(folder):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"features": list(X), "label": Y}).to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


def npz(folder):
    np.savez(folder / "x.npz", features=X, labels=Y)
    return folder / "x.npz"


def npz_of_numbers(folder):
    np.savez(folder / "y.npz", features=X, labels=np.arange(4), class_names=Y)
    return folder / "y.npz"


def cells(folder):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    obs = pandas.DataFrame({"cell_type": pandas.Categorical(Y)}, index=list("abcd"))
    anndata.AnnData(X, obs=obs, obsm={"X_pca": X}).write_h5ad(folder / "x.h5ad")
    return folder / "x.h5ad"


def saved_bank(folder):
    FeatureBank.from_arrays(X, np.arange(4), Y, splits={"base": [0, 1], "test": [2, 3]}).save(folder / "x.bank")
    return folder / "x.bank"


@pytest.mark.parametrize(
    "door",
    [csv_file, json_lines, spreadsheet, parquet, npz, npz_of_numbers, cells, saved_bank],
    ids=lambda f: f.__name__,
)
def test_files(tmp_path, door):
    bank = read_bank(door(tmp_path))
    assert sorted(bank.class_names) == CLASSES
    assert [bank.class_names[k] for k in bank.labels] == [COMPOSED, COMPOSED, "Brot", "Brot"]
    if bank.splits:
        assert {name: [bank.class_names[k] for k in of] for name, of in bank.splits.items()} == {
            "base": [COMPOSED],
            "test": ["Brot"],
        }


def test_the_estimator_and_what_is_known():
    classifier = BatchClassifier().fit(X, Y)
    assert classifier.classes_.tolist() == CLASSES
    assert classifier.partial_fit(X[:1], [f" {DECOMPOSED}"]).model_.shots.tolist() == [2, 3]
    known = ({"candidates": [" Brot"]}, {"candidates": [["Brot "]]}, {"prior": {"Brot\n": 1, f"{DECOMPOSED} ": 0}})
    for one in (*known, {"given": {0: "Brot "}}):
        assert classifier.infer(X[:1], **one).labels.tolist() == ["Brot"]
    found = classifier.infer(X[:1], coarse={" Brot": "food ", f"{COMPOSED} ": " food"})
    assert found.coarse.classes.tolist() == ["food"]
    assert classifier.add_names({"Brot ": X[2]}).remove_classes(["Brot\t"]).classes_.tolist() == [COMPOSED]
    marked = BatchClassifier().fit(X, ["a ", "a", "b", " ? "], unlabelled="?")
    assert marked.classes_.tolist() == ["a", "b"]
    assert BatchClassifier().fit(X, ["a", "a", "b", "  "], unlabelled="").classes_.tolist() == ["a", "b"]
    assert BatchClassifier().fit(X, [3, 3, 1, 1]).classes_.tolist() == [1, 3]


def test_a_missing_label_is_refused_with_its_row():
    pandas = pytest.importorskip("pandas")
    y = ["a", "b", " ", "b"]
    for labels in (y, np.array(y), pandas.Series(["a", "b", pandas.NA, None], dtype="string"), ["a", "b", None, "a"]):
        with pytest.raises(LabelError, match="y has no label in row 2"):
            BatchClassifier().fit(X, labels)
    with pytest.raises(LabelError, match="y has no label in row 3"):
        BatchClassifier().fit(X, ["a", "b", "c", float("nan")])


def test_scores():
    found = infer_scores(TopScores([["a ", "b"], [" a"]], [[0.7, 0.2], [0.9]]), kind="probabilities")
    assert found.classes.tolist() == ["a", "b"]


def test_files_of_what_is_known_and_folders(tmp_path):
    table, batch = csv_file(tmp_path), tmp_path / "b.npy"
    np.save(batch, X[:1])
    (tmp_path / "candidates.txt").write_text(" Brot \n")
    (tmp_path / "prior.csv").write_text(f"class,weight\n{DECOMPOSED},0\n Brot,1\n")
    (tmp_path / "coarse.csv").write_text(f"class,coarse\n{DECOMPOSED},food \nBrot , food\n")
    for known in ("candidates.txt", "prior.csv"):
        found = classify(table, batch, **{known.partition(".")[0]: tmp_path / known})
        assert predictions(found)["label"] == ["Brot"]
    assert class_names(classify(table, batch, given={0: " Brot"})) == tuple(CLASSES)
    assert predictions(classify(table, batch, coarse=tmp_path / "coarse.csv"))["coarse"] == ["food"]
    (tmp_path / "names.txt").write_text(f"{DECOMPOSED}\nBrot \n")
    scored = {"predictions": [{"filepath": "a.jpg", "classifications": {"classes": ["cow "], "scores": [0.8]}}]}
    (tmp_path / "predictions.json").write_text(json.dumps(scored))
    assert class_names(rescore(tmp_path / "predictions.json")) == ("cow",)


def test_similar_names_are_reported_with_counts_and_not_merged(tmp_path):
    labels = ["Fox", "fox", "fox", "wolf"]
    with pytest.warns(SimilarNamesWarning, match=r"'Fox' \(1\) and 'fox' \(2\)"):
        classifier = BatchClassifier().fit(X, labels)
    report = classifier.model_.report()
    assert [(one.names, one.counts) for one in report.similar] == [(("Fox", "fox"), (1, 2))]
    assert "'Fox' (1) and 'fox' (2)" in str(report)
    with pytest.warns(SimilarNamesWarning, match="'Wolf'"):
        BatchClassifier().fit(X, [1, 1, 2, 2]).fit(X, ["a", "b", "c", "wolf"]).partial_fit(
            X[:1] + 1, ["Wolf"], ["Wolf"]
        )
    np.savez(tmp_path / "c.npz", features=X, labels=labels)
    np.save(tmp_path / "b.npy", X[:2])
    found = classify(tmp_path / "c.npz", tmp_path / "b.npy")
    assert class_names(found) == ("Fox", "fox", "wolf")
    assert any("'Fox' (1) and 'fox' (2)" in message for message in messages(found))


# -- names that people type ------------------------------------------------------------------------------------------


def by_answer(folder, name):
    session = Session(X, BatchClassifier().fit(X, CLASSES * 2)).answer(0, name, new=True)
    return session.result.labels[0]


def from_nothing(folder, name):
    session = Session(X).answer(0, name, new=True)
    assert session.names == list(session.said.given.values())
    return session.result.labels[0]


def by_merge_in_a_session(folder, name):
    return Session(X).answer(0, "elk", new=True).merge("elk", name, new=True).names[0]


def as_candidate(folder, name):
    return Session(X, candidates=[name]).names[0]


def given_first(folder, name):
    session = Session(X, (X, CLASSES * 2), given={0: name}, new_classes=[name])
    return session.said.given[0]


def by_page(folder, name):
    with under_review(folder, PageLabeller(BatchClassifier().fit(X, CLASSES * 2), X)) as review:
        review.decide(review.number, [0], "new", name)
        assert review.session.result.labels[0] == review.session.said.given[0]
        return review.new_classes[0]


def by_merge_on_the_page(folder, name):
    with CatalogueFile.open(folder / "work.handful") as file:
        bring(file, "batch", X)
        review = open_batch(file, "batch")
        review.decide(review.number, [0], "new", "elk")
        review.merge(review.number, "elk", name)
        return review.new_classes[0]


def imported(folder, name):
    """A table with labels becomes items that have answers."""
    np.savez(folder / "c.npz", features=X, labels=[name, *CLASSES, "elk"])
    with CatalogueFile.open(folder / "work.handful") as file:
        import_labelled(file, folder / "c.npz")
        return next(label for label in file.said.classes if label not in (*CLASSES, "elk"))


def by_rename(folder, name):
    with CatalogueFile.open() as file:
        import_labelled(file, (X, ["elk", "elk", *CLASSES]), "examples")
        rename(file, "elk", name)
        return next(label for label in file.said.classes if label not in CLASSES)


def by_merge(folder, name):
    with CatalogueFile.open() as file:
        import_labelled(file, (X, ["elk", "hare", *CLASSES]), "examples")
        merge(file, ["elk", "hare"], name)
        return next(label for label in file.said.classes if label not in CLASSES)


TYPED = [
    by_answer,
    from_nothing,
    by_merge_in_a_session,
    as_candidate,
    by_page,
    by_merge_on_the_page,
    by_rename,
    by_merge,
]


def by_given(folder, name):
    found = BatchClassifier().fit(X, CLASSES * 2).infer(X, given={0: name}, new_classes=[name])
    return found.labels[0]


def by_new_classes(folder, name):
    new_class_names([name])
    return plain_label(name)


def by_fit(folder, name):
    return BatchClassifier().fit(X[:2], [name, "Brot"]).predict(X[:1])[0]


def by_names(folder, name):
    return BatchClassifier().add_names({name: X[0], "Brot": X[1]}).predict(X[:1])[0]


def by_file_of_names(folder, name):
    (folder / "names.json").write_text(json.dumps({name: "a text", "Brot": "bread"}))
    return read_names(folder / "names.json").labels[0]


OTHERS = [imported, given_first, by_given, by_new_classes, by_fit, by_names, by_file_of_names]
UNUSUAL = {
    "cafe\u0301": "café",
    "\ufeffbom": "bom",
    " fox\u200b": "fox",
    "f\u200box": "fox",
    "so\xadft": "soft",
    "nul\x00x": "nulx",
    "\u202egnp.exe": "gnp.exe",
    "\u0645\u06cc\u200c\u062e": "\u0645\u06cc\u200c\u062e",  # a joiner that belongs to the word
    "NA": "NA",
    "null": "null",
    "a\nb": "a\nb",
}


@pytest.mark.parametrize("door", [*TYPED, *OTHERS], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", UNUSUAL)
def test_a_name_is_kept_alike_at_every_door(tmp_path, door, name):
    assert door(tmp_path, name) == UNUSUAL[name]


@pytest.mark.parametrize("door", [*TYPED, *(door for door in OTHERS if door is not imported)], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["nan", "NaN", "<NA>", " ", "\u200b"])
def test_what_says_that_a_label_is_missing_is_no_name_at_any_door(tmp_path, door, name):
    with pytest.raises(HandfulError):
        door(tmp_path, name)


@pytest.mark.parametrize("door", TYPED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["none of these", "passed"])
def test_what_says_that_an_item_has_no_class_is_no_name_that_people_type(tmp_path, door, name):
    with pytest.raises(LabelError, match="cannot be the name of a class"):
        door(tmp_path, name)


def test_a_class_of_a_model_that_has_such_a_name_keeps_it(tmp_path):
    file = tmp_path / "c.model"
    save_model(FittedModel.of(X, np.array(["nan", "passed", *CLASSES])), file)
    assert Session(X, file).answer(1, "passed").result.labels[1] == "passed"


def test_a_folder_whose_name_says_that_a_label_is_missing_is_no_class(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("fox", "nan", "owl"):
        (tmp_path / name).mkdir()
        image.new("RGB", (4, 4)).save(tmp_path / name / "1.png")
    with pytest.warns(SkippedRowsWarning, match="1 of 3 items is skipped: 1 without a label: nan/1.png"):
        assert list_items(tmp_path).class_names == ("fox", "owl")
