"""Label Studio: tasks that its own SDK accepts, and labels from what it exports."""

import json
from xml.etree import ElementTree

import pytest

from handful.errors import FileFormatError
from handful.fields.label_studio.tasks import annotated, interface, local_file, task, write_tasks


def exported(one, choice, **more):
    """The task as Label Studio exports it, with an annotation."""
    result = {**one["predictions"][0]["result"][0], "value": {"choices": choice}, "origin": "manual"}
    return {"id": 7, **one, "annotations": [{"id": 3, "completed_by": 1, "result": [result], **more}], "meta": {}}


def a_task(row=0, content="b1"):
    return task({"text": f"text {row}"}, "ant", 0.75, row=row, item=f"T{row}", content=content, version="handful")


def test_the_sdk_accepts_tasks_and_interface():
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    config = sdk.LabelInterface(interface("text", ["ant", "bee & wasp", '"fox"']))
    config.validate()
    one = a_task()
    assert config.validate_task({"data": one["data"]})
    assert config.validate_prediction(one["predictions"][0])
    strange = task({"text": "x"}, "crab", 0.5, row=0, item="T", content="", version="handful")
    assert not config.validate_prediction(strange["predictions"][0])


def test_tasks_there_and_annotations_back(tmp_path):
    tasks = [a_task(row) for row in range(3)]
    write_tasks(tasks, tmp_path / "tasks.json")
    assert json.loads((tmp_path / "tasks.json").read_text()) == tasks
    back = [exported(tasks[0], ["bee"]), {**tasks[1], "annotations": []}, exported(tasks[2], ["ant"])]
    back[2]["annotations"].append({**back[0]["annotations"][0], "was_cancelled": True})
    (tmp_path / "export.json").write_text(json.dumps(back))
    found = annotated(json.loads((tmp_path / "export.json").read_text()), "export.json")
    assert [one[:4] for one in found] == [(0, "T0", "b1", "bee"), (2, "T2", "b1", "ant")]


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
        ([exported({**a_task(), "data": {"text": "x"}}, ["ant"])], "handful did not write it"),
    ],
)
def test_any_other_file_is_refused(content, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        annotated(content, "x.json")


def test_names_come_back_from_the_interface_unchanged():
    names = ["a\tb", "two\nlines", "<b> & 'c' \"d\"", "🦊"]
    choices = ElementTree.fromstring(interface("text", names)).iter("Choice")
    assert [choice.get("value") for choice in choices] == names


@pytest.mark.parametrize("name", ["a\x01", "\x0b", "\ud800", "\uffff"])
def test_a_name_that_xml_cannot_hold_is_refused(name):
    with pytest.raises(FileFormatError, match="has a character that the XML of Label Studio cannot represent"):
        interface("text", ["ant", name])
