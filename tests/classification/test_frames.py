"""label: the same frame comes back, with the blank labels filled in and a reason for each that is not."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from PIL import Image

from handful import classify, label
from handful.errors import BankError, OptionError, SkippedRowsWarning
from handful.extraction.encoder import Encoder
from tests.items_at_hand import small_encoder

pytestmark = pytest.mark.filterwarnings("ignore::handful.errors.UnlikeCatalogueWarning")

RNG = np.random.default_rng(0)
NAMES = ["ant", "bee", "cat"]
TRUTH = [*(name for name in NAMES for _ in range(8)), *["bee"] * 6, *["cat"] * 4]
N_EXAMPLES = 24
CENTRES = 3 * np.eye(3, 4)
POINTS = CENTRES[[NAMES.index(name) for name in TRUTH]] + 0.3 * RNG.normal(size=(len(TRUTH), 4))
ORDER = RNG.permutation(len(TRUTH))
MADE = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "Arrow": pa.table}
BLANK = [None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), "", " \xa0"]
COLOURS = {"ant": (250, 0, 0), "bee": (0, 250, 0), "cat": (0, 0, 250)}


def with_blanks(values, blank=None):
    """Shuffle the labels, those of the batch blank."""
    return [values[row] if row < N_EXAMPLES else blank for row in ORDER]


def truth():
    return [TRUTH[row] for row in ORDER]


def points():
    return POINTS[ORDER]


def columns(found):
    """Return the columns as lists."""
    if isinstance(found, pd.DataFrame):
        return {name: [None if one is None or one != one else one for one in found[name]] for name in found.columns}
    return found.to_dict(as_series=False) if isinstance(found, pl.DataFrame) else found.to_pydict()


@pytest.fixture
def _encoders(monkeypatch):
    def vowels(sentences):
        return torch.tensor([[float(sentence.count(letter)) for letter in "aeiou"] for sentence in sentences])

    text = Encoder.of_sentences(torch.nn.Identity(), vowels, name="vowels", preprocessing="vowels counted")
    made = {"minilm": text, "efficientnet-lite0": small_encoder()}
    monkeypatch.setattr("handful.extraction.encoders.load_encoder", lambda name, device: made[name])


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_the_same_rows_come_back_with_the_blank_labels_filled_in(make):
    given = {"id": list(range(len(TRUTH))), "vector": points().tolist(), "label": with_blanks(TRUTH)}
    frame = make(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkippedRowsWarning)
        found = columns(label(frame))
    assert list(found) == ["id", "vector", "label", "certainty", "unknown", "reason"]
    assert found["label"] == truth()
    assert found["id"] == given["id"]
    assert found["reason"] == [None] * len(TRUTH)
    for row, item in enumerate(ORDER):
        of_example = item < N_EXAMPLES
        assert (found["certainty"][row] is None) == of_example
        assert (found["unknown"][row] is None) == of_example
        assert of_example or 0.5 < found["certainty"][row] <= 1
    assert columns(frame)["label"] == given["label"], "what was given has changed"


@pytest.mark.parametrize("blank", BLANK)
def test_every_kind_of_blank_label_is_filled_in(blank):
    frame = pd.DataFrame({"vector": points().tolist(), "label": pd.Series(with_blanks(TRUTH, blank), dtype=object)})
    assert label(frame)["label"].tolist() == truth()


@pytest.mark.parametrize("index", [[f"n{i}" for i in range(len(TRUTH))], [0] * len(TRUTH)])
def test_an_index_of_pandas_comes_back(index):
    frame = pd.DataFrame({"vector": points().tolist(), "label": with_blanks(TRUTH)}, index=index)
    found = label(frame)
    assert found.index.tolist() == index
    assert found["label"].tolist() == truth()


@pytest.mark.parametrize(
    ("values", "make", "kind"),
    [
        (["ant", "bee", "cat"], lambda of: pd.Series(of, dtype="category"), "category"),
        (["ant", "bee", "cat"], lambda of: pd.Series(of, dtype="string"), "string"),
        ([1, 2, 3], lambda of: pd.Series(of, dtype="Int64"), "Int64"),
        ([1.0, 2.0, 3.0], lambda of: pd.Series(of, dtype=float), "float64"),
        ([True, False, True], lambda of: pd.Series(of, dtype=object), "object"),
    ],
)
def test_labels_keep_their_type(values, make, kind):
    of = dict(zip(NAMES, values, strict=True))
    labels = with_blanks([of[name] for name in TRUTH])
    found = label(pd.DataFrame({"vector": points().tolist(), "label": make(labels)}))
    assert str(found["label"].dtype) == kind
    assert found["label"].tolist() == [of[name] for name in truth()]


@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(NAMES), pl.String()])
def test_labels_of_polars_keep_their_type(kind):
    frame = pl.DataFrame({"vector": points().tolist(), "label": with_blanks(TRUTH)}, schema_overrides={"label": kind})
    found = label(frame)
    assert found.schema["label"] == kind
    assert found["label"].to_list() == truth()


def far_away():
    """Return the frame with five rows that are like none of the classes."""
    others = 3 * np.array([[-1.0, -1, -1, 4]]) + 0.1 * RNG.normal(size=(5, 4))
    return {"vector": [*points().tolist(), *others.tolist()], "label": [*with_blanks(TRUTH), *[None] * 5]}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_rows_like_none_of_the_classes_get_the_label_that_was_asked_for(make):
    found = columns(label(make(far_away()), unknown="none of these"))
    assert found["label"] == [*truth(), *["none of these"] * 5]
    assert min(found["unknown"][-5:]) > 0.5
    kinds = pl.DataFrame(far_away(), schema_overrides={"label": pl.Enum(NAMES)})
    assert label(kinds, unknown="none of these")["label"].to_list()[-1] == "none of these"
    codes = pa.table(far_away() | {"label": [None if one is None else NAMES.index(one) for one in far_away()["label"]]})
    assert label(codes, unknown="none of these")["label"].to_pylist()[-1] == "none of these"


@pytest.mark.usefixtures("_encoders")
@pytest.mark.parametrize("blank", [None, "", " \u200b"])
@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_rows_without_a_text_are_kept_with_the_reason_and_a_warning(make, blank):
    texts = [f"{'aeiou'[NAMES.index(name)] * 9} {i}" for i, name in enumerate(truth())]
    labels = with_blanks(TRUTH)
    example, item = labels.index("ant"), labels.index(None)
    texts[example] = texts[item] = blank
    texts.append(blank)
    labels.append(None)
    said = "3 of 35 items are skipped: 3 blank: row"
    with pytest.warns(SkippedRowsWarning, match=f"the frame: {said}") as warned:
        found = columns(label(make({"message": texts, "intent": labels}), text="message", label="intent"))
    assert len(warned) == 1
    assert found["intent"] == [None if row == item else one for row, one in enumerate([*truth(), None])]
    assert [row for row, one in enumerate(found["reason"]) if one] == sorted([example, item, len(texts) - 1])
    assert set(found["reason"]) == {None, "its 'message' is blank"}
    assert found["message"] == texts


@pytest.mark.usefixtures("_encoders")
def test_photographs_by_their_paths(tmp_path):
    paths = []
    for number, name in enumerate(truth()):
        path = tmp_path / f"{number}.png"
        Image.fromarray((np.zeros((16, 16, 3)) + COLOURS[name]).astype(np.uint8)).save(path)
        paths.append(str(path))
    labels = with_blanks(TRUTH)
    example, item = labels.index("ant"), labels.index(None)
    for row in (example, item):
        (tmp_path / f"{row}.png").write_bytes(b"cut short")
    frame = pd.DataFrame({"file": [*paths, str(tmp_path / "no.png")], "text": "a note", "label": [*labels, None]})
    with pytest.warns(SkippedRowsWarning, match="3 of 35 items are skipped"):
        found = label(frame, path="file")
    assert found["label"].tolist()[:-1] == [None if row == item else one for row, one in enumerate(truth())]
    assert np.flatnonzero(found["reason"].notna()).tolist() == sorted([example, item, len(labels)])


def measured():
    """Return rows in units that only scaling makes comparable."""
    rows = dict(zip(["height", "width", "weight", "age"], (points() * [1, 1000, 0.01, 1]).T.tolist(), strict=True))
    return rows | {"year": list(range(2000, 2000 + len(TRUTH)))}


@pytest.mark.parametrize("named", [None, ["height", "width", "weight"]])
def test_measurements_are_scaled(named):
    labels = with_blanks([NAMES.index(name) for name in TRUTH])
    found = label(pd.DataFrame(measured() | {"species": labels}), label="species", columns=named)
    assert found["species"].tolist() == [NAMES.index(name) for name in truth()]


def test_a_row_without_a_number_is_left_out_or_filled_in():
    rows = measured()
    row = with_blanks(TRUTH).index(None)
    rows["height"][row] = None
    frame = pd.DataFrame(rows | {"label": with_blanks(TRUTH)})
    named = ["height", "width", "weight", "age"]
    with pytest.warns(SkippedRowsWarning, match="1 of 34 items is skipped"):
        found = label(frame, columns=named)
    assert found["label"][row] is None
    assert "must have a number in column 'height'" in found["reason"][row]
    assert label(frame, columns=named, missing="mean")["reason"].isna().all()


@pytest.mark.parametrize("make", [list, np.asarray, lambda row: [np.float32(one) for one in row], tuple])
def test_a_vector_of_another_length_is_left_out_by_its_row(make):
    vectors = [make(POINTS[row]) for row in ORDER]
    blank = next(at for at, row in enumerate(ORDER) if row >= N_EXAMPLES)
    vectors[blank] = make(POINTS[0][:2])
    frame = pd.DataFrame({"vector": vectors, "label": with_blanks(TRUTH)})
    with pytest.warns(SkippedRowsWarning, match=f"row {blank}: it has 2 numbers in 'vector', and most rows have 4"):
        found = label(frame)
    assert found["reason"].dropna().index.tolist() == [blank]
    assert found["label"].drop(blank).tolist() == [name for at, name in enumerate(truth()) if at != blank]


def test_each_group_is_labelled_on_its_own():
    site = ["wood" if name == "bee" else "marsh" for name in truth()]
    frame = pd.DataFrame({"vector": points().tolist(), "label": with_blanks(TRUTH), "site": site})
    found = label(frame, group_by="site")
    assert found["label"].tolist() == truth()
    alone = [label(frame[(frame["site"] == one) | frame["label"].notna()]) for one in ("wood", "marsh")]
    for part in alone:
        there = part.index[part["certainty"].notna()]
        assert np.allclose(found.loc[there, "certainty"], part.loc[there, "certainty"])


def test_a_frame_without_blank_labels_comes_back():
    frame = pd.DataFrame({"vector": points().tolist(), "label": truth()})
    found = label(frame)
    assert found["label"].tolist() == truth()
    assert found[["certainty", "unknown", "reason"]].isna().all(axis=None)


def test_progress_is_reported():
    reports = []
    rows = 2 * len(TRUTH)
    frame = pd.DataFrame({"vector": points().tolist() * 2, "label": with_blanks(TRUTH) * 2})
    label(frame, on_progress=reports.append)
    assert all(one.done <= rows for one in reports)
    assert all(a.done <= b.done for a, b in pairwise(reports) if a.stage == b.stage)


GOOD = {"vector": points().tolist(), "label": with_blanks(TRUTH)}


@pytest.mark.parametrize(
    ("frame", "options", "sentence"),
    [
        ([1, 2], {}, "a frame of pandas, polars or Arrow, got list; for files there is handful.classify"),
        (pd.Series([1, 2]), {}, "a frame of pandas, polars or Arrow, got Series"),
        (pl.DataFrame(GOOD).lazy(), {}, "got LazyFrame|collect the LazyFrame"),
        (pd.DataFrame(GOOD), {"label": "kind"}, "no column 'kind' for the labels"),
        (pd.DataFrame(GOOD | {"label": None}), {}, "no row with a label"),
        (pd.DataFrame(GOOD | {"reason": 1}), {}, "has a column 'reason' already"),
        (pd.DataFrame(GOOD), {"text": "a", "path": "b"}, "in one way what a row is.*got text and path"),
        (pd.DataFrame(GOOD), {"text": "message"}, "no column 'message'"),
        (pd.DataFrame(GOOD), {"path": "file"}, "no column 'file'"),
        (pd.DataFrame(GOOD), {"columns": ["height"]}, "no column 'height'"),
        (pd.DataFrame(GOOD), {"columns": "height"}, "a list of names"),
        (pd.DataFrame({"name": ["a", "b"], "label": ["x", None]}), {}, "neither vectors"),
        (pd.DataFrame(GOOD)[:0], {}, "no rows"),
    ],
)
def test_what_cannot_be_labelled_is_refused_with_a_sentence(frame, options, sentence):
    with pytest.raises((BankError, OptionError), match=sentence):
        label(frame, **options)


@pytest.mark.parametrize("named", [{"labels": "label"}, {}])
def test_a_table_that_is_both_sides_is_labelled_where_it_has_no_label(named, tmp_path):
    rows = measured() | {"label": with_blanks(TRUTH)}
    table = pd.DataFrame(rows)
    table.to_csv(tmp_path / "x.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkippedRowsWarning)  # rows to be labelled are not left out of the examples
        answer = classify(tmp_path / "x.csv", tmp_path / "x.csv", features="height,width,weight,age", **named)
    blank = [at for at, label in enumerate(rows["label"]) if label is None]
    assert answer.labels.tolist() == [truth()[at] for at in blank]
    table.assign(label=truth()).to_csv(tmp_path / "all.csv", index=False)
    answer = classify(tmp_path / "all.csv", tmp_path / "all.csv", features="height,width,weight,age", **named)
    assert len(answer.labels) == len(truth())
