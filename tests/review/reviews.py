"""Small batches under review, for tests."""

import json
import time
from contextlib import contextmanager
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np

from handful.catalogue.file import Arrival, CatalogueFile, ItemContent
from handful.estimators import BatchClassifier
from handful.review.batch_review import BatchReview, sheet_size_of
from handful.review.memory import PageLabeller
from handful.session import Calibration, Session
from handful.session.state import SessionOptions
from handful.session.stopping import SURE_TO_STOP
from tests.worlds import Clouds

KNOWN, PRESENT, EACH, DIM = 30, 6, 10, 24
BATCH = "today"
# A catalogue in the folder of a review.
FILE = "work.handful"


def problem(seed=0, shots=1, noise=0.8, contents=None):
    """Return a labeller and the true classes: six of thirty classes, and one that the catalogue does not have."""
    classifier, batch, truth = examples_and_batch(seed, shots, noise)
    shown = None if contents is None else tuple(contents(k) for k in range(len(truth)))
    return PageLabeller(classifier, batch, shown), truth


def examples_and_batch(seed=0, shots=1, noise=0.8):
    """Return a fitted classifier, the batch of `problem`, and its true classes."""
    rng = np.random.default_rng(seed)
    clouds = Clouds(KNOWN + 1, DIM, rng)
    examples = np.arange(KNOWN).repeat(shots)
    classifier = BatchClassifier().fit(clouds.around(examples, noise), [f"kind {k:02}" for k in examples])
    truth = rng.permutation(np.repeat([*range(PRESENT), KNOWN], EACH))
    return classifier, clouds.around(truth, noise), [f"kind {k:02}" for k in truth]


@contextmanager
def under_review(folder, label, **options):
    """Open the catalogue in a folder, and the review of the batch of a labeller."""
    folder.mkdir(exist_ok=True)
    with CatalogueFile.open(folder / FILE) as file:
        yield review_of(file, label, **options)


def review_of(file, label, *, person="Ada", notes=(), **options):
    """Return the review of the batch of a labeller, from where it was left in a catalogue."""
    rows = np.ascontiguousarray(label.batch.points, "<f4")
    file.arrive(BATCH, [Arrival(f"row {at}", ItemContent(row.tobytes(), "vector")) for at, row in enumerate(rows)])
    how = SessionOptions(sheet_size_of(label.batch.contents), SURE_TO_STOP, Calibration())
    return BatchReview(Session.of_batch(file, BATCH, label, how, person=person, **options), notes)


def kind_of(review, label):
    """Return what a person who knows the class says."""
    return "class" if label in (*review.first.classes, *review.new_classes) else "new"


def say(review, items, label):
    """Say what items are; a list is one step."""
    items = [items] if isinstance(items, int) else list(items)
    review.decide(review.number, items, kind_of(review, label), label)


def answer_next(review, truth):
    """Answer the next request rightly, one item or a sheet with its exceptions; return it, None if nothing is asked."""
    request = review.session.ask()
    if request is None:
        return None
    label = request.label or max(set(truth), key=[truth[item] for item in request.items].count)
    labels = request.labels if request.oddest else [label] * len(request.items)
    right = [item for item, shown in zip(request.items, labels, strict=True) if truth[item] == shown]
    wrong = [item for item in request.items if item not in right]
    if request.oddest:
        review.decide(review.number, right, "accept", None, wrong)
    elif right:
        review.decide(review.number, right, kind_of(review, label), label, wrong)
    for item in wrong:
        say(review, item, truth[item])
    return request


@contextmanager
def full_disk(file):
    """Let the disk of a catalogue be full: SQLite may not make its file any longer."""
    connection = file._connection
    (most,) = connection.execute("PRAGMA max_page_count").fetchone()
    connection.execute("PRAGMA max_page_count = 1")  # that is, as many as there are
    yield
    connection.execute(f"PRAGMA max_page_count = {most}")


class Visitor:
    """A browser at a review that is really served."""

    def __init__(self, address):
        self.browser = build_opener(HTTPCookieProcessor())
        self.base = self.browser.open(address, timeout=20).url
        self.origin = address.partition("/?")[0]

    def get(self, path):
        """Return what is there, once the batch is opened."""
        while "opening" in (found := json.loads(self.browser.open(self.base + path, timeout=20).read())):
            time.sleep(0.1)
        return found

    def post(self, path, **body):
        headers = {"content-type": "application/json", "origin": self.origin}
        request = Request(self.base + path, json.dumps(body).encode(), headers)
        return json.loads(self.browser.open(request, timeout=20).read())
