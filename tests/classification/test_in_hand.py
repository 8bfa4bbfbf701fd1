"""What people have in hand: it can be read, or a sentence says what to do instead."""

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
from handful.errors import BankError, HandfulError, OptionError
from handful.estimators import BatchClassifier
from handful.extraction.encoder import Encoder
from handful.fitted import FittedModel
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
    if not isinstance(catalogue, FittedModel):
        assert handful.read(catalogue).n_rows == 24
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
        handful.read(thing)


def test_an_answer_about_rows_in_memory_is_not_written_as_a_file(tmp_path):
    found = BatchClassifier().fit(X, Y).infer(B)
    for write in (write_predictions, write_tasks, partial(write_page, title="today")):
        with pytest.raises(OptionError, match=r"rows in memory.*to_frame"):
            write(found, tmp_path / "labels.csv")
    assert not list(tmp_path.iterdir())


FRAMES = [
    pd.DataFrame,
    dict,
    lambda columns: pd.DataFrame(columns).to_dict("records"),
    pl.DataFrame,
    pa.table,
    datasets.Dataset.from_dict,
]


@pytest.mark.parametrize("make", FRAMES)
@pytest.mark.parametrize("blank", [None, "", " \u200b"])
def test_rows_without_a_text_are_listed(make, blank):
    table = handful.read(make({"text": [*BATCH_TEXTS[:3], blank, *BATCH_TEXTS[3:], blank]}))
    assert (table.n_rows, [str(one) for one in table.skipped]) == (
        10,
        ["row 3: its 'text' is blank", "row 11: its 'text' is blank"],
    )


@pytest.mark.parametrize("blank", [float("nan"), pd.NA, pd.NaT])
def test_a_missing_text_in_records_is_blank(blank):
    table = handful.read([{"text": text} for text in [*BATCH_TEXTS, blank]])
    assert (table.n_rows, [one.row for one in table.skipped]) == (10, [10])


def test_files_alone_are_classified(tmp_path):
    pd.DataFrame(frame(X, Y)).to_parquet(tmp_path / "c.parquet")
    for both in (((X, Y), tmp_path / "c.parquet"), (tmp_path / "c.parquet", pd.DataFrame(frame(B)))):
        with pytest.raises(OptionError, match=r"classify takes paths, got .*handful\.label"):
            handful.classify(*both)
