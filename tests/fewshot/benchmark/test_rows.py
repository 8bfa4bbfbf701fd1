"""Runs are read by pandas and DuckDB: each row says what it is about, and predictions give any other metric."""

import json
from dataclasses import replace

import numpy as np
import pytest

import handful_fewshot as fewshot
from handful_fewshot import Dirichlet, ShotsPerClass, TaskSpec, UniformOverPool, UnknownClasses
from handful_fewshot.benchmark.completion import complete
from handful_fewshot.benchmark.journal import COLUMNS, PLAN_FILE, Journal
from handful_fewshot.benchmark.plan import Cell, bound_plan
from handful_fewshot.benchmark.run import ABOUT, KEPT
from handful_fewshot.errors import PlanError
from tests.optional import optional
from tests.plans_at_hand import SPEC, small_banks

pd = optional("pandas")
duckdb = optional("duckdb")

CELLS = [
    Cell("toy", SPEC, "paddle", n_tasks=12, options={"max_iter": 7}, transform="published", seed=3, keep="predictions"),
    Cell("toy", replace(SPEC, query=Dirichlet(2, 1.5), n_classes=4), "paddle", n_tasks=5),
    Cell("toy", replace(SPEC, unknown=UnknownClasses(1, 1 / 3)), "oslo", n_tasks=4, keep="predictions"),
]


@pytest.fixture(scope="module")
def banks():
    return small_banks()


@pytest.fixture(scope="module")
def journal(tmp_path_factory, banks):
    journal = Journal.create(tmp_path_factory.mktemp("runs") / "run", bound_plan(CELLS, banks))
    complete(journal, banks)
    return journal


ABOUT_FIRST = {
    **{"bank": "toy", "split": "", "support_bank": "", "shots": 2, "k_eff": 2, "n_query": 6, "n_classes": None},
    **{"protocol": "balanced", "unknown_classes": None, "unknown_share": None, "method": "paddle", "seed": 3},
}


def test_each_row_says_what_it_is_about(journal):
    rows = journal.table().to_pylist()
    of_cells = [[row for row in rows if row["cell"] == cell.content_hash] for cell in journal.plan]
    assert [len(rows) for rows in of_cells] == [12, 5, 4]
    first, second, third = ({**rows[0]} for rows in of_cells)
    assert {name: first[name] for name in ABOUT_FIRST} == ABOUT_FIRST
    assert json.loads(first["options"]) == {"max_iter": 7}
    assert (second["protocol"], second["n_classes"], second["scale"]) == (
        "dirichlet (concentration=1.5)",
        4,
        "found scale",
    )
    assert (third["unknown_classes"], third["unknown_share"]) == (1, 1 / 3)


def test_the_plan_names_its_cells_as_the_rows_do(journal):
    entries = json.loads((journal.folder / PLAN_FILE).read_text())["cells"]
    assert [entry["cell"] for entry in entries] == [cell.content_hash for cell in journal.plan]
    assert {entry["cell"] for entry in entries} == set(journal.table()["cell"].to_pylist())


def rows_of(journal):
    """Rows of a run as pandas reads its shards, without handful."""
    return pd.concat(map(pd.read_parquet, sorted(journal.folder.glob("rows-*.parquet"))))


def test_pandas_and_duckdb_read_the_shards_of_a_run_as_they_are(journal):
    frame = rows_of(journal)
    assert list(frame) == [*COLUMNS, *KEPT]
    table = journal.table().to_pandas()
    assert frame[list(COLUMNS)].reset_index(drop=True).equals(table)
    shards = f"{journal.folder}/rows-*.parquet"
    (found,) = duckdb.sql(f"select count(*), sum(options->>'max_iter' = '7'), min(seed) from '{shards}'").fetchall()
    assert found == (21, 12, 0)


def test_a_confusion_matrix_and_scores_come_from_kept_predictions(journal, banks):
    frame = rows_of(journal)
    cell = journal.plan[0]
    rows = frame[frame["cell"] == cell.content_hash]
    for row in rows.itertuples():
        assert np.mean(row.query_labels == row.predictions) == row.accuracy
        probabilities = np.stack(row.probabilities)
        assert probabilities.shape == (6, 5)
        assert np.allclose(probabilities.sum(1), 1, atol=1e-5)
        assert np.array_equal(probabilities.argmax(1), row.predictions)
        drawn = fewshot.draw(banks["toy"].labels, SPEC, 3, [row.task])
        of_bank = np.asarray(row.classes)[row.query_labels]
        assert np.array_equal(of_bank, banks["toy"].labels[drawn.query[0]])
    confusion = np.zeros((5, 5), int)
    for row in rows.itertuples():
        np.add.at(confusion, (row.query_labels, row.predictions), 1)
    assert confusion.sum() == 12 * 6
    assert np.trace(confusion) / confusion.sum() == pytest.approx(rows["accuracy"].mean())
    oslo = frame[frame["cell"] == journal.plan[2].content_hash]
    assert all((np.asarray(row.query_labels) == -1).sum() == 2 and len(row.unknown) == 6 for row in oslo.itertuples())
    silent = frame[frame["cell"] == journal.plan[1].content_hash]
    assert silent[list(KEPT)].isna().all(axis=None)
    counted = duckdb.sql(f"select count(*) from (select unnest(predictions) from '{journal.folder}/rows-*.parquet')")
    assert counted.fetchall() == [(16 * 6,)]


def test_labels_of_drawn_classes_lead_to_those_of_the_bank(banks, tmp_path):
    spec = TaskSpec(ShotsPerClass(2), UniformOverPool(2), n_query=6, n_classes=3)
    journal = Journal.create(
        tmp_path / "run", bound_plan([Cell("toy", spec, "paddle", n_tasks=6, keep="predictions")], banks)
    )
    complete(journal, banks)
    labels = banks["toy"].labels
    for row in rows_of(journal).itertuples():
        drawn = fewshot.draw(labels, spec, 0, [row.task])
        assert np.array_equal(np.asarray(row.classes)[row.query_labels], labels[drawn.query[0]])


def test_a_task_has_its_own_number_of_classes_if_this_is_drawn_from_a_range(banks, tmp_path):
    query = UniformOverPool((1, 3))
    cells = [Cell("toy", replace(SPEC, query=query), method, n_tasks=20) for method in ("paddle", "sparse_em")]
    journal = Journal.create(tmp_path / "run", bound_plan(cells, banks))
    complete(journal, banks)
    frame = rows_of(journal)
    assert set(frame["protocol"]) == {"uniform (k_eff=1-3)"}
    numbers = query.class_counts(0, np.arange(20)).tolist()
    assert set(numbers) == {1, 2, 3}
    for _, rows in frame.groupby("cell"):
        assert rows.sort_values("task")["k_eff"].tolist() == numbers
    # As many classes are drawn from, and no more can occur.
    labels = banks["toy"].labels
    for task, number in enumerate(numbers):
        drawn = fewshot.draw(labels, replace(SPEC, query=query), 0, [task])
        assert len(np.unique(drawn.query_labels)) <= number


def test_predictions_are_kept_of_all_tasks_of_a_cell_or_of_none(banks, tmp_path):
    (cell,) = bound_plan([Cell("toy", SPEC, "paddle", n_tasks=3)], banks)
    journal = Journal.create(tmp_path / "run", (cell,))
    asked = replace(cell, n_tasks=5, keep="predictions")
    assert asked.content_hash == cell.content_hash
    journal.extend((asked,))  # nothing was solved yet
    journal.extend((cell,))
    complete(journal, banks)
    with pytest.raises(
        PlanError, match="paddle on toy has rows that keep nothing, and new ones would keep predictions"
    ):
        journal.extend((asked,))
    with pytest.raises(PlanError, match="a row can keep 'predictions' or nothing, got 'labels'"):
        Cell("toy", SPEC, "paddle", keep="labels")


def test_a_run_of_an_older_format_is_refused_in_a_sentence(journal, tmp_path):
    about = json.loads((journal.folder / PLAN_FILE).read_text())
    del about["format"]
    about["versions"]["handful"] = "0.5.0"
    old = tmp_path / "old"
    old.mkdir()
    (old / PLAN_FILE).write_text(json.dumps(about))
    with pytest.raises(PlanError, match=r"is a run of handful 0\.5\.0, whose rows have other columns than those of"):
        Journal(old)


def test_every_column_says_something(journal):
    """No column of what a row is about is empty in all cells but those of banks without a split or second bank."""
    frame = journal.table().to_pandas()
    empty = [name for name in ABOUT if frame[name].isna().all() or (frame[name].astype(str) == "").all()]
    assert empty == ["split", "support_bank"]
