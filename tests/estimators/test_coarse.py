"""Coarse classes: sums over their classes, the finest level that is sure, and every door that takes them."""

import json

import numpy as np
import pytest

from handful.classification import classify, rescore
from handful.classification.files import write_predictions
from handful.classification.labelled import predictions
from handful.classification.page_data import page_data
from handful.cli.main import main
from handful.errors import FileFormatError, LabelError, OptionError
from handful.estimators import BatchClassifier, infer_scores
from tests.optional import optional
from tests.worlds import Clouds

pd = optional("pandas")

SPECIES = ["house sparrow", "tree sparrow", "raven", "crow", "owl"]
GENUS = {"house sparrow": "sparrow", "tree sparrow": "sparrow", "raven": "corvid", "crow": "corvid"}


@pytest.fixture(scope="module")
def birds():
    """The two sparrows look the same, all others are far apart; a batch of one sparrow and of ravens."""
    rng = np.random.default_rng(0)
    clouds = Clouds(5, 12, rng, apart=6)
    clouds.centres[1] = clouds.centres[0]
    y = np.array(SPECIES).repeat(20)
    X = clouds.examples(20)
    return X, y, clouds.around([0] * 10 + [2] * 10)


def test_where_classes_cannot_be_told_apart_the_answer_is_the_coarse_one(birds):
    X, y, batch = birds
    found = BatchClassifier().fit(X, y).infer(batch, coarse=GENUS)
    p = dict(zip(found.classes.tolist(), found.probabilities.T, strict=True))
    both, known = p["house sparrow"] + p["tree sparrow"], (1 - found.unknown) * 101 / 102
    np.testing.assert_allclose(found.coarse.certainty[:10], (both * known)[:10])
    assert found.coarse.classes.tolist() == ["corvid", "owl", "sparrow"]  # owls are their own coarse class
    assert (found.certainty[:10] < 0.9).all()
    assert found.sure_labels.tolist() == ["sparrow"] * 10 + ["raven"] * 10
    plain = BatchClassifier().fit(X, y).infer(batch)
    np.testing.assert_array_equal(plain.probabilities, found.probabilities)
    assert plain.sure_labels.tolist() == [None] * 10 + ["raven"] * 10
    assert "items have a class" not in plain.summary()
    assert "10 of 20 items have a class with a certainty of at least 0.9, and 10 more a coarse class" in found.summary()
    table = found.to_frame()
    assert table.columns.tolist()[-3:] == ["coarse", "coarse_certainty", "sure_label"]
    assert table["coarse"].tolist() == ["sparrow"] * 10 + ["corvid"] * 10


def test_groups_and_sequences_have_coarse_classes_too(birds):
    X, y, batch = birds
    classifier, sites = BatchClassifier().fit(X, y), np.arange(20) % 2
    found = classifier.infer(batch, groups=sites, coarse=GENUS)
    alone = classifier.infer(batch[sites == 1], coarse=GENUS)
    assert found[1].sure_labels.tolist() == alone.sure_labels.tolist()
    np.testing.assert_allclose(found[1].coarse.certainty, alone.coarse.certainty, atol=1e-6)
    whole = classifier.infer(batch, coarse=GENUS, sequence=[0] * 10 + [1] * 10)
    assert len(set(whole.coarse.certainty[:10].tolist())) == 1


def test_a_rejected_item_is_sure_of_nothing(birds):
    X, y, batch = birds
    found = BatchClassifier().fit(X, y).infer(batch, coarse=GENUS, given={0: None, 1: "crow"})
    assert found.sure_labels[:2].tolist() == [None, "crow"]
    assert found.coarse.labels[1] == "corvid"


def test_coarse_classes_that_make_no_sense_are_refused(birds):
    X, y, batch = birds
    classifier = BatchClassifier().fit(X, y)
    with pytest.raises(OptionError, match="coarse must be a mapping"):
        classifier.infer(batch, coarse=["sparrow"] * 5)
    with pytest.raises(LabelError, match="'eagle' is not in the catalogue"):
        classifier.infer(batch, coarse={"eagle": "raptor"})
    for name in (["finch"], {"finch": 1}, None, "", float("nan")):
        with pytest.raises(OptionError, match="give it a name"):
            classifier.infer(batch, coarse={y[0]: name})
    with pytest.raises(OptionError, match="leave coarse out"):
        infer_scores(np.full((3, 2), 0.5), ["a", "b"], kind="sigmoid", several=True, coarse={"a": "c"})


@pytest.fixture
def files(birds, tmp_path):
    X, y, batch = birds
    vectors = [f"e{i}" for i in range(X.shape[1])]
    catalogue = pd.DataFrame(X, columns=vectors).assign(label=y, genus=[GENUS.get(name, "") for name in y])
    catalogue.to_csv(tmp_path / "catalogue.csv", index=False)
    pd.DataFrame(batch, columns=vectors).to_csv(tmp_path / "batch.csv", index=False)
    pd.DataFrame(GENUS.items(), columns=["class", "coarse"]).to_csv(tmp_path / "genera.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("coarse", ["genus", "genera.csv"])
def test_a_column_of_the_catalogue_or_a_table_names_coarse_classes(files, coarse):
    said = str(files / coarse) if coarse.endswith(".csv") else coarse
    found = classify(files / "catalogue.csv", files / "batch.csv", coarse=said)
    assert predictions(found)["sure_label"] == ["sparrow"] * 10 + ["raven"] * 10
    assert set(predictions(found)["coarse"]) == {"sparrow", "corvid"}
    write_predictions(found, files / "labels.csv")
    written = pd.read_csv(files / "labels.csv")
    assert written["sure_label"].tolist() == ["sparrow"] * 10 + ["raven"] * 10
    assert (written["coarse_certainty"] >= written["certainty"] - 1e-6).all()


def test_a_class_has_one_coarse_class(files):
    catalogue = pd.read_csv(files / "catalogue.csv")
    catalogue.loc[0, "genus"] = "weaver"
    catalogue.to_csv(files / "catalogue.csv", index=False)
    with pytest.raises(OptionError, match=r"'house sparrow' have two values in the column 'genus'"):
        classify(files / "catalogue.csv", files / "batch.csv", coarse="genus")
    with pytest.raises(OptionError, match="neither a column of the catalogue"):
        classify(files / "catalogue.csv", files / "batch.csv", coarse="family_of_birds")
    with (files / "genera.csv").open("a") as table:
        table.write("raven,raptor\n")
    with pytest.raises(FileFormatError, match="two coarse classes for 'raven'"):
        classify(files / "catalogue.csv", files / "batch.csv", coarse=files / "genera.csv")
    (files / "genera.csv").write_text("class,coarse\neagle,raptor\n")
    with pytest.raises(FileFormatError, match="lists none of the 5 classes"):
        classify(files / "catalogue.csv", files / "batch.csv", coarse=files / "genera.csv")


def test_scores_with_a_taxonomy_need_no_table(tmp_path):
    red, roe, fox = (
        "1;mammalia;cetartiodactyla;cervidae;cervus;elaphus;red deer",
        "2;mammalia;cetartiodactyla;cervidae;cervus;nippon;sika deer",
        "3;mammalia;carnivora;canidae;vulpes;vulpes;red fox",
    )
    scores = {"classes": [red, roe, fox], "scores": [0.49, 0.48, 0.01]}
    images = [{"filepath": f"{i}.jpg", "classifications": scores} for i in range(6)]
    (tmp_path / "predictions.json").write_text(json.dumps({"predictions": images}))
    found = rescore(tmp_path / "predictions.json", coarse="genus")
    np.testing.assert_allclose(found.coarse.certainty, found.probabilities[:, :2].sum(1))
    assert set(predictions(found)["coarse"]) == {"cervus"}
    assert rescore(tmp_path / "predictions.json", coarse="family").coarse.labels[0] == "cervidae"
    plain = [{"filepath": "a.jpg", "classifications": {"classes": ["cow", "elk"], "scores": [0.8, 0.1]}}]
    (tmp_path / "plain.json").write_text(json.dumps({"predictions": plain}))
    with pytest.raises(OptionError, match="the classes do not say their genus, such as 'cow'"):
        rescore(tmp_path / "plain.json", coarse="genus")


def test_the_command_says_how_many_are_sure(files, capsys):
    paths = [str(files / name) for name in ("catalogue.csv", "batch.csv", "labels.csv")]
    line = ["classify", paths[0], paths[1], "--out", paths[2], "--coarse", "genus"]
    assert main(line) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "10 of 20 items have a class with a certainty of at least 0.9, and 10 more a coarse class" in said


def test_the_page_shows_coarse_classes(files):
    data = page_data(classify(files / "catalogue.csv", files / "batch.csv", coarse="genus"), "birds")
    assert data["coarse"] == ["sparrow"] * 10 + ["corvid"] * 10
    assert min(data["coarse_certainty"]) > 0.95
    assert page_data(classify(files / "catalogue.csv", files / "batch.csv"), "birds")["coarse"] is None
