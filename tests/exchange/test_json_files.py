"""JSON files come back byte for byte when nothing in them changes, in every layout that tools write."""

import json

import pytest

from handful.errors import FileFormatError
from handful.exchange.json_files import JsonFile, entries

CONTENT = {
    "z": [1, 0.1, 1e-05, 0.30000000000000004, True, None],
    "a": {"Ü": "é", "empty": []},
    "big": 12345678901234567890,
}


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"indent": 1},
        {"indent": 4},
        {"indent": "\t"},
        {"separators": (",", ":")},
        {"ensure_ascii": False},
        {"indent": 2, "ensure_ascii": False},
    ],
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_byte_for_byte(tmp_path, layout, end):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(CONTENT, **layout) + end, encoding="utf-8")
    file = JsonFile.read(path, "a file")
    file.write(file.content, tmp_path / "deeper" / "y.json")
    assert (tmp_path / "deeper" / "y.json").read_bytes() == path.read_bytes()


def test_what_is_no_json_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"must be results of a tool in JSON, but is not JSON"):
        JsonFile.read(tmp_path / "x.json", "results of a tool")
    (tmp_path / "y.json").write_text("[" * 100_000)
    with pytest.raises(FileFormatError, match="nested too deep"):
        JsonFile.read(tmp_path / "y.json", "results of a tool")
    with pytest.raises(FileFormatError, match="does not exist"):
        JsonFile.read(tmp_path / "z.json", "results of a tool")


@pytest.mark.parametrize("content", [[], {"images": {}}, {"images": [1]}, {}, None])
def test_a_list_of_objects_is_asked_for(tmp_path, content):
    with pytest.raises(FileFormatError, match="an object with a list of objects under 'images'"):
        entries(content, "images", tmp_path, "a file")
