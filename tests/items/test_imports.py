"""What is labelled becomes items with answers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from handful.banks import FeatureBank
from handful.catalogue.file import CatalogueFile
from handful.errors import BankError
from handful.fitted import FittedModel, load_model, save_model
from handful.items import bring, import_labelled, pictures_of, vectors_of
from handful.items.embedding import encoder_of
from tests.items.older_file import write_older_file
from tests.items.photographs import CALLS, ENCODER, VOWELS, photographs, register
from tests.items_at_hand import image_bytes, image_folder, zipped

OLD = Path(__file__).parents[1] / "old_files" / "v0_4_0" / "kinds.handful"


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


def test_photographs_of_an_older_catalogue_are_known_where_they_still_are(tmp_path):
    folder = image_folder(tmp_path / "birds", each=3)
    file = tmp_path / "old.handful"
    old = write_older_file(file, folder, ENCODER)
    (folder / "class0" / "00.png").unlink()
    (folder / "class1" / "00.png").write_bytes(image_bytes(999))
    catalogue = CatalogueFile.open(tmp_path / "new.handful")
    CALLS.clear()
    found = import_labelled(catalogue, file)
    assert (str(found), found.n_embedded, CALLS) == ("9 photographs are new", 0, [])
    assert answers(catalogue) == [f"class{k}" for k in (0, 0, 0, 1, 1, 1, 2, 2, 2)]
    kinds = [row.kind for row in catalogue.rows(range(1, 10))]
    assert kinds == ["vector", "image", "image"] + ["vector", "image", "image"] + ["image"] * 3
    assert np.abs(vectors_of(catalogue, range(1, 10)) - old.examples.points).max() < 1e-4
    assert list(pictures_of(catalogue, [2])) == [image_bytes(1)]
    kept, whole = pictures_of(catalogue, [1, 2])
    assert (kept[:2], whole) == (b"\xff\xd8", image_bytes(1))  # a small JPEG of what went
    assert encoder_of(catalogue).name == ENCODER
    again = bring(catalogue, "birds", folder)
    assert (again.n_items, again.n_embedded) == (8, 1)  # only the one that was changed
    assert str(import_labelled(catalogue, file)) == "9 photographs, nothing has changed"


def test_texts_of_an_older_catalogue(tmp_path):
    pd.DataFrame({"text": ["wake me", "my bag"], "label": ["alarm", "luggage"], "guest": ["Ada", "Bob"]}).to_csv(
        tmp_path / "calls.csv", index=False
    )
    write_older_file(tmp_path / "old.handful", tmp_path / "calls.csv", VOWELS)
    catalogue = CatalogueFile.open(tmp_path / "new.handful")
    _ = import_labelled(catalogue, tmp_path / "old.handful", "calls of 0.5")
    assert pictures_of(catalogue, [2, 1]) == ("my bag", "wake me")
    assert answers(catalogue) == ["alarm", "luggage"]
    columns = catalogue.rows([1])[0].columns
    assert columns["guest"] == "Ada"
    assert "calls.csv" in columns["said"]
    assert bring(catalogue, "more", ["my bag"]).n_embedded == 0


def test_a_file_of_version_0_4_0():
    old = load_model(OLD)
    catalogue = CatalogueFile.open()
    assert len(import_labelled(catalogue, OLD).new) == old.n_examples
    assert answers(catalogue) == [str(label) for label in old.examples.labels.tolist()]
    assert np.allclose(vectors_of(catalogue, list(catalogue.said.answers)), old.examples.points, atol=1e-4)


def test_a_model_that_keeps_no_examples_is_refused(tmp_path):
    save_model(FittedModel.of_names(np.eye(3), np.array(["a", "b", "c"])), tmp_path / "names.handful")
    with pytest.raises(BankError, match="names of classes and no examples"):
        import_labelled(CatalogueFile.open(), tmp_path / "names.handful")
