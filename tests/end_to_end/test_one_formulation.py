"""One formulation: a task, a batch against a fitted model, a group, and a map over parts answer alike."""

import numpy as np
import pyarrow as pa
import pytest

import handful_fewshot as fewshot
from handful.datasets import load_clinc150
from handful.estimators import BatchClassifier
from handful.scale import decide, merge
from tests.doors import DOORS, Room
from tests.worlds import Clouds

# Scores are single precision, and the chains multiply their rounding.
SAME = {"atol": 2e-3, "rtol": 0}


@pytest.mark.parametrize(("shots", "present"), [(5, 5), (1, 20), pytest.param(5, 150, marks=pytest.mark.slow)])
def test_four_ways_to_one_answer(shots, present):
    bank, rng = load_clinc150(), np.random.default_rng(present)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(150)]
    support = np.concatenate([of_class[:shots] for of_class in rows])
    X, y = bank.take(support).astype(np.float32), bank.labels[support].astype(np.int64)
    batches = []
    for _ in range(2):
        pool = np.concatenate([rows[k][shots:] for k in rng.choice(150, present, replace=False)])
        batches.append(bank.take(rng.choice(pool, 75, replace=False)).astype(np.float32))

    classifier = BatchClassifier().fit(X, y)
    grouped = classifier.infer(np.concatenate(batches), groups=np.repeat([0, 1], 75))
    for place, batch in enumerate(batches):
        task = fewshot.transform("l2", fewshot.TaskBatch.single(X, y, batch, 150))
        of_task = fewshot.solve("batch_classifier", task).log_assignments[0].exp().numpy()
        np.testing.assert_allclose(grouped[place].probabilities, of_task, **SAME)
        inferred = classifier.infer(batch)
        np.testing.assert_allclose(inferred.probabilities, of_task, **SAME)
        table = pa.table({"vector": batch.tolist()})
        decision = decide(table, classifier)
        parts = [decision.label(table.slice(at, 40)) for at in (0, 40)]
        items = pa.concat_tables([part.items for part in parts])
        np.testing.assert_allclose(items["certainty"].to_numpy(), inferred.certainty, **SAME)
        assert items["label"].to_pylist() == of_task.argmax(-1).tolist()
        group = decision.summary(merge(part.totals for part in parts))
        listed = group["class"].to_numpy()
        np.testing.assert_allclose(group["expected_count"].to_numpy(), inferred.expected_counts[listed], atol=75 * 1e-4)
        np.testing.assert_allclose(group["presence"].to_numpy(), inferred.presence[listed], atol=1e-3)
        weights = [float(grouped.joint_weight[place]), inferred.joint_weight, group["joint_weight"][0].as_py()]
        assert weights == pytest.approx([weights[0]] * 3, abs=1e-4)


# Those that label otherwise than in memory; with few items, all doors are tried.
OF_MANY_ITEMS = ("one of two groups",)


@pytest.fixture(scope="module")
def open_catalogue():
    """Sixty classes, of which the last ten are not in the catalogue."""
    clouds = Clouds(60, 24)
    return clouds.centres, BatchClassifier().fit(clouds.examples(5, 0.9, 50), np.repeat(np.arange(50), 5))


@pytest.mark.parametrize("unknown", [0.0, 0.2])
@pytest.mark.parametrize("n_items", [75, 1025, 4000, 30_000])
def test_all_doors_give_the_same_answer_whatever_the_number_of_items(open_catalogue, n_items, unknown, tmp_path):
    """Classes of 1/rank sizes, and items of two classes that are not in the catalogue."""
    centres, classifier = open_catalogue
    rng = np.random.default_rng(n_items)
    shares = 1 / np.arange(1, 41)
    truth = rng.choice(40, n_items, p=shares / shares.sum())
    strange = rng.random(n_items) < unknown
    truth[strange] = rng.integers(55, 57, n_items)[strange]
    room = Room.of(classifier, centres[truth] + 0.9 * rng.normal(size=(n_items, 24)), tmp_path)
    found = classifier.infer(room.batch)
    for name in DOORS if n_items < 100 else OF_MANY_ITEMS:
        again = DOORS[name](room, {})
        same = again.codes[:, 0] == found.codes[:, 0]
        assert same.mean() > 1 - 1e-4 or same.sum() >= n_items - 1
        assert (again.rejected == found.rejected).mean() > 1 - 1e-3
        np.testing.assert_allclose(again.unknown, found.unknown, atol=2e-3)
        np.testing.assert_allclose(again.presence, found.presence, atol=1e-3)
        np.testing.assert_allclose(again.expected_counts, found.expected_counts, atol=n_items * 1e-4)
        assert again.joint_weight == pytest.approx(found.joint_weight, abs=1e-4)
        assert again.unknown_interval == pytest.approx(found.unknown_interval, abs=1e-6)
