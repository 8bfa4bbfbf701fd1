"""What labelling a batch reads and writes; what is refused is tried in tests/end_to_end/test_no_input_lost.py."""

import json
from pathlib import Path

import pytest

from handful.classification.files import group_table_path, paths_read, paths_written, replaceable


def test_inputs_are_absolute_and_only_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coarse.csv").touch()
    known = {"prior": "prior.csv", "candidates": ["cat"], "given": {0: "cat"}, "coarse": "coarse.csv"}
    found = paths_read(known, catalogue=Path("c.npz"), names=None, encoder="checkpoint:runs/mini")
    assert found == {
        "catalogue": tmp_path / "c.npz",
        "prior": tmp_path / "prior.csv",
        "coarse classes": tmp_path / "coarse.csv",
        "encoder": tmp_path / "runs" / "mini",
    }
    assert paths_read({"coarse": "genus"}, batch="b.csv", encoder="timm:resnet18") == {"batch": tmp_path / "b.csv"}


def test_sites_are_all_files_of_a_package(tmp_path):
    package = tmp_path / "datapackage.json"
    resources = [{"name": name, "path": f"{name}.csv"} for name in ("deployments", "media", "observations")]
    package.write_text(json.dumps({"resources": resources}))
    (tmp_path / "observations.csv").touch()
    expected = {"sites": package} | {one["name"]: tmp_path / one["path"] for one in resources}
    assert paths_read({}, sites=tmp_path) == paths_read({}, sites=package) == expected
    assert paths_read({}, sites=tmp_path / "cct.json") == {"sites": tmp_path / "cct.json"}


def test_outputs_have_others_beside_them():
    found = paths_written(predictions=Path("a/o.h5ad"), grouped=True, tasks=Path("t.json"))
    assert [str(path) for path in found.values() if path is not None] == [
        *("a/o.h5ad", "a/o.groups.csv", "t.json", "t.xml"),
    ]
    assert set(paths_written(predictions=Path("o.csv")).values()) == {Path("o.csv"), None}


@pytest.mark.parametrize(
    ("out", "beside"), [("o.csv", "o.groups.csv"), ("o.parquet", "o.groups.parquet"), ("o.mgf", "o.groups.csv")]
)
def test_the_table_of_groups(out, beside):
    assert group_table_path(out) == Path(beside)


@pytest.mark.parametrize(
    ("predictions", "scores", "sites", "expected"),
    [
        ("o.h5ad", None, None, {"predictions": "batch"}),
        ("o.MGF", None, None, {"predictions": "batch"}),
        ("o.csv", None, None, {}),
        ("o.rttm", None, None, {}),
        ("o.json", "s.json", None, {"predictions": "scores"}),
        ("o.csv", "s.json", None, {}),
        ("o.mgf", "s.json", None, {}),
        (None, None, "cct.json", {"annotations": "sites"}),
        (None, None, "datapackage.json", {"annotations": "observations"}),
        (None, None, "sites.csv", {}),
    ],
)
def test_only_labelled_copies_replace_their_input(predictions, scores, sites, expected):
    paths = (None if path is None else Path(path) for path in (predictions, scores, sites))
    assert replaceable(*paths) == expected
