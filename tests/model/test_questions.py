"""Which items to look at first: one per doubtful class, however many items are doubtful."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from handful.errors import OptionError
from handful.estimators import BatchClassifier
from handful.model import questions
from handful.model.questions import questions_about
from handful.model.settings import DEFAULT
from tests.optional import given, st
from tests.worlds import Clouds


def blocks(seed, sizes, doubts, n_classes=12, dim=24):
    """Items of several classes far apart, those of a class equally doubtful."""
    rng = np.random.default_rng(seed)
    of = np.arange(len(sizes)).repeat(sizes)
    points = rng.normal(size=(len(sizes), dim))[of] + 0.2 * rng.normal(size=(len(of), dim))
    q = np.full((len(of), n_classes), 0.0)
    q[np.arange(len(of)), of] = 1 - np.array(doubts)[of]
    q[np.arange(len(of)), len(sizes) + of] += np.array(doubts)[of]
    return points, q, q.max(1), of


def test_one_question_per_doubtful_block_the_largest_first():
    points, q, certainty, of = blocks(0, [30, 20, 10, 10], [0.02, 0.3, 0.4, 0.1])
    found = questions_about(points, q, certainty, 4)
    assert of[[question.item for question in found]].tolist() == [1, 2, 3, 0]
    assert [question.speaks_for for question in found] == [19, 9, 9, 29]
    assert [question.worth for question in found] == pytest.approx(
        [6, 4, 1, 0.6], rel=0.2
    )  # doubtful labels agree less


def test_an_answer_speaks_for_its_block_when_questions_are_chosen_again():
    points, q, certainty, _ = blocks(0, [30, 20, 10, 10], [0.02, 0.3, 0.4, 0.1])
    first = questions_about(points, q, certainty, 4)
    again = questions_about(points, q, certainty, 3, [first[0].item])
    assert [one.item for one in again] == [one.item for one in first[1:]]


def test_a_block_of_unknown_items_is_asked_about():
    points, q, certainty, of = blocks(0, [30, 20, 10], [0.02, 0.02, 0.02])
    assert of[questions_about(points, q, certainty, 1)[0].item] == 0
    assert of[questions_about(points, q, np.where(of == 2, 0.4, certainty), 1)[0].item] == 2


@given(seed=st.integers(0, 200))
def test_the_choice_is_nearly_the_best(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(9, 4))
    q = rng.dirichlet(np.full(3, 0.5), 9)
    found = questions_about(points, q, q.max(1), 3)
    directions = points / np.linalg.norm(points, axis=1, keepdims=True)
    same_class = questions._same_class(directions, q, np.arange(9), DEFAULT).of_items(np.arange(9))
    wrong = 1 - q.max(1)

    def worth(asked):
        return float(same_class[list(asked)].max(0) @ wrong)

    assert sum(question.worth for question in found) == pytest.approx(worth([question.item for question in found]))
    best = max(worth(asked) for asked in itertools.combinations(range(9), 3))
    assert worth([question.item for question in found]) >= (1 - 1 / np.e) * best
    assert sorted((question.worth for question in found), reverse=True) == [question.worth for question in found]


def test_answered_items_are_not_asked_about_again():
    points, q, certainty, _ = blocks(0, [6, 5], [0.3, 0.2])
    first = questions_about(points, q, certainty, 2)
    again = questions_about(points, q, certainty, 100, answered=[first[0].item])
    assert len(again) == 10
    assert first[0].item not in {question.item for question in again}


def test_only_the_most_doubtful_of_very_many_are_compared():
    points, q, certainty, of = blocks(0, [30, 20, 10], [0.02, 0.3, 0.4])
    few = replace(DEFAULT, most_compared=30)
    assert of[[question.item for question in questions_about(points, q, certainty, 2, settings=few)]].tolist() == [1, 2]


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_batches(n):
    points, q, certainty, _ = blocks(0, [n], [0.3])
    assert len(questions_about(points, q, certainty, 10)) == n


@pytest.mark.slow  # the study of questions measures it on real data
def test_answers_help_more_than_those_about_the_least_certain_items():
    """On made-up data: one example per class, so whole classes are mistaken."""
    rng, ahead = np.random.default_rng(0), []
    for _ in range(80):
        clouds = Clouds(40, 16, rng)
        truth = rng.choice(40, 8, replace=False)[rng.integers(0, 8, 80)]
        batch = clouds.around(truth, 0.8)
        X = clouds.examples(1, 0.8)
        classifier = BatchClassifier().fit(X, np.arange(40))
        found = classifier.infer(batch)
        asked = [question.item for question in classifier.questions(batch, 8)]
        least = np.argsort(found.certainty, kind="stable")[:8]
        right = []
        for items in (asked, least):
            answers = {int(item): int(truth[item]) for item in items}
            right.append((classifier.infer(batch, given=answers).labels == truth).mean())
        ahead.append(right[0] - right[1])
    assert np.mean(ahead) > 2 * np.std(ahead) / np.sqrt(len(ahead))


def test_a_thousand_items_and_classes():
    rng = np.random.default_rng(0)
    points, q = rng.normal(size=(1000, 384)), rng.dirichlet(np.ones(1000), 1000)
    assert len(questions_about(points, q, q.max(1), 10)) == 10


def test_other_numbers_are_refused():
    X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], [0, 0, 1, 1]
    with pytest.raises(OptionError, match="n must be a whole number of at least 1"):
        BatchClassifier().fit(X, y).questions(X, 0)
    assert len(BatchClassifier().fit(X, y).questions(X)) == 4
    assert {question.item for question in BatchClassifier().fit(X, y).questions(X, given={2: 1})} == {0, 1, 3}
