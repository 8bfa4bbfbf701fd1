"""The study of mechanisms: batches are as described, and the last step is the answer."""

from functools import partial

import numpy as np
import pytest

import kinds_data
import mechanisms as study
from handful.estimators import BatchClassifier


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write a bank of thirty classes with forty rows each, some of which come again after a change."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("data")
    centres = 3 * rng.normal(size=(30, 16))
    labels = np.arange(30).repeat(40)
    (folder / "bank").mkdir()
    points = (centres[labels] + rng.normal(size=(1200, 16))).astype(np.float32)
    np.save(folder / "bank" / "features.npy", points)
    np.save(folder / "bank" / "labels.npy", labels)
    (folder / "strangers").mkdir()
    np.save(folder / "strangers" / "features.npy", rng.normal(size=(50, 16)).astype(np.float32) + 20)
    (folder / "changed").mkdir()
    np.save(folder / "changed" / "rows.npy", np.arange(0, 1200, 2))
    np.save(folder / "changed" / "noise.npy", points[::2] + 0.5)
    return folder


def test_a_batch_has_items_of_some_classes_that_are_no_examples(data):
    task = kinds_data.of_bank(data, np.random.default_rng(0), 4, name="bank", present=3, items=30)
    assert np.bincount(task.labels).tolist() == [5] * 30
    examples = {row.tobytes() for row in task.examples}
    for batch in task.batches:
        assert len(np.unique(batch.truth)) == 3
        assert len({row.tobytes() for row in batch.points}) == 30
        assert not examples & {row.tobytes() for row in batch.points}


def test_an_open_batch_has_items_of_classes_that_were_taken_out(data):
    task = kinds_data.of_bank(data, np.random.default_rng(0), 2, name="bank", items=40, is_open=True)
    assert len(np.unique(task.labels)) == 20
    assert [(batch.truth == kinds_data.NO_CLASS).sum() for batch in task.batches] == [12, 12]
    strange = kinds_data.of_bank(
        data, np.random.default_rng(0), 1, name="bank", items=40, is_open=True, strangers="strangers"
    )
    assert len(np.unique(strange.labels)) == 30
    assert (strange.batches[0].points[strange.batches[0].truth == kinds_data.NO_CLASS].mean(1) > 15).all()


def test_changed_items_are_never_changed_examples(data):
    task = kinds_data.after_a_change(
        data, np.random.default_rng(0), 5, name="bank", changed="changed", kinds=("noise",), is_open=True
    )
    examples = {row.tobytes() for row in task.examples}
    for batch in task.batches:
        assert not examples & {row.tobytes() for row in batch.points - np.float32(0.5)}
        assert set(np.unique(batch.truth)) - {kinds_data.NO_CLASS} <= set(task.labels.tolist())


def test_uneven_batches_have_every_class(data):
    task = kinds_data.of_bank(data, np.random.default_rng(1), 3, name="bank", present=6, items=60, uneven=True)
    for batch in task.batches:
        sizes = np.unique(batch.truth, return_counts=True)[1]
        assert len(sizes) == 6
        assert sizes.max() > 3 * sizes.min()


def test_steps_end_at_the_answer_and_differ_from_it_before(data):
    task = kinds_data.of_bank(data, np.random.default_rng(2), 1, name="bank", items=40, is_open=True)
    classifier = BatchClassifier().fit(task.examples, task.labels)
    points = task.batches[0].points
    steps = study.of_steps(classifier.model_.reference, classifier.model_.points(points))
    answer = classifier.infer(points)
    assert list(steps) == [step for step in study.STEPS if step not in ("head", study.CONTROL, study.LAST)]
    for labels in steps.values():
        np.testing.assert_allclose(labels.sum(-1), 1, atol=1e-5)
    # The batch has the source of the catalogue, so its labels need not be flatter, or hardly.
    assert (steps["means"].argmax(-1) == np.asarray(answer.probabilities).argmax(-1)).all()
    assert np.abs(steps["means"] - answer.probabilities).max() < 0.1
    assert np.abs(steps["offset"] - answer.probabilities).max() > 0.1


def test_a_row_has_the_figures_of_every_step(data):
    kind = kinds_data.Kind(partial(kinds_data.of_bank, name="bank", items=40, is_open=True), is_open=True)
    task = kinds_data.tasks(data, "made up", kind, 3)[0]
    assert len(task.batches) == 1
    classifier = BatchClassifier().fit(task.examples, task.labels)
    row = study.measured(classifier, task.batches[0])
    assert set(row["right"]) == set(row["loss"]) == set(study.STEPS)
    assert row["right"][study.LAST] > 90
    assert row["auc"] > 90
    closed = study.measured(classifier, kinds_data.Batch(task.examples, task.labels))
    assert "auc" not in closed
    assert closed["known_rejected"] < 5


def test_gains_are_those_of_paired_batches():
    rows = [{"right": {"head": 50.0, study.CONTROL: 60.0 + n, "offset": 50.0}} for n in range(3)]
    estimate = study.gain(rows, study.CONTROL, "right")
    assert (estimate.mean, estimate.n) == (11.0, 3)
    assert study.gain(rows, "offset", "right").mean == 0


def test_every_kind_was_measured():
    for group, kinds in study.GROUPS.items():
        found = study.kept(study.RESULTS / group, kinds)
        assert set(found) == set(kinds)
        assert {len(rows) for rows in found.values()} == {study.BATCHES}
