"""Small batches under review, for tests."""

from contextlib import contextmanager

import numpy as np

from handful.estimators import BatchClassifier
from handful.review.batch_review import BatchReview
from handful.review.journal import opened
from handful.review.memory import PageLabeller
from tests.worlds import Clouds

KNOWN, PRESENT, EACH, DIM = 30, 6, 10, 24


def problem(seed=0, shots=1, noise=0.8, contents=None):
    """Return a labeller and the true classes: six of thirty classes, and one that the catalogue does not have."""
    rng = np.random.default_rng(seed)
    clouds = Clouds(KNOWN + 1, DIM, rng)
    examples = np.arange(KNOWN).repeat(shots)
    classifier = BatchClassifier().fit(clouds.around(examples, noise), [f"kind {k:02}" for k in examples])
    truth = rng.permutation(np.repeat([*range(PRESENT), KNOWN], EACH))
    batch = clouds.around(truth, noise)
    shown = None if contents is None else tuple(contents(k) for k in range(len(truth)))
    return PageLabeller(classifier, batch, shown), [f"kind {k:02}" for k in truth]


@contextmanager
def under_review(folder, label, **options):
    """Open or resume the review in a folder."""
    with opened(folder, {"batch": label.batch.fingerprint}) as journal:
        yield BatchReview(journal, label, **options)


def kind_of(review, label):
    """Return what a person who knows the class says."""
    return "class" if label in (*review.first.classes, *review.new_classes) else "new"


def say(review, items, label):
    """Say what items are; a list is one step."""
    items = [items] if isinstance(items, int) else list(items)
    review.decide(review.state.number, items, kind_of(review, label), label)


def answer_next(review, truth):
    """Answer the next request rightly, one item or a sheet with its exceptions; return it, None if nothing is asked."""
    request = review.session.ask()
    if request is None:
        return None
    right = [item for item in request.items if truth[item] == request.label]
    if right:
        say(review, right, request.label)
    for item in request.items:
        if item not in right:
            say(review, item, truth[item])
    return request
