import numpy as np

from handful.catalogue import parts
from handful.catalogue.parts import ClassMeans, Examples, merged


def means(labels: str, value: float) -> ClassMeans:
    return ClassMeans(np.array(list(labels)), np.full(len(labels), value), np.full((len(labels), 2), value))


def test_the_last_part_that_has_a_class_counts():
    whole = merged((means("bd", 1.0), means("ad", 2.0), means("c", 3.0)))
    assert whole.classes.tolist() == list("abcd")
    assert whole.shots.tolist() == [2, 1, 3, 2]
    assert whole.means[:, 0].tolist() == [2, 1, 3, 2]


def test_rows_of_some_classes():
    assert means("abc", 1.0).rows(np.array([True, False, True])).classes.tolist() == ["a", "c"]


def test_a_sample_is_of_whole_classes_and_depends_on_labels_alone(monkeypatch):
    monkeypatch.setattr(parts, "FEWEST_CLASSES", 3)
    labels = np.array(list("abcdefgh") * 3)
    examples = Examples(labels, np.arange(24.0)[:, None], np.arange(24))
    assert examples.sample(24) is examples
    kept = examples.sample(10)
    assert sorted(np.unique(kept.labels, return_counts=True)[1].tolist()) == [3, 3, 3]
    order = np.random.default_rng(0).permutation(24)
    shuffled = Examples(labels[order], examples.points[order], order)
    assert set(shuffled.sample(10).labels.tolist()) == set(kept.labels.tolist())
    both = examples.rows(labels == "a").then(examples.rows(labels == "b"))
    assert both.positions.tolist() == [0, 8, 16, 1, 9, 17]


def test_a_class_with_many_rows_leaves_room_for_the_others():
    labels = np.array(["few"] * 3 + ["many"] * 10_000 + ["more"] * 10_000)
    kept = Examples(labels, np.zeros((len(labels), 1)), np.arange(len(labels))).sample(640)
    assert dict(zip(*np.unique(kept.labels, return_counts=True), strict=True)) == {"few": 3, "many": 10, "more": 10}
    assert kept.positions[3] == 3  # the first ones
