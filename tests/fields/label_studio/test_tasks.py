"""Label Studio: tasks that its own SDK accepts, and labels from what it exports."""

import json
from xml.etree import ElementTree

import pytest

from handful.errors import BankError, FileFormatError
from handful.fields.label_studio.tasks import interface, local_file, task, write_tasks
from handful.reading import read


def exported(one, choice, **more):
    """The task as Label Studio exports it, with an annotation."""
    result = {**one["predictions"][0]["result"][0], "value": {"choices": choice}, "origin": "manual"}
    return {"id": 7, **one, "annotations": [{"id": 3, "completed_by": 1, "result": [result], **more}], "meta": {}}


def a_task(row=0):
    return task({"text": f"text {row}"}, "ant", 0.75, row=row, item=f"T{row}", version="handful")


def test_the_sdk_accepts_tasks_and_interface():
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    config = sdk.LabelInterface(interface("text", ["ant", "bee & wasp", '"fox"']))
    config.validate()
    one = a_task()
    assert config.validate_task({"data": one["data"]})
    assert config.validate_prediction(one["predictions"][0])
    strange = task({"text": "x"}, "crab", 0.5, row=0, item="T", version="handful")
    assert not config.validate_prediction(strange["predictions"][0])


def test_tasks_there_and_annotations_back(tmp_path):
    tasks = [a_task(row) for row in range(3)]
    write_tasks(tasks, tmp_path / "tasks.json")
    assert json.loads((tmp_path / "tasks.json").read_text()) == tasks
    back = [exported(tasks[0], ["bee"]), {**tasks[1], "annotations": []}, exported(tasks[2], ["ant"])]
    back[2]["annotations"].append({**back[0]["annotations"][0], "was_cancelled": True})
    (tmp_path / "export.json").write_text(json.dumps(back))
    found = read(tmp_path / "export.json")
    assert found.columns["text"] == ["text 0", "text 1", "text 2"]
    assert found.columns["item"] == ["T0", "T1", "T2"]
    assert found.columns["label"] == ["bee", None, "ant"]


def test_an_image_is_found_from_the_folder_of_the_export(tmp_path):
    data = {"image": local_file("site 1/a&b.jpg")}
    one = task(data, "ant", 0.75, row=0, item="site 1/a&b.jpg", version="handful")
    (tmp_path / "export.json").write_text(json.dumps([exported(one, ["bee"])]))
    assert read(tmp_path / "export.json").columns["path"] == ["site 1/a&b.jpg"]


def test_none_of_these_is_no_label(tmp_path):
    tasks = [exported(a_task(0), ["none of these"]), exported(a_task(1), ["bee"])]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    assert read(tmp_path / "export.json").columns["label"] == [None, "bee"]


def test_two_annotations_of_one_task_that_contradict_each_other_are_refused(tmp_path):
    one = exported(a_task(), ["bee"])
    one["annotations"] += exported(a_task(), ["ant"])["annotations"]
    (tmp_path / "export.json").write_text(json.dumps([one]))
    with pytest.raises(FileFormatError, match=r"task 0 of .* has more than one label, 'bee' and 'ant'; keep one"):
        read(tmp_path / "export.json")


def test_an_image_is_a_file_that_label_studio_serves():
    assert local_file("site 1/a&b.jpg") == "/data/local-files/?d=site%201/a%26b.jpg"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({}, "a list of tasks"),
        ([{"text": "x", "label": "ant"}], "not as JSON-MIN"),
        ([a_task()], "no task with an annotation"),
        ([exported(a_task(), ["ant", "bee"])], "must have one choice"),
        ([exported(a_task(), [""])], "has an empty label"),
        ([exported(a_task(), ["  "])], "has an empty label"),
        ([{**a_task(), "annotations": 5}], "must have a list of annotations"),
        ([{**a_task(), "annotations": [{"result": "ant"}]}], "must have a list of results"),
        ([{**a_task(), "annotations": [{"result": [{"type": "choices", "value": "ant"}]}]}], "one choice, got 'ant'"),
        ([{**a_task(), "annotations": [{"result": [{"type": "choices", "value": 7}]}]}], "one choice, got 7"),
        ([exported({**a_task(), "data": {"item": "row 3"}}, ["ant"])], "neither a text nor an image"),
    ],
)
def test_any_other_file_is_refused(tmp_path, content, sentence):
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises((BankError, FileFormatError), match=sentence):
        read(tmp_path / "x.json")


def test_names_come_back_from_the_interface_unchanged():
    names = ["a\tb", "two\nlines", "<b> & 'c' \"d\"", "🦊"]
    choices = ElementTree.fromstring(interface("text", names)).iter("Choice")
    assert [choice.get("value") for choice in choices] == names


@pytest.mark.parametrize("name", ["a\x01", "\x0b", "\ud800", "\uffff"])
def test_a_name_that_xml_cannot_hold_is_refused(name):
    with pytest.raises(FileFormatError, match="has a character that the XML of Label Studio cannot represent"):
        interface("text", ["ant", name])
