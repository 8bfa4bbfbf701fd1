"""classify: a catalogue and a batch, of vectors, images or sentences, to labels, a file and a page."""

from handful.classification.batch import Batch
from handful.classification.files import check_ending, write_predictions, write_tasks
from handful.classification.frames import label
from handful.classification.labelled import About, Shown
from handful.classification.page import write_page
from handful.classification.scores import rescore
from handful.classification.steps import classify
from handful.classification.task import dense_bytes
from handful.extraction.options import Reading

__all__ = [
    "About",
    "Batch",
    "Reading",
    "Shown",
    "check_ending",
    "classify",
    "dense_bytes",
    "label",
    "rescore",
    "write_page",
    "write_predictions",
    "write_tasks",
]
