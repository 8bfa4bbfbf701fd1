import numpy as np

from handful.fitted import FittedModel


def examples(n_classes: int = 30, shots: int = 6, noise: float = 0.4):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, 16))
    labels = np.arange(n_classes).repeat(shots)
    return centres, centres[labels] + noise * rng.standard_normal((len(labels), 16)), labels


def test_a_clean_catalogue_has_nothing_to_report():
    _, X, y = examples()
    report = FittedModel.of(X, y).report()
    assert (report.single, report.confusions, report.suspects) == ([], [], [])
    assert str(report) == "30 classes, 180 examples.\nNothing looks wrong."


def test_swapped_labels_are_found():
    _, X, y = examples()
    y[[3, 50, 100]] = [9, 20, 1]
    suspects = FittedModel.of(X, y).report().suspects
    assert sorted((s.position, s.label, s.looks_like) for s in suspects) == [(3, 9, 0), (50, 20, 8), (100, 1, 16)]
    chances = [s.chance_wrong for s in suspects]
    assert chances == sorted(chances, reverse=True)
    assert min(chances) > 0.5


def test_two_names_of_one_class_are_found():
    centres, X, y = examples()
    twins = y.copy()
    twins[y == 7] = np.where(np.arange(6) % 2 == 0, 7, 30)
    X[y == 7] = centres[7] + 0.4 * np.random.default_rng(1).standard_normal((6, 16))
    report = FittedModel.of(X, twins).report()
    assert [(pair.first, pair.second) for pair in report.confusions] == [(7, 30)]
    assert "7 and 30 cannot be told apart" in str(report)


def test_lone_examples_are_listed():
    _, X, y = examples()
    kept = (y > 11) | (np.arange(len(y)) % 6 == 0)
    report = FittedModel.of(X[kept], y[kept]).report()
    assert report.single == list(range(12))
    assert "12 classes have one example: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more." in str(report)
    assert report.n_checked == 18 * 6


def test_a_catalogue_of_lone_examples_cannot_be_checked():
    report = FittedModel.of(np.eye(4), np.arange(4)).report()
    assert (report.n_checked, report.suspects, report.single) == (0, [], [0, 1, 2, 3])


def test_a_wrong_label_is_printed_with_its_chance():
    _, X, y = examples()
    y[3] = 9
    assert "Example 3, labelled 9, looks like 0 (wrong with a probability of more than 99%)." in str(
        FittedModel.of(X, y).report()
    )


def test_a_copied_wrong_label_is_found():
    _, X, y = examples()
    y[3] = 9
    X, y = np.concatenate([X, X[3:4]]), np.append(y, 9)
    suspects = FittedModel.of(X, y).report().suspects
    assert sorted(s.position for s in suspects) == [3, 180]
