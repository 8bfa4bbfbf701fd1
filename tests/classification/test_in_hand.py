"""What people have in hand, as catalogue and as batch: it works, or a sentence says what to do instead."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from PIL import Image

import datasets
import handful
from handful import FeatureBank
from handful.classification import write_page, write_predictions, write_tasks
from handful.classification.labelled import class_names, how_labelled, predictions
from handful.errors import BankError, HandfulError, OptionError, SkippedRowsWarning
from handful.estimators import BatchClassifier
from handful.extraction.encoder import Encoder
from tests.items_at_hand import small_encoder

pytestmark = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")

RNG = np.random.default_rng(0)
NAMES = ["ant", "bee", "cat"]
CENTRES = 3 * np.eye(3, 4)
Y = [name for name in NAMES for _ in range(8)]
X = CENTRES.repeat(8, axis=0) + 0.3 * RNG.normal(size=(24, 4))
TRUTH = ["bee"] * 6 + ["cat"] * 4
B = CENTRES[[1] * 6 + [2] * 4] + 0.3 * RNG.normal(size=(10, 4))
TEXTS = [f"{'aeiou'[NAMES.index(name)] * 9} {i}" for i, name in enumerate(Y)]
BATCH_TEXTS = [f"{'aeiou'[NAMES.index(name)] * 8} {i}" for i, name in enumerate(TRUTH)]
COLOURS = {"ant": (250, 0, 0), "bee": (0, 250, 0), "cat": (0, 0, 250)}


def vowels(sentences):
    return torch.tensor([[float(sentence.count(letter)) for letter in "aeiou"] for sentence in sentences])


@pytest.fixture
def _encoders(monkeypatch):
    text = Encoder.of_sentences(torch.nn.Identity(), vowels, name="vowels", preprocessing="vowels counted")
    made = {"minilm": text, "efficientnet-lite0": small_encoder()}
    monkeypatch.setattr("handful.extraction.encoders.load_encoder", lambda name, device: made[name])


def pictures(folder, names):
    """Paths of pictures of one colour."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{i}.png" for i in range(len(names))]
    for path, name in zip(paths, names, strict=True):
        Image.fromarray((np.zeros((16, 16, 3)) + COLOURS[name]).astype(np.uint8)).save(path)
    return paths


def frame(vectors, labels=None, name="vector"):
    return {name: [row.tolist() for row in vectors]} | ({} if labels is None else {"label": labels})


def measured(vectors, labels=None):
    # In other units, which only scaling makes comparable.
    columns = dict(zip(["height", "width", "weight", "age"], (vectors * [1, 1000, 0.01, 1]).T, strict=True))
    return columns | ({} if labels is None else {"label": labels})


def file(path, write):
    write(path)
    return path


# Every thing: what it is as a catalogue and as a batch, and whether BatchClassifier takes the same batch.
THINGS = {
    "array and labels": lambda d: ((X, Y), B, True),
    "array in single precision, array of labels": lambda d: ((X.astype(np.float32), np.array(Y)), B, True),
    "lists of numbers": lambda d: ((X.tolist(), Y), B.tolist(), True),
    "list of arrays": lambda d: ((list(X), tuple(Y)), list(B), True),
    "tensors": lambda d: ((torch.tensor(X), Y), torch.tensor(B), True),
    "labels of pandas": lambda d: ((X, pd.Series(Y, dtype="string")), pd.DataFrame(B), True),
    "labels of categories": lambda d: ((pd.DataFrame(X), pd.Series(Y, dtype="category")), B, True),
    "pandas with a column of vectors": lambda d: (pd.DataFrame(frame(X, Y)), pd.DataFrame(frame(B)), True),
    "pandas with numbered columns": lambda d: (pd.DataFrame(X).assign(label=Y), pd.DataFrame(B), True),
    "pandas with measurements": lambda d: (pd.DataFrame(measured(X, Y)), pd.DataFrame(measured(B)), True),
    "polars with a column of vectors": lambda d: (pl.DataFrame(frame(X, Y)), pl.DataFrame(frame(B)), True),
    "polars with measurements": lambda d: (pl.DataFrame(measured(X, Y)), pl.DataFrame(measured(B)), True),
    "lazy polars": lambda d: (pl.DataFrame(frame(X, Y)).lazy(), pl.DataFrame(frame(B)), True),
    "Arrow with a column of vectors": lambda d: (pa.table(frame(X, Y)), pa.table(frame(B)), True),
    "Arrow with measurements": lambda d: (pa.table(measured(X, Y)), pa.table(measured(B)), True),
    "batch of Arrow": lambda d: (pa.RecordBatch.from_pydict(frame(X, Y)), pa.RecordBatch.from_pydict(frame(B)), True),
    "dataset": lambda d: (datasets.Dataset.from_dict(frame(X, Y)), datasets.Dataset.from_dict(frame(B)), False),
    "dict of columns": lambda d: (frame(X, Y), frame(B), False),
    "list of dicts": lambda d: (
        [{"vector": v.tolist(), "label": y} for v, y in zip(X, Y, strict=True)],
        [{"vector": v.tolist()} for v in B],
        False,
    ),
    "sparse matrix": lambda d: ((scipy.sparse.csr_matrix(X), Y), scipy.sparse.csr_matrix(B), False),
    "bank": lambda d: (FeatureBank.from_arrays(X.astype(np.float32), np.arange(3).repeat(8), NAMES), B, True),
    "what read returned": lambda d: (handful.read((X, Y)), handful.read(B), False),
    "fitted catalogue": lambda d: (BatchClassifier().fit(X, Y).model_, B, True),
    "file and frame": lambda d: (
        file(d / "c.parquet", pd.DataFrame(frame(X, Y)).to_parquet),
        pd.DataFrame(frame(B)),
        True,
    ),
    "frame and file": lambda d: (
        pd.DataFrame(measured(X, Y)),
        file(d / "b.csv", lambda p: pd.DataFrame(measured(B)).to_csv(p, index=False)),
        False,
    ),
    "Parquet with measurements": lambda d: (
        file(d / "c.parquet", pd.DataFrame(measured(X, Y)).to_parquet),
        file(d / "b.parquet", pd.DataFrame(measured(B)).to_parquet),
        False,
    ),
    "table of Excel": lambda d: (
        file(d / "c.xlsx", lambda p: pd.DataFrame(measured(X, Y)).to_excel(p, index=False)),
        file(d / "b.csv", lambda p: pd.DataFrame(measured(B)).to_csv(p, index=False, sep=";", decimal=",")),
        False,
    ),
    "texts and labels": lambda d: ((TEXTS, Y), BATCH_TEXTS, False),
    "frame of texts": lambda d: (pd.DataFrame({"text": TEXTS, "label": Y}), pd.Series(BATCH_TEXTS), False),
    "polars of texts": lambda d: (pl.DataFrame({"text": TEXTS, "label": Y}), pl.Series(BATCH_TEXTS), False),
    "paths of images": lambda d: ((pictures(d / "c", Y), Y), pictures(d / "b", TRUTH), False),
    "frame of paths": lambda d: (
        pd.DataFrame({"path": map(str, pictures(d / "c", Y)), "label": Y}),
        [str(path) for path in pictures(d / "b", TRUTH)],
        False,
    ),
}


@pytest.mark.usefixtures("_encoders")
@pytest.mark.parametrize("thing", THINGS)
def test_things_in_hand(tmp_path, thing):
    catalogue, batch, fits = THINGS[thing](tmp_path)
    table = handful.read(batch)
    assert table.n_rows == 10
    found = handful.classify(catalogue, batch)
    assert predictions(found)["label"] == TRUTH
    if fits and "measurements" not in thing:
        assert BatchClassifier().fit(X, Y).predict(batch).tolist() == TRUTH
    elif not fits:
        # The estimators take arrays and frames of numbers, as those of scikit-learn do, and say what else does.
        with pytest.raises((HandfulError, ValueError, TypeError)):
            BatchClassifier().fit(X, Y).predict(batch)


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (7, "a int is nothing that can be read; give a path, a frame"),
        ([], "the list has no entries"),
        ({}, "has no columns"),
        (["a", 1], "give texts, paths of images, or vectors of one length"),
        ([[1.0, 2.0], [1.0]], "vectors of one length"),
        (np.arange(4.0), r"one axis; one vector is a batch \[vector\]"),
        (np.array([[0.0, np.nan, 1, 1]]), "row 0, column 1 of the array is nan"),
        ((X, Y[:3]), "one label per row: X has 24 rows, y has 3"),
        (pd.DataFrame({"name": ["a"], "place": ["b"]}), "neither vectors"),
        (datasets.DatasetDict(train=datasets.Dataset.from_dict(frame(B))), r"one split of the dataset.*\['train'\]"),
    ],
)
def test_other_things_are_refused_with_a_sentence(thing, sentence):
    with pytest.raises(BankError, match=sentence):
        handful.classify((X, Y), thing)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, datasets.Dataset.from_dict])
def test_frames_come_back_as_they_were_given(make):
    batch = make(frame(B) | {"site": ["wood"] * 10, "id": [f"n{i}" for i in range(10)]})
    found = handful.classify((X, Y), batch).to_frame()
    assert type(found) is type(batch)
    assert [str(label) for label in found["label"]] == TRUTH
    assert {str(site) for site in found["site"]} == {"wood"}


def test_an_index_of_pandas_comes_back_also_in_groups():
    batch = pd.DataFrame(frame(B) | {"site": ["x", "y"] * 5}, index=[f"n{i}" for i in range(10)])
    found = handful.classify((X, Y), batch, group_by="site")
    assert found.to_frame().index.tolist() == batch.index.tolist()
    assert found["y"].to_frame().index.tolist() == batch.index[1::2].tolist()
    assert list(found) == ["x", "y"]
    alone = handful.classify((X, Y), batch)
    assert (len(alone), alone[0].label) == (10, "bee")
    assert "10 items, labelled jointly" in alone._repr_html_()


def test_missing_labels_are_no_classes():
    labels = pd.Series([*Y[:-1], pd.NA], dtype="string")
    found = handful.classify((X, labels), B)
    assert (found.about.n_examples, class_names(found)) == (23, tuple(NAMES))


def test_measurements_are_scaled_by_the_examples_and_said():
    found = handful.classify(measured(X, Y), measured(B))
    assert "features of the columns height, width" in how_labelled(found)
    other = {name: column for name, column in measured(B).items() if name != "age"}
    with pytest.raises(BankError, match="no numbers in the column 'age', which the catalogue has"):
        handful.classify(measured(X, Y), other)
    swapped = dict(reversed(measured(B).items()))
    assert predictions(handful.classify(measured(X, Y), swapped))["label"] == TRUTH


def test_a_named_column_of_numbers_is_no_measurement():
    codes = [NAMES.index(name) for name in Y]
    catalogue = {**measured(X), "species": codes}
    found = handful.classify(catalogue, {**measured(B), "plot": [1, 2] * 5}, labels="species", group_by="plot")
    assert set(predictions(found)["label"]) <= {"0", "1", "2"}
    with pytest.raises(BankError, match="which are scaled by examples"):
        handful.classify(BatchClassifier().fit(X, Y).model_, measured(B))


def test_an_answer_about_rows_in_memory_is_not_written_as_a_file(tmp_path):
    found = BatchClassifier().fit(X, Y).infer(B)
    for write in (write_predictions, write_tasks, partial(write_page, title="today")):
        with pytest.raises(OptionError, match=r"rows in memory.*handful\.classify.*to_frame"):
            write(found, tmp_path / "labels.csv")
    assert not list(tmp_path.iterdir())


BLANK_LABELS = [None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), "", " \xa0"]
HOLDERS = [pd.DataFrame, dict, lambda columns: pd.DataFrame(columns).to_dict("records")]
FRAMES = [*HOLDERS, pl.DataFrame, pa.table, datasets.Dataset.from_dict]


@pytest.mark.parametrize("make", HOLDERS)
@pytest.mark.parametrize("blank", BLANK_LABELS)
def test_one_frame_given_twice_labels_the_rows_without_a_label(make, blank):
    rows = make(frame(np.concatenate([X, B]), [*Y, *[blank] * len(B)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkippedRowsWarning)
        found = handful.classify(rows, rows)
    assert predictions(found)["label"] == TRUTH
    assert predictions(found)["row"] == list(range(24, 34))
    assert found.about.n_examples == 24


@pytest.mark.parametrize("make", FRAMES)
def test_any_frame_can_have_examples_and_the_batch(make):
    rows = make(frame(np.concatenate([B[:5], X, B[5:]]), [*[None] * 5, *Y, *[None] * 5]))
    assert predictions(handful.classify(rows, rows))["label"] == TRUTH
    codes = make(frame(np.concatenate([X, B]), [*map(NAMES.index, Y), *[None] * len(B)]))
    assert predictions(handful.classify(codes, codes))["label"] == [str(NAMES.index(name)) for name in TRUTH]
    labelled = make(frame(X, Y))
    assert len(handful.classify(labelled, labelled).labels) == len(X)


@pytest.mark.parametrize("make", FRAMES)
@pytest.mark.parametrize("blank", [None, "", " \u200b"])
@pytest.mark.usefixtures("_encoders")
def test_rows_of_a_frame_without_a_text_are_counted_by_a_warning(make, blank):
    texts = [*TEXTS[:3], blank, *TEXTS[3:], blank]
    rows = make({"text": texts, "label": ["ant", "ant", "ant", "ant", *Y[3:], "cat"]})
    with pytest.warns(SkippedRowsWarning, match="2 of 26 items are left out: 2 blank: row 3: its 'text' is blank"):
        found = handful.classify((TEXTS, Y), rows)
    assert len(found.labels) == 24
    alone = make({"text": [*BATCH_TEXTS, blank]})
    with pytest.warns(SkippedRowsWarning, match="1 of 11 items is left out: 1 blank: row 10"):
        assert predictions(handful.classify((TEXTS, Y), alone))["label"] == TRUTH


@pytest.mark.usefixtures("_encoders")
@pytest.mark.parametrize("blank", [float("nan"), pd.NA, pd.NaT])
def test_a_missing_text_in_records_is_blank(blank):
    rows = [{"text": text} for text in [*BATCH_TEXTS, blank]]
    with pytest.warns(SkippedRowsWarning, match="1 of 11 items is left out: 1 blank: row 10"):
        assert predictions(handful.classify((TEXTS, Y), rows))["label"] == TRUTH


def test_rows_of_a_frame_without_a_vector_are_counted_by_a_warning():
    with pytest.warns(SkippedRowsWarning, match="1 of 11 items is left out: 1 unreadable: row 10"):
        handful.classify((X, Y), {"vector": [*B.tolist(), None]})


@pytest.mark.usefixtures("_encoders")
def test_one_frame_of_texts_labels_the_rows_without_a_label_and_counts_the_blank_ones():
    texts = [*TEXTS, *BATCH_TEXTS, ""]
    rows = pd.DataFrame({"text": texts, "label": [*Y, *[None] * len(TRUTH), "cat"]})
    with pytest.warns(SkippedRowsWarning, match="1 blank: row 34"):
        found = handful.classify(rows, rows)
    assert predictions(found)["label"] == TRUTH
