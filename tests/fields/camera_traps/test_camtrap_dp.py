"""Camtrap DP: labels become observations of media by machine, after the rows that are there."""

import csv
import json

import pytest

from handful.errors import FileFormatError
from handful.fields.camera_traps.camtrap_dp import OBSERVATION, observed, read_camtrap, read_rows, write_camtrap
from handful.reading.tool_scores import ItemLabel
from tests.fields.tool_files import BLANK, DEER
from tests.reading.test_sites import camtrap


def test_observations_are_added(tmp_path):
    package = camtrap(tmp_path / "p") / "datapackage.json"
    before = (tmp_path / "p" / "observations.csv").read_text().splitlines()
    answers = {0: ItemLabel(DEER, 0.91234, None, None), 1: ItemLabel(BLANK, 0.8, None, None)}
    for _ in range(2):  # the second time, rows of ours are replaced
        write_camtrap(package, answers, tmp_path / "p" / "observations.csv")
    rows = read_rows(tmp_path / "p" / "observations.csv")
    assert list(rows[0])[:3] == before[0].split(",")
    assert set(OBSERVATION) == set(rows[0])
    assert ",".join(list(rows[0].values())[:3]) == before[1]
    assert [row["observationType"] for row in rows] == ["", "animal", "blank"]
    added = rows[1]
    assert (added["deploymentID"], added["mediaID"], added["eventStart"]) == ("d2", "m1", "2024-05-01T06:00:00Z")
    assert (added["scientificName"], added["classificationProbability"]) == ("Odocoileus virginianus", "0.9123")
    assert (added["observationLevel"], added["classificationMethod"]) == ("media", "machine")
    assert read_camtrap(package)["annotation"] == [None, "Vulpes vulpes"]


def test_a_package_without_observations(tmp_path):
    package = camtrap(tmp_path / "p")
    (package / "observations.csv").unlink()
    write_camtrap(package / "datapackage.json", {1: ItemLabel("red fox", 1.0, None, None)}, tmp_path / "o.csv")
    with (tmp_path / "o.csv").open(newline="") as stream:
        assert next(csv.reader(stream)) == list(OBSERVATION)


def test_labels_that_are_no_species():
    assert observed("x;mammalia;carnivora;felidae;;;felidae family") == ("animal", "Felidae")
    assert observed("Turdus merula_Blackbird") == ("animal", "Turdus merula")
    assert observed("Human") == ("human", "")


def test_a_malformed_table_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2,3\n")
    with pytest.raises(FileFormatError, match="another number of values"):
        read_rows(tmp_path / "x.csv")


@pytest.mark.parametrize("name", ["a\0.csv", "a" * 5000, "\ud800.csv", "."])
def test_a_package_that_names_files_that_cannot_be_is_refused(tmp_path, name):
    resources = [{"name": table, "path": name} for table in ("deployments", "media")]
    (tmp_path / "datapackage.json").write_text(json.dumps({"resources": resources}))
    with pytest.raises(FileFormatError, match=r"cannot be read|is not a regular file"):
        read_camtrap(tmp_path / "datapackage.json")


@pytest.mark.parametrize("name", ["a\0.csv", "a" * 5000, "\ud800.csv"])
def test_observations_that_cannot_be_there_are_none(tmp_path, name):
    package = camtrap(tmp_path / "p")
    about = json.loads((package / "datapackage.json").read_text())
    about["resources"] = [one for one in about["resources"] if one["name"] != "observations"]
    about["resources"].append({"name": "observations", "path": name})
    (package / "datapackage.json").write_text(json.dumps(about))
    assert "annotation" not in read_camtrap(package / "datapackage.json")
