"""COCO Camera Traps: labels become annotations of ours; everything else stays."""

import copy
import json

import pytest

from handful.errors import FileFormatError
from handful.fields.camera_traps.coco_camera_traps import read_coco, write_coco
from handful.reading.tool_scores import ItemLabel
from tests.reading.test_sites import COCO


def test_there_and_back(tmp_path):
    (tmp_path / "cct.json").write_text(json.dumps(COCO, indent=1))
    write_coco(
        tmp_path / "cct.json",
        {0: ItemLabel("fox", 0.9, None, None), 1: ItemLabel("hare", 0.5, "fox", 0.4)},
        tmp_path / "o.json",
    )
    after, expected = json.loads((tmp_path / "o.json").read_text()), copy.deepcopy(COCO)
    expected["categories"].append({"id": 4, "name": "hare"})
    expected["annotations"] += [
        {"id": "handful-x1", "image_id": "x1", "category_id": 3, "score": 0.9},
        {"id": "handful-x2", "image_id": "x2", "category_id": 4, "score": 0.5},
    ]
    assert after == expected
    # Annotations of ours are not read as those of people, and are replaced.
    assert read_coco(tmp_path / "o.json")["annotation"] == [None, "fox"]
    write_coco(tmp_path / "o.json", {}, tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["annotations"] == COCO["annotations"]


def test_a_malformed_file_is_refused(tmp_path):
    for content, sentence in (
        ({"images": [{"id": 1}]}, "every image needs"),
        ({"images": [], "annotations": {}}, "list of objects under 'annotations'"),
        ({"images": [], "categories": ["cow"]}, "list of objects under 'categories'"),
        ({"images": [], "categories": [{"name": "cow"}]}, "'id' and 'name' of categories must be text or numbers"),
        ({"images": [], "categories": [{"id": 1, "name": ["cow"]}]}, "'id' and 'name' of categories"),
        ({"images": [], "annotations": [{"image_id": [0], "category_id": 1}]}, "'image_id' and 'category_id' of"),
        ({"images": [{"id": [0], "file_name": "a.jpg"}]}, "every image needs"),
        ([], "list of objects under 'images'"),
    ):
        (tmp_path / "x.json").write_text(json.dumps(content))
        with pytest.raises(FileFormatError, match=sentence):
            read_coco(tmp_path / "x.json")
