"""What labels a batch of a catalogue after every answer: as `classify` does, and nothing is read a second time."""

import numpy as np
import pytest

from handful.classification import classify
from handful.classification.labelled import class_names
from handful.classification.steps import embed
from handful.classification.task import check, read_inputs
from handful.errors import OptionError
from handful.review.labellers import FileLabeller
from handful.session import BatchSaid
from tests.worlds import Clouds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("labellers")
    clouds = Clouds(12, 16)
    np.savez(place / "examples.npz", features=clouds.examples(2, 0.8), labels=np.arange(12).repeat(2).astype(str))
    np.savez(place / "today.npz", features=clouds.around(np.repeat([0, 3, 7], 8), 0.8))
    return place


def fitted(folder, **known):
    return embed(check(read_inputs(folder / "examples.npz", folder / "today.npz"), **known))


@pytest.mark.parametrize("given", [{}, {3: "1", 4: None}, {3: "1", 9: "kraken"}])
def test_labels_are_those_of_classify_with_what_was_said(folder, given):
    label = FileLabeller(fitted(folder))
    (folder / "today.npz").rename(folder / "elsewhere.npz")
    found = label(BatchSaid(given, discarded=frozenset({20})))
    (folder / "elsewhere.npz").rename(folder / "today.npz")
    known = {"given": given, "new_classes": ["kraken"] if "kraken" in given.values() else None} if given else {}
    wanted = classify(folder / "examples.npz", folder / "today.npz", **known)
    kept = np.arange(24) != 20
    assert class_names(found) == class_names(wanted)
    assert found.labels[kept].tolist() == wanted.labels[kept].tolist()
    assert bool(found.rejected[20])


def test_what_cannot_be_labelled_again_is_refused(folder):
    with pytest.raises(OptionError, match="leave --method out"):
        FileLabeller(fitted(folder, method="paddle"))
