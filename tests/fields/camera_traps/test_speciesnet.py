"""SpeciesNet's predictions: read, answered and written back, with everything else as it was."""

import copy
import json

import pytest

from handful.errors import FileFormatError
from handful.fields.camera_traps.speciesnet import read_speciesnet
from handful.reading.tool_scores import ItemLabel
from tests.fields.tool_files import BLANK, DEER, MOOSE, SPECIESNET


def test_there_and_back(tmp_path):
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps(SPECIESNET, indent=1))
    found = read_speciesnet(path)
    assert found.names == ("site 1/a.jpg", "site 2/c.jpg")
    assert found.classes == [[DEER, MOOSE, BLANK], [MOOSE, DEER]]
    assert found.scores == [[0.9, 0.05, 1e-05], [0.6, 0.4]]
    found.write([ItemLabel(MOOSE, 0.75, DEER, 0.2), ItemLabel(MOOSE, 0.99, None, None)], tmp_path / "out.json")
    after = json.loads((tmp_path / "out.json").read_text())
    expected = copy.deepcopy(SPECIESNET)
    for place, before, score in ((0, DEER, 0.75), (2, MOOSE, 0.99)):
        old = expected["predictions"][place]
        kept = {"prediction": before, "prediction_score": old["prediction_score"], "prediction_source": "classifier"}
        old.update(prediction=MOOSE, prediction_score=score, prediction_source="handful", handful=kept)
    assert after == expected
    assert [list(a) for a in after["predictions"]] == [list(e) for e in expected["predictions"]]
    # Written again, what SpeciesNet said is still there.
    read_speciesnet(tmp_path / "out.json").write(
        [ItemLabel(DEER, 0.5, None, None), ItemLabel(DEER, 0.5, None, None)], tmp_path / "again.json"
    )
    again = json.loads((tmp_path / "again.json").read_text())["predictions"]
    assert again[0]["handful"]["prediction_source"] == "classifier"


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        ({"classifications": {"classes": ["a"], "scores": [1]}}, "must have a 'filepath'"),
        ({"filepath": "a", "classifications": {"classes": ["a", "b"], "scores": [1]}}, "one score for each"),
        ({"filepath": "a", "classifications": {"classes": ["a"], "scores": [1.5]}}, "scores between 0 and 1"),
        ({"filepath": "a", "classifications": {"classes": ["a"], "scores": ["x"]}}, "scores between 0 and 1"),
        (
            {"filepath": "a", "classifications": {"classes": ["a", "a"], "scores": [0.5, 0.5]}},
            "each of its classes once",
        ),
        ({"filepath": "a", "classifications": [1]}, "'classifications' with 'classes' and 'scores'"),
        ({"filepath": "a"}, "no image with classifications"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, image, sentence):
    (tmp_path / "x.json").write_text(json.dumps({"predictions": [image]}))
    with pytest.raises(FileFormatError, match=sentence):
        read_speciesnet(tmp_path / "x.json")
