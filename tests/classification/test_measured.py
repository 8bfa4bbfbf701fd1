"""Missing numbers of vectors: refused with row and column, or filled with the mean of the examples' column."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import handful
from handful import classify
from handful.classification.labelled import predictions
from handful.classification.measured import scaled
from handful.cli.main import main
from handful.errors import BankError, OptionError
from handful.extraction.options import MEAN
from handful.reading.header import Asked
from handful.reading.in_hand import table_in_hand
from handful.reading.read import read_input
from handful.reading.table import Table

EXAMPLES = pd.DataFrame(
    {"height": [1.0, None, 3.0, 9.0, 10.0, 11.0], "width": [50.0, 40, 60, 10, 20, 30], "label": list("aaabbb")}
)
BATCH = pd.DataFrame({"width": [55.0, None, 15.0, None], "height": [2.0, 1.5, None, 10.5], "id": list("pqrs")})
FILLED = {"height": 34 / 5, "width": 35.0}


def csv(frame, path):
    frame.to_csv(path, index=False)
    return path


def semicolons(frame, path):
    frame.to_csv(path, index=False, sep=";", decimal=",")
    return path


def parquet(frame, path):
    frame.to_parquet(path)
    return path


def xlsx(frame, path):
    frame.to_excel(path, index=False)
    return path


def json_lines(frame, path):
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


WRITTEN = {"x.csv": csv, "y.csv": semicolons, "x.parquet": parquet, "x.xlsx": xlsx, "x.jsonl": json_lines}


def classified(catalogue, batch, **options):
    """Label frames, written as files."""
    with tempfile.TemporaryDirectory() as folder:
        frames = {"c": catalogue, "b": batch}
        paths = [
            parquet(one, Path(folder) / f"{side}.parquet") if isinstance(one, pd.DataFrame) else one
            for side, one in frames.items()
        ]
        return classify(*paths, **options)


def labels_and_chances(found):
    return predictions(found)["label"], found.probabilities


@pytest.mark.parametrize("kind", WRITTEN)
def test_filled_with_the_mean_of_the_examples(tmp_path, kind):
    def given(frame, side):
        return WRITTEN[kind](frame, tmp_path / f"{side}_{kind}")

    labels, chances = labels_and_chances(classify(given(EXAMPLES, "c"), given(BATCH, "b"), missing="mean"))
    by_hand = classified(EXAMPLES.fillna(FILLED), BATCH.fillna(FILLED))
    assert labels == predictions(by_hand)["label"] == ["a", "a", "b", "b"]
    np.testing.assert_allclose(chances, by_hand.probabilities, atol=1e-5)


def test_refused_with_row_and_column_otherwise(tmp_path):
    path = csv(EXAMPLES, tmp_path / "c.csv")
    batch = csv(BATCH, tmp_path / "b.csv")
    with pytest.raises(BankError, match=r"3 of 4 rows .* line 3: it must have a number in column 'width', got ''"):
        classify(path, batch)


def test_vectors_that_are_no_measurements_are_filled_too():
    X = np.eye(4).repeat(3, 0)
    gap, by_hand = X.copy(), X.copy()
    gap[0, 1], by_hand[0, 1] = np.nan, X[1:, 1].mean()
    y = list("aaabbbcccddd")
    names = [f"emb_{k}" for k in range(4)]
    batch = pd.DataFrame(X[[0, 3, 3]], columns=names)
    with_gap, filled = (pd.DataFrame(one, columns=names).assign(label=y) for one in (gap, by_hand))
    found = classified(with_gap, batch, missing="mean")
    np.testing.assert_allclose(found.probabilities, classified(filled, batch).probabilities, atol=1e-6)
    with pytest.raises(BankError, match="row 0, column 1 of the array is nan"):
        handful.read((gap, y))
    gap[2, 2] = np.inf
    with pytest.raises(BankError, match="row 2, column 2 of the array is inf"):
        table_in_hand((gap, y), Asked(gaps=True))


def test_a_row_without_any_number_is_left_out(tmp_path):
    frame = pd.DataFrame({"id": ["p", "q"], "height": [None, 2.0], "width": [None, None]})
    frame["width"] = frame["width"].astype(float)
    for name, write in WRITTEN.items():
        path = write(frame, tmp_path / name)
        table = read_input(path, Asked("height,width", gaps=True))
        assert ([one.row for one in table.skipped], table.n_rows) == ([0], 1), name
        np.testing.assert_array_equal(table.vectors, [[2, np.nan]])


def test_words_are_not_filled(tmp_path):
    (tmp_path / "b.csv").write_text("id,height,width\np,1,2\nq,x,3\n")
    table = read_input(tmp_path / "b.csv", Asked("height,width", gaps=True))
    assert str(table.skipped[0]) == "line 3: it must have a number in column 'height', got 'x'"


def test_there_must_be_a_mean():
    examples = Table("c", 2, vectors=np.array([[1.0, np.nan], [2.0, np.nan]]), measured=("m", "cm"))
    with pytest.raises(BankError, match="c has no number at all for the column 'cm'"):
        scaled(examples, examples, [], MEAN)
    with pytest.raises(OptionError, match="tables of vectors; leave missing out"):
        classified(
            pd.DataFrame({"text": ["one", "two"], "label": ["a", "b"]}),
            pd.DataFrame({"text": ["three"]}),
            missing="mean",
        )
    with pytest.raises(OptionError, match="missing must be 'mean', got 'median'"):
        classified(EXAMPLES, BATCH, missing="median")


def test_the_command_line_has_the_same_option(tmp_path, capsys):
    files = [str(csv(EXAMPLES, tmp_path / "c.csv")), str(csv(BATCH, tmp_path / "b.csv"))]
    out = tmp_path / "labels.csv"
    assert main(["classify", *files, "--out", str(out)]) != 0
    assert "must have a number in column" in capsys.readouterr().err
    assert main(["classify", *files, "--missing", "mean", "--out", str(out)]) == 0
    assert pd.read_csv(out)["label"].tolist() == ["a", "a", "b", "b"]


def measured_world(n_items, seed):
    """Four kinds of two measurements, and what else is in such tables."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.arange(n_items) % 4)
    frame = pd.DataFrame(
        {
            "height": np.round(10 * (kinds // 2) + rng.normal(size=n_items), 2),
            "width": np.round(1000 * (kinds % 2) + 100 * rng.normal(size=n_items), 1),
        }
    )
    return frame, [f"kind {kind}" for kind in kinds]


def both_worlds(columns, of_batch=None):
    """Return a catalogue and a batch with more columns: functions of the number of rows."""
    catalogue, labels = measured_world(24, 0)
    batch, truth = measured_world(40, 1)
    rng = np.random.default_rng(2)
    for frame, more in ((catalogue, columns), (batch, columns if of_batch is None else of_batch)):
        for name, values in more.items():
            frame.insert(0, name, values(rng, len(frame)))
    return catalogue.assign(label=labels), batch, truth


def count(rng, n):
    return np.arange(1, n + 1)


def count_from_elsewhere(rng, n):
    return rng.permutation(n) + 7_000


def some_of_many(rng, n):
    return rng.choice(90_000, n, replace=False)


def years(rng, n):
    return rng.integers(2019, 2025, n)


@pytest.mark.parametrize(
    ("columns", "of_batch"),
    [
        ({"Nr": count, "Jahr": years}, None),
        ({"sample": count_from_elsewhere}, None),
        ({"sample": count}, {"sample": some_of_many}),
        ({"sample": some_of_many}, {"sample": count_from_elsewhere}),
        ({"Proben-Nr": some_of_many}, None),
        ({"sample": count}, {}),
        ({}, {"sample": count, "year": years}),
        ({"taken": years}, None),
    ],
)
@pytest.mark.parametrize("kind", WRITTEN)
def test_running_numbers_and_years_change_no_label_and_stay_in_the_output(tmp_path, kind, columns, of_batch):
    catalogue, batch, truth = both_worlds(columns, of_batch)
    plain = [frame.drop(columns=[*columns, *(of_batch or ())], errors="ignore") for frame in (catalogue, batch)]
    expected = classified(*plain)
    catalogue = WRITTEN[kind](catalogue, tmp_path / f"c_{kind}")
    found = classify(catalogue, WRITTEN[kind](batch, tmp_path / f"b_{kind}"))
    assert predictions(found)["label"] == predictions(expected)["label"]
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-5)
    assert found.about.batch.features == ("height", "width")
    assert set(batch.columns) <= set(predictions(found))
    assert np.mean(np.array(predictions(found)["label"]) == truth) > 0.9


def test_numbers_that_only_together_are_a_count():
    catalogue, batch, _ = both_worlds({})
    numbers = np.random.default_rng(3).permutation(64)
    found = classified(catalogue.assign(sample=numbers[:24]), batch.assign(sample=numbers[24:]))
    assert found.about.batch.features == ("height", "width")


def test_a_few_items_measured_near_2000_are_no_years():
    catalogue, batch, _ = both_worlds({"weight": lambda rng, n: rng.integers(800, 3_000, n)})
    few = batch.head(3).assign(weight=[1950, 1990, 2050])
    found = classified(catalogue, few)
    assert found.about.batch.features == ("weight", "height", "width")
    assert predictions(found)["weight"] == [1950, 1990, 2050]


def test_named_columns_are_features_whatever_they_contain():
    catalogue, batch, _ = both_worlds({"Nr": count, "Jahr": years})
    found = classified(catalogue, batch, features="Nr,Jahr,height")
    assert found.about.batch.features == ("Nr", "Jahr", "height")
    assert set(batch.columns) <= set(predictions(found))


def test_the_terminal_says_which_columns_are_features_and_which_are_kept(tmp_path, capsys):
    catalogue, batch, _ = both_worlds({"Nr": count, "Jahr": years, "note": lambda rng, n: ["x"] * n})
    files = [str(csv(catalogue, tmp_path / "c.csv")), str(csv(batch, tmp_path / "b.csv"))]
    assert main(["classify", *files, "--out", str(tmp_path / "labels.csv")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "Features: height, width. Kept next to the labels, and not features: Jahr (years), Nr (running numbers), note."
        in said
    )
    written = pd.read_csv(tmp_path / "labels.csv")
    pd.testing.assert_frame_equal(written[batch.columns], batch)
