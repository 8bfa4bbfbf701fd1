"""Sites, sequences and times of files: COCO Camera Traps, Camtrap DP and plain tables."""

import json

import pytest

from handful.errors import FileFormatError
from handful.reading.sites import columns_of, read_sites

COCO = {
    "info": {"version": "1"},
    "images": [
        {"id": "x1", "file_name": "s1/1.jpg", "location": 7, "seq_id": "q1", "datetime": "2024-05-01 06:00:00"},
        {"id": "x2", "file_name": "s2/1.jpg", "location": 9, "seq_id": "q2", "datetime": "2024-05-01 07:00:00"},
    ],
    "annotations": [{"id": "a", "image_id": "x2", "category_id": 3}],
    "categories": [{"id": 0, "name": "empty"}, {"id": 3, "name": "fox"}],
}


def camtrap(folder):
    folder.mkdir(exist_ok=True)
    names = ("deployments", "media", "observations")
    package = {"profile": "camtrap-dp", "resources": [{"name": name, "path": f"{name}.csv"} for name in names]}
    (folder / "datapackage.json").write_text(json.dumps(package))
    (folder / "deployments.csv").write_text("deploymentID,locationID,latitude\nd1,marsh,52.1\nd2,wood,52.2\n")
    (folder / "media.csv").write_text(
        "mediaID,deploymentID,timestamp,filePath\nm1,d2,2024-05-01T06:00:00Z,m/1.jpg\nm2,d1,2024-05-01T07:00:00Z,m/2.jpg\n"
    )
    (folder / "observations.csv").write_text("observationID,mediaID,scientificName\no1,m2,Vulpes vulpes\n")
    return folder


def test_coco_camera_traps(tmp_path):
    (tmp_path / "cct.json").write_text(json.dumps(COCO))
    found = columns_of(["/data/s2/1.jpg", "/data/s1/1.jpg"], read_sites(tmp_path / "cct.json"), "x")
    assert found["location"] == [9, 7]
    assert found["seq_id"] == ["q2", "q1"]
    assert found["annotation"] == ["fox", None]
    assert list(found) == ["location", "seq_id", "datetime", "annotation"]


def test_camtrap_dp(tmp_path):
    for place in (camtrap(tmp_path / "package"), tmp_path / "package" / "datapackage.json"):
        found = columns_of(["m/2.jpg", "m/1.jpg"], read_sites(place), "x")
        assert found["locationID"] == ["marsh", "wood"]
        assert found["timestamp"] == ["2024-05-01T07:00:00Z", "2024-05-01T06:00:00Z"]
        assert found["annotation"] == ["Vulpes vulpes", None]


def test_a_table_and_paths_that_end_alike(tmp_path):
    (tmp_path / "sites.csv").write_text("filepath,site\na/1.jpg,A\nb/1.jpg,B\n")
    sites = read_sites(tmp_path / "sites.csv")
    assert columns_of(["C:\\x\\b\\1.jpg"], sites, "x") == {"site": ["B"]}
    for lost in ("1.jpg", "c/1.jpg", "2.jpg"):
        with pytest.raises(FileFormatError, match="has no row for 1 of 1 files, or several"):
            columns_of([lost], sites, "x")
    assert columns_of(["1.jpg"], {"file": ["a/1.jpg", "b/2.jpg"], "site": [1, 2]}, "x") == {"site": [1]}


def test_malformed_files_are_refused(tmp_path):
    (tmp_path / "cct.json").write_text(json.dumps({"images": [{"id": 1}]}))
    with pytest.raises(FileFormatError, match="every image needs 'id' and 'file_name'"):
        read_sites(tmp_path / "cct.json")
    (tmp_path / "t.csv").write_text("site\nA\n")
    with pytest.raises(FileFormatError, match="a column 'file'"):
        read_sites(tmp_path / "t.csv")
    package = camtrap(tmp_path / "p")
    (package / "media.csv").write_text("mediaID\n")
    with pytest.raises(FileFormatError, match="no rows with 'filePath'"):
        read_sites(package)
    (package / "datapackage.json").write_text(json.dumps({"resources": [{"name": "media", "path": "../media.csv"}]}))
    with pytest.raises(FileFormatError, match="must name files in its folder"):
        read_sites(package)
    with pytest.raises(FileFormatError, match="does not exist"):
        read_sites(tmp_path / "missing.csv")
