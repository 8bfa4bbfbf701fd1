"""What is labelled becomes items with answers."""

import numpy as np
import pandas as pd
import pytest

from handful.banks import FeatureBank
from handful.catalogue.file import CatalogueFile
from handful.errors import BankError
from handful.fitted import FittedModel, save_model
from handful.items import import_labelled, vectors_of
from tests.items.photographs import ENCODER, VOWELS, photographs, register
from tests.items_at_hand import image_folder, zipped


@pytest.fixture(autouse=True)
def _encoder():
    register()


def answers(catalogue):
    return [one.label for one in catalogue.said.answers.values()]


def test_a_folder_for_each_class(tmp_path):
    folder = image_folder(tmp_path / "birds", each=4)
    catalogue = CatalogueFile.open(tmp_path / "birds.handful")
    found = import_labelled(catalogue, folder, encoder=ENCODER)
    assert (str(found), found.n_embedded, found.batch) == ("12 photographs are new", 12, "birds")
    assert answers(catalogue) == ["class0"] * 4 + ["class1"] * 4 + ["class2"] * 4
    named = [event for event in catalogue.history.events if event.kind == "named"]
    assert [(event.about["label"], event.person, len(event.items)) for event in named] == [
        (f"class{k}", "import", 4) for k in range(3)
    ]
    revision = catalogue.revision
    assert str(import_labelled(catalogue, folder)) == "12 photographs, nothing has changed"
    assert catalogue.revision == revision
    assert import_labelled(catalogue, zipped(folder, tmp_path / "again.zip")).n_embedded == 0
    with pytest.raises(BankError, match="one folder per class"):
        import_labelled(catalogue, photographs(tmp_path / "flat", 2))


def test_an_import_that_was_killed_before_the_names_goes_on(tmp_path, monkeypatch):
    folder = image_folder(tmp_path / "birds", each=2)
    catalogue = CatalogueFile.open()

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CatalogueFile, "name_all", killed)
        with pytest.raises(KeyboardInterrupt):
            import_labelled(catalogue, folder, encoder=ENCODER)
    assert answers(catalogue) == []
    assert import_labelled(catalogue, folder, encoder=ENCODER).n_embedded == 6
    assert len(answers(catalogue)) == 6


def test_an_answer_of_a_person_stays():
    catalogue = CatalogueFile.open()
    examples = (np.eye(3), ["fox", "owl", "fox"])
    _ = import_labelled(catalogue, examples, "examples")
    event = next(one for one in catalogue.history.events if one.about.get("label") == "owl")
    catalogue.take_back(event.event)
    catalogue.append("renamed", {"label": "fox", "into": "red fox"})
    _ = import_labelled(catalogue, examples, "examples")
    assert answers(catalogue) == ["red fox", "red fox"]


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".parquet", ".jsonl"])
def test_tables_with_labels(tmp_path, ending):
    frame = pd.DataFrame(
        {"id": [1, 2, 3], "text": ["wake me", "my bag", "hello"], "label": [" alarm", "luggage", None]}
    )
    file = tmp_path / f"calls{ending}"
    if ending == ".jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        writers = {".csv": frame.to_csv, ".xlsx": frame.to_excel, ".parquet": frame.to_parquet}
        writers[ending](file, index=False)
    catalogue = CatalogueFile.open()
    found = import_labelled(catalogue, file, encoder=VOWELS)
    assert answers(catalogue) == ["alarm", "luggage"]
    assert [one.kind for one in found.skipped] == ["without label"]
    assert catalogue.said.places["calls"] == {1: "1", 2: "2"}


def test_numbers_and_names_of_classes(tmp_path):
    catalogue = CatalogueFile.open()
    _ = import_labelled(catalogue, (np.eye(4), [3, 1, 3, 2]), "numbers")
    assert answers(catalogue) == ["3", "1", "3", "2"]
    bank = FeatureBank.from_arrays(np.eye(4)[:3] + 1, [1, 0, 1], ["owl", "fox"])
    bank.save(tmp_path / "birds.bank")
    _ = import_labelled(catalogue, tmp_path / "birds.bank")
    assert answers(catalogue)[4:] == ["fox", "owl", "fox"]
    assert "birds" in catalogue.said.places


def test_measurements_with_labels():
    frame = pd.DataFrame({"height": [1.5, 2.5, 4.25], "width": [10.5, 20.5, 5.5], "kind": ["a", "b", "a"]})
    catalogue = CatalogueFile.open()
    _ = import_labelled(catalogue, frame, "flowers", labels="kind")
    assert answers(catalogue) == ["a", "b", "a"]
    assert vectors_of(catalogue, [2]).tolist() == [[2.5, 20.5]]


def test_a_model_is_no_batch(tmp_path):
    save_model(FittedModel.of_names(np.eye(3), np.array(["a", "b", "c"])), tmp_path / "names.model")
    with pytest.raises(BankError, match="a model; give the examples"):
        import_labelled(CatalogueFile.open(), tmp_path / "names.model")
