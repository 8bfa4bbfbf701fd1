"""classify: a catalogue and a batch, of vectors, images or sentences, to labels, a file and a page."""

from handful.classification.corrections import Corrections, GivenLabel, read_corrections
from handful.classification.grouping import Grouping
from handful.classification.groups import ClassifiedGroups, UnknownByGroup, write_groups
from handful.classification.groups_page import write_groups_page
from handful.classification.label import classify, dense_bytes
from handful.classification.label_studio import write_label_studio
from handful.classification.page import write_batch_page
from handful.classification.predictions import (
    PREDICTION_COLUMNS,
    Answers,
    Batch,
    Classified,
    Shown,
    Unknown,
    check_ending,
    write_predictions,
)
from handful.classification.scores import classify_scores, write_scores

__all__ = [
    "PREDICTION_COLUMNS",
    "Answers",
    "Batch",
    "Classified",
    "ClassifiedGroups",
    "Corrections",
    "GivenLabel",
    "Grouping",
    "Shown",
    "Unknown",
    "UnknownByGroup",
    "check_ending",
    "classify",
    "classify_scores",
    "dense_bytes",
    "read_corrections",
    "write_batch_page",
    "write_groups",
    "write_groups_page",
    "write_label_studio",
    "write_predictions",
    "write_scores",
]
