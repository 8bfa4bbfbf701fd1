"""At every door, the certainty of a label is `p (1 - unknown) (n + 1)/(n + 2)`, the chance that it is right."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import handful
from handful.classification import classify, task, write_page, write_predictions, write_tasks
from handful.estimators import BatchClassifier
from handful.fields.voices.rttm import read_rttm
from handful.scale import label_table
from handful_fewshot import MethodClassifier
from tests.answers_at_hand import answer_of
from tests.worlds import Clouds

N_EXAMPLES = 100
MOST = (N_EXAMPLES + 1) / (N_EXAMPLES + 2)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Twenty classes; a batch of 24 items of two of them, 9 of none and 3 in between; and files of both."""
    rng, folder = np.random.default_rng(4), tmp_path_factory.mktemp("files")
    clouds = Clouds(21, 24, rng)

    def drawn(of, noise):
        return clouds.around(of, noise).astype(np.float32)

    X, y = drawn(np.arange(20).repeat(5), 0.5), np.array([f"class {k:02}" for k in range(20)]).repeat(5)
    batch = drawn([3] * 12 + [7] * 12 + [20] * 12, 0.6)
    batch[-3:] += 0.6 * (clouds.centres[3] - batch[-3:])
    np.savez(folder / "c.npz", features=X, labels=y)
    np.savez(folder / "b.npz", features=batch, site=["marsh"] * len(batch))
    return folder, BatchClassifier().fit(X, y), batch


@pytest.fixture(scope="module")
def expected(world):
    """What `infer` says: labels, how certain they are, and which items are rejected, with what chance."""
    _, classifier, batch = world
    found = classifier.infer(batch)
    assert 0 < found.rejected.sum() < len(batch)
    return found, found.probabilities.max(1) * (1 - found.unknown) * MOST


def test_infer_and_its_table(world, expected):
    _, classifier, batch = world
    found, certainty = expected
    np.testing.assert_allclose(found.certainty, certainty)
    table = found.to_frame()
    np.testing.assert_array_equal(table["certainty"], found.certainty)
    second = np.sort(found.probabilities, axis=1)[:, -2] * (1 - found.unknown) * MOST
    np.testing.assert_allclose(table["runner_up_certainty"], second, atol=1e-9)
    grouped = classifier.infer(batch, groups=["marsh"] * len(batch))
    np.testing.assert_allclose(grouped.certainty, certainty, atol=1e-5)


def test_sure_labels_and_doubt(expected):
    found, certainty = expected
    sure = [label is not None for label in found.sure_labels]
    assert sure == ((certainty >= 0.9) & ~found.rejected).tolist()
    assert 0 < sum(sure) < len(sure)
    # As unlikely to be right as not, although no other class is likely.
    unsure = answer_of([[0.99, 0.01, 0.0]] * 3, list("abc"), unknown=np.array([0.1, 0.6, np.nan]))
    assert (unsure.doubtful.tolist(), unsure.sure_labels.tolist()) == ([False, True, False], [None, None, "a"])
    np.testing.assert_allclose(unsure.certainty, [0.891, 0.396, 0.99])


def test_explanations(world, expected):
    _, classifier, batch = world
    found, certainty = expected
    for item, why in enumerate(classifier.explain(batch, [0, 12, 30])):
        at = (0, 12, 30)[item]
        assert why.certainty == pytest.approx(certainty[at], abs=1e-6)
        shown = found.unknown[at] if found.rejected[at] else certainty[at]
        assert f"({shown:.2f})" in str(why).partition(" Alone")[0]


def test_questions_ask_about_what_is_likely_wrong(world, expected):
    _, classifier, batch = world
    found, certainty = expected
    asked = classifier.questions(batch, len(batch))
    wrong = 1 - certainty / MOST
    # All questions together speak for all labels, and each item for itself.
    assert sum(question.worth for question in asked) == pytest.approx(wrong.sum(), rel=1e-6)
    assert found.rejected[asked[0].item]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("how", ["whole", "groups", "large"])
def test_tables_of_predictions(world, expected, monkeypatch, tmp_path, how, ending):
    folder, _, _ = world
    found, certainty = expected
    if how == "large":
        monkeypatch.setattr(task, "MOST_DENSE_BYTES", 0)
    by = "site" if how == "groups" else None
    for none in (None, "other"):
        told = classify(folder / "c.npz", folder / "b.npz", group_by=by, unknown=none)
        write_predictions(told, tmp_path / f"p.{ending}")
        if ending == "csv":
            with (tmp_path / "p.csv").open() as stream:
                rows = list(csv.DictReader(stream))
        else:
            rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
        shown = np.array([float(row["certainty"]) for row in rows])
        wanted = certainty if none is None else np.where(found.rejected, found.unknown, certainty)
        np.testing.assert_allclose(shown, wanted, atol=1e-3)
        assert [row["label"] == "other" for row in rows] == (found.rejected & (none is not None)).tolist()


def test_cells(world, expected, tmp_path):
    anndata = pytest.importorskip("anndata")
    _, classifier, batch = world
    names = np.array([f"cell {i}" for i in range(len(batch))])
    cells = anndata.AnnData(np.zeros((len(batch), 1), np.float32), obsm={"X_pca": batch})
    cells.obs_names = names
    cells.write_h5ad(tmp_path / "b.h5ad")
    examples = np.load(world[0] / "c.npz")
    atlas = anndata.AnnData(np.zeros((N_EXAMPLES, 1), np.float32), obsm={"X_pca": examples["features"]})
    atlas.obs["kind"] = examples["labels"].astype(str)
    atlas.write_h5ad(tmp_path / "c.h5ad")
    write_predictions(classify(tmp_path / "c.h5ad", tmp_path / "b.h5ad", labels="kind"), tmp_path / "out.h5ad")
    after = anndata.read_h5ad(tmp_path / "out.h5ad")
    np.testing.assert_allclose(after.obs["handful_certainty"], expected[1], atol=1e-5)
    np.testing.assert_allclose(after.obsm["handful_probabilities"], classifier.predict_proba(batch), atol=1e-5)


def test_label_studio_and_the_page(world, expected, tmp_path):
    folder, _, _ = world
    found, certainty = expected
    told = classify(folder / "c.npz", folder / "b.npz")
    shown = np.where(found.rejected, found.unknown, certainty)
    write_tasks(told, tmp_path / "tasks.json")
    predictions = [task["predictions"][0] for task in json.loads((tmp_path / "tasks.json").read_text())]
    np.testing.assert_allclose([one["score"] for one in predictions], shown, atol=1e-5)
    choices = [one["result"][0]["value"]["choices"][0] for one in predictions]
    assert choices == np.where(found.rejected, "none of these", found.labels).tolist()
    write_page(told, tmp_path / "page.html", title="marsh")
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.partition("id='data'>")[2].partition("</script>")[0])
    np.testing.assert_allclose(data["certainty"], certainty, atol=1e-3)
    np.testing.assert_allclose(data["unknown"], found.unknown, atol=1e-3)
    assert data["rejected"] == found.rejected.astype(int).tolist()


def test_voices(world, expected, tmp_path):
    folder, _, batch = world
    found, certainty = expected
    lines = [f"SPEAKER a 1 {i}.0 0.9 <NA> <NA> S <NA> <NA>\n" for i in range(len(batch))]
    (tmp_path / "d.rttm").write_text("".join(lines))
    np.save(tmp_path / "d.npy", batch)
    told = classify(folder / "c.npz", tmp_path / "d.rttm")
    write_predictions(told, tmp_path / "named.rttm")
    shown = [float(line.split()[8]) for line in (tmp_path / "named.rttm").read_text().splitlines()]
    np.testing.assert_allclose(shown, np.where(found.rejected, found.unknown, certainty), atol=1e-4)
    names = read_rttm(tmp_path / "named.rttm")["speaker"]
    assert [name.startswith("unknown") for name in names] == found.rejected.tolist()


def test_tables_of_groups(world, expected):
    _, classifier, batch = world
    table = pa.table({"site": ["marsh"] * len(batch), "vector": batch.tolist()})
    items, _ = label_table(table, classifier, "site", features="vector")
    np.testing.assert_allclose(items["certainty"].to_numpy(), expected[1], atol=1e-5)


def test_methods_of_the_literature(world):
    folder, _, batch = world
    examples = np.load(folder / "c.npz")
    found = MethodClassifier("nearest_prototype").fit(examples["features"], examples["labels"]).infer(batch)
    np.testing.assert_allclose(found.certainty, found.probabilities.max(1) * MOST)


@pytest.mark.parametrize("how", ["memory", "large"])
def test_what_a_person_said_is_certain(world, monkeypatch, how):
    folder, _, batch = world
    if how == "large":
        monkeypatch.setattr(task, "MOST_DENSE_BYTES", 0)
    told = classify(folder / "c.npz", folder / "b.npz", given={0: "class 05", 1: None, 30: "class 03"})
    assert told.certainty[[0, 1, 30]].tolist() == [1, 0, 1]
    assert (told.unknown[1], told.rejected[1]) == (1, True)
    most = (N_EXAMPLES + 3) / (N_EXAMPLES + 4)  # two more examples
    assert told.certainty[np.setdiff1d(np.arange(len(batch)), [0, 1, 30])].max() <= most


def test_few_examples_support_no_large_certainty():
    rng = np.random.default_rng(0)
    for shots, most in ((2, 13 / 14), (4, 25 / 26), (50, 301 / 302)):
        X = 9 * np.eye(6).repeat(shots, 0) + 0.1 * rng.normal(size=(6 * shots, 6))
        found = BatchClassifier().fit(X, np.arange(6).repeat(shots)).infer(9 * np.eye(6)[[1, 1, 4]])
        assert found.probabilities.max() > 0.9999
        assert found.certainty.max() <= most
        assert (found.certainty > 0.9 * most).all()


def test_scores_have_no_examples_and_several_classes_their_own_chances():
    scores = np.random.default_rng(0).uniform(size=(12, 4))
    one = handful.infer_scores(scores, kind="sigmoid")
    np.testing.assert_allclose(one.certainty, one.probabilities.max(1))
    several = handful.infer_scores(scores, kind="sigmoid", several=True)
    np.testing.assert_allclose(several.certainty, several.probabilities.max(1))
