"""Open the review of a batch as `handful review` does it, for tests of older files."""

from contextlib import contextmanager
from pathlib import Path

from handful.review.earlier import read_review, take_over
from handful.review.opening import open_batch
from handful.review.starting import start


@contextmanager
def review_of(catalogue, batch, labels, person="bob"):
    """Open the review of a batch beside a catalogue, or None, with what was said in a review of version 0.5."""
    earlier = read_review(Path(labels))
    started = start(catalogue, batch, person=person, earlier=earlier)
    with started.file as file:

        def opens():
            return open_batch(file, started.batch, person=person, notes=started.notes)

        if earlier is not None:
            started.notes.extend(take_over(earlier, file, started.batch, opens))
        yield opens()


def said_in(review):
    """Return what was said about each item: a class, or the kind of the answer."""
    return {item: one.label or one.kind for item, one in review.decisions.items()}
