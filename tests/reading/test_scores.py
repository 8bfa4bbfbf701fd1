"""The format of a file of scores is told by what is in it."""

import json

import pytest

from handful.errors import FileFormatError
from handful.reading.scores import read_scores
from tests.fields.tool_files import BIRDNET, MEGADETECTOR, RAVEN, SPECIESNET


def test_every_format_is_known(tmp_path):
    for name, text, kind in (
        ("a.json", json.dumps(SPECIESNET), "probabilities"),
        ("b.json", json.dumps(MEGADETECTOR), "probabilities"),
        ("c.csv", BIRDNET, "sigmoid"),
        ("d.txt", RAVEN, "sigmoid"),
    ):
        (tmp_path / name).write_text(text)
        assert read_scores(tmp_path / name).kind == kind


@pytest.mark.parametrize(("name", "text"), [("x.json", "{}"), ("x.json", "[]"), ("x.csv", "a,b\n"), ("x.bin", "\0")])
def test_any_other_file_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileFormatError, match="has no scores in a known format"):
        read_scores(tmp_path / name)
    with pytest.raises(FileFormatError, match="does not exist"):
        read_scores(tmp_path / "nothing.csv")
