"""MegaDetector's results: detections with classifications are read, answered and written back."""

import copy
import json

import pytest

from handful.errors import FileFormatError
from handful.fields.camera_traps.megadetector import read_megadetector
from handful.reading.tool_scores import ItemLabel
from tests.fields.tool_files import MEGADETECTOR


def test_there_and_back(tmp_path):
    (tmp_path / "md.json").write_text(json.dumps(MEGADETECTOR, indent=1))
    found = read_megadetector(tmp_path / "md.json")
    assert found.names == ("north/0001.jpg", "north/0001.jpg#2")
    assert found.files == ("north/0001.jpg", "north/0001.jpg")
    assert (found.classes, found.scores) == ([["fox", "skunk"], ["turkey"]], [[0.9, 0.05], [1.0]])
    found.write([ItemLabel("skunk", 0.7, "fox", 0.25), ItemLabel("turkey", 1.0, None, None)], tmp_path / "out.json")
    expected = copy.deepcopy(MEGADETECTOR)
    first, _, third = expected["images"][0]["detections"]
    first.update(handful={"classifications": first["classifications"]}, classifications=[["1", 0.7], ["0", 0.25]])
    third.update(handful={"classifications": third["classifications"]}, classifications=[["2", 1.0]])
    assert json.loads((tmp_path / "out.json").read_text()) == expected


def test_its_own_validator_accepts_what_is_written(tmp_path):
    validate = pytest.importorskip(
        "megadetector.postprocessing.validate_batch_results", reason="megadetector is not installed"
    )
    (tmp_path / "md.json").write_text(json.dumps(MEGADETECTOR))
    found = read_megadetector(tmp_path / "md.json")
    found.write([ItemLabel("skunk", 0.7, "fox", 0.25), ItemLabel("turkey", 1.0, None, None)], tmp_path / "out.json")
    options = validate.ValidateBatchResultsOptions()
    options.raise_errors = True
    validate.validate_batch_results(str(tmp_path / "out.json"), options)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda c: c.pop("classification_categories"),
            "does not say which animals; run a classifier on its detections",
        ),
        (lambda c: c.update(classification_categories=[3]), "must name its classes under 'classification_categories'"),
        (lambda c: c["classification_categories"].update({"5": "fox"}), "two classes of the same name"),
        (lambda c: c["images"][0].pop("file"), "must have a 'file'"),
        (lambda c: c["images"][0]["detections"][0].update(classifications=[["9", 0.4]]), "class '9', which"),
        (lambda c: c["images"][0]["detections"][0].update(classifications=["0"]), "pairs of class and score"),
        (lambda c: c["images"][0]["detections"][0].update(classifications=[["0", "x"]]), "scores between 0 and 1"),
        (lambda c: c["images"][0].update(detections=[3]), "must be an object"),
        (lambda c: c["images"][0].update(detections=5), "must have a list of 'detections'"),
        (lambda c: c["images"][0].pop("detections"), "no detection with classifications"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, change, sentence):
    content = copy.deepcopy(MEGADETECTOR)
    change(content)
    (tmp_path / "md.json").write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=sentence):
        read_megadetector(tmp_path / "md.json")
