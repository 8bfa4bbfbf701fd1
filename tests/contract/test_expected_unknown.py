"""How many items belong to no class: what a person says about it has the same effect at every door, or is refused."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import handful_fewshot as fewshot
from handful.classification import classify, rescore
from handful.classification import task as task_module
from handful.classification.files import write_predictions
from handful.cli.main import main
from handful.errors import HandfulError, OptionError, UnusedShareWarning
from handful.estimators import BatchClassifier, infer_scores
from handful.estimators.unknown_share import UnknownShare
from handful.scale import decide, label_table
from tests.doors import DOORS, Room
from tests.worlds import Clouds

N_KNOWN, N_STRANGE = 40, 20
N_ITEMS = N_KNOWN + N_STRANGE
STRANGE = np.arange(N_ITEMS) >= N_KNOWN
# What a person says, and the same on the command line.
SAID = {"true": (True, []), "share": (0.3, ["0.3"]), "range": ((0.1, 0.5), ["0.1-0.5"]), "none": (0, ["0"])}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Thirty classes; a batch of four of them, and of four others that the catalogue does not have."""
    folder, rng = tmp_path_factory.mktemp("expected"), np.random.default_rng(0)
    clouds = Clouds(34, 24, rng)
    y = np.repeat(np.arange(30), 5)
    X = clouds.around(y, 0.75).astype(np.float32)
    truth = np.concatenate([rng.integers(0, 4, N_KNOWN), rng.integers(30, 34, N_STRANGE)])
    batch = clouds.around(truth, 0.75).astype(np.float32)
    names = np.array([f"c{k:02d}" for k in range(30)])
    np.savez(folder / "c.npz", features=X, labels=names[y])
    np.savez(folder / "b.npz", features=batch, site=["wood"] * N_ITEMS)
    return folder, BatchClassifier().fit(X, names[y]), batch, truth


class OwnDoors:
    """Doors without an `Answer`; each returns the rejected items, their chances, or None for what it has not."""

    def __init__(self, world, tmp_path, monkeypatch):
        self.folder, self.classifier, self.batch, _ = world
        self.out, self.monkeypatch = tmp_path, monkeypatch

    def predict(self, said, _):
        return self.classifier.predict(self.batch, unknown="other", expect_unknown=said) == "other", None

    def predict_groups(self, said, _):
        groups = ["wood"] * N_ITEMS
        return self.classifier.predict(self.batch, groups, unknown="other", expect_unknown=said) == "other", None

    def explain(self, said, _):
        why = self.classifier.explain(self.batch, range(N_ITEMS), expect_unknown=said)
        return np.array([one.rejected for one in why]), np.array([one.unknown for one in why])

    def one_of_the_groups(self, said, _):
        rows, groups = np.concatenate([self.batch] * 2), np.repeat(["marsh", "wood"], N_ITEMS)
        found, bare = (
            self.classifier.infer(rows, groups, expect_unknown={"wood": said}),
            self.classifier.infer(self.batch),
        )
        np.testing.assert_allclose(found["marsh"].unknown, bare.unknown, atol=1e-5)
        assert found["marsh"].rejected.tolist() == bare.rejected.tolist()
        return found["wood"].rejected, found["wood"].unknown

    def label_table(self, said, _):
        items, groups = label_table(self._table(), self.classifier, "site", expect_unknown=said)
        return groups["unknown_items"][0].as_py(), items["unknown"].to_numpy()

    def decide(self, said, _):
        decision = decide(self._table(), self.classifier, expect_unknown=said)
        items, totals = decision.label(self._table())
        return decision.summary(totals)["unknown_items"][0].as_py(), items["unknown"].to_numpy()

    def command_line(self, _, words):
        files = [self.folder / "c.npz", self.folder / "b.npz"]
        assert main(["classify", *map(str, files), "--expect-unknown", *words, "--out", str(self.out / "o.csv")]) == 0
        table = pd.read_csv(self.out / "o.csv")
        return table["rejected"].to_numpy(), table["unknown"].to_numpy()

    def command_line_last(self, _, words):
        files = [self.folder / "c.npz", self.folder / "b.npz", "--out", self.out / "o.csv"]
        assert main(["classify", *map(str, files), "--expect-unknown", *words]) == 0
        return pd.read_csv(self.out / "o.csv")["rejected"].to_numpy(), None

    def _table(self):
        arrow = pytest.importorskip("pyarrow")
        return arrow.table({"site": ["wood"] * N_ITEMS, "vector": self.batch.tolist()})


OWN_DOORS = [name for name in vars(OwnDoors) if not name.startswith("_")]


@pytest.fixture(scope="module")
def room(world, tmp_path_factory):
    _, classifier, batch, _ = world
    return Room.of(classifier, batch, tmp_path_factory.mktemp("room"))


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_rejects_the_same(room, door, said):
    known = {"expect_unknown": SAID[said][0]}
    found = room.classifier.infer(room.batch, **known)
    answer = DOORS[door](room, known)
    assert answer.rejected.tolist() == found.rejected.tolist()
    np.testing.assert_allclose(answer.unknown, found.unknown, atol=1e-4)


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("door", OWN_DOORS)
def test_so_do_doors_without_an_answer(world, tmp_path, monkeypatch, door, said):
    found = world[1].infer(world[2], expect_unknown=SAID[said][0])
    rejected, unknown = getattr(OwnDoors(world, tmp_path, monkeypatch), door)(*SAID[said])
    if isinstance(rejected, int):
        assert rejected == found.rejected.sum()
    else:
        assert rejected.tolist() == found.rejected.tolist()
    if unknown is not None:
        np.testing.assert_allclose(unknown, found.unknown, atol=1e-4)


def test_what_is_said_changes_the_answer(world):
    _, classifier, batch, _ = world
    for said in (True, 0.3, (0.1, 0.5)):
        found = classifier.infer(batch, expect_unknown=said)
        assert found.rejected[STRANGE].mean() > 0.8
        assert found.rejected[~STRANGE].mean() < 0.1
        assert found.rejected.sum() == round(found.unknown.sum())
    for nothing in (0, False, 0.0):
        found = classifier.infer(batch, expect_unknown=nothing)
        assert not found.rejected.any()
        assert (found.unknown == 0).all()
        assert found.unknown_interval == (0, 0)
    shares = [classifier.infer(batch[:9], expect_unknown=share).unknown.mean() for share in (0.02, 0.2, 0.6)]
    assert shares == sorted(shares)
    assert shares[0] < shares[2]


# -- what cannot be used -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [1, 1.5, -0.1, "0.3", "many", (0.5, 0.1), [0.3], (0.1, 0.2, 0.3), float("nan"), []])
def test_anything_else_is_refused(world, said):
    folder, classifier, batch, _ = world
    for door in (
        lambda: classifier.infer(batch, expect_unknown=said),
        lambda: classifier.infer(batch, ["wood"] * N_ITEMS, expect_unknown={"wood": said}),
        lambda: classifier.predict(batch, expect_unknown=said),
    ):
        with pytest.raises(OptionError, match=r"expect_unknown must be True, a share .* such as 0\.3"):
            door()
    with pytest.raises(OptionError, match="expect_unknown"):
        classify(folder / "c.npz", folder / "b.npz", expect_unknown=said)


@pytest.mark.parametrize("said", ["1.5", "0.5-0.1", "0.1,0.2,0.3", "many"])
def test_the_command_line_refuses_in_one_sentence(world, tmp_path, capsys, said):
    files = [world[0] / "c.npz", world[0] / "b.npz", "--out", tmp_path / "o.csv"]
    assert main(["classify", *map(str, files), "--expect-unknown", said]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert "expect_unknown" in error
    assert "such as 0.3" in error
    assert not (tmp_path / "o.csv").exists()


def test_groups_that_do_not_exist_are_refused(world):
    _, classifier, batch, _ = world
    with pytest.raises(OptionError, match="expect_unknown by group need groups, and there are none"):
        classifier.infer(batch, expect_unknown={"wood": 0.3})
    with pytest.raises(OptionError, match="expect_unknown mention none of the groups, for instance 'sea'"):
        classifier.infer(batch, ["wood"] * N_ITEMS, expect_unknown={"sea": 0.3})


def test_scores_and_other_methods_cannot_use_it(world, tmp_path, capsys):
    folder, _, batch, _ = world
    with pytest.raises(
        OptionError, match="scores do not tell which items belong to no class; leave expect_unknown out"
    ):
        infer_scores(batch, kind="similarities", expect_unknown=0.3)
    scored = {"filepath": "a.jpg", "classifications": {"classes": ["cow", "deer"], "scores": [0.8, 0.1]}}
    (tmp_path / "p.json").write_text(json.dumps({"predictions": [scored] * 3}))
    with pytest.raises(OptionError, match="leave expect_unknown out"):
        rescore(tmp_path / "p.json", expect_unknown=True)
    words = ["rescore", str(tmp_path / "p.json"), "--out", str(tmp_path / "o.csv"), "--expect-unknown"]
    assert main(words) == 2
    assert "No such option: --expect-unknown" in capsys.readouterr().err
    assert "paddle" in fewshot.METHODS
    for said in (True, 0):
        with pytest.raises(
            OptionError, match="'paddle' labels one batch with examples alone; leave out expect_unknown"
        ):
            classify(folder / "c.npz", folder / "b.npz", method="paddle", expect_unknown=said)


def test_a_catalogue_that_cannot_tell_says_so(world):
    _, _, batch, _ = world
    rng = np.random.default_rng(1)
    single = BatchClassifier().fit(rng.normal(size=(30, 24)), np.arange(30))  # one example of each
    with pytest.warns(UnusedShareWarning, match="Unknown items are expected, but none could be named"):
        found = single.infer(batch, expect_unknown=0.3)
    assert not found.rejected.any()
    assert "unused_share" in [diagnostic.name for diagnostic in found.diagnostics]
    grouped = single.infer(batch, ["wood"] * N_ITEMS, expect_unknown={"wood": True})
    assert "unused_share" in [diagnostic.name for diagnostic in grouped["wood"].diagnostics]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnusedShareWarning)
        single.infer(batch, expect_unknown=0)
        single.infer(batch)
    names = BatchClassifier().add_names(dict(enumerate(rng.normal(size=(30, 24)))))
    with pytest.warns(UnusedShareWarning):
        assert not names.infer(batch, expect_unknown=True).rejected.any()


# -- the batches before ------------------------------------------------------------------------------------------------


def test_reviewed_batches_tell_how_many_to_expect(world, tmp_path):
    folder, classifier, batch, truth = world
    given = {item: None if STRANGE[item] else f"c{truth[item]:02d}" for item in range(N_ITEMS)}
    reviewed = classifier.infer(batch, given=given)
    share = UnknownShare.of(reviewed)
    assert share.a + share.b == pytest.approx(22)
    assert share.a / (share.a + share.b) == pytest.approx((1 + 20 / 3) / 22)
    assert UnknownShare.of([reviewed, reviewed]) == pytest.approx(share)
    few = UnknownShare.after(np.array([1.0, 0.0, 0.0]))
    assert few == pytest.approx((2, 3))

    now = batch[::2]
    expected = classifier.infer(now, expect_unknown=share)
    found = classifier.infer(now, expect_unknown=reviewed)
    np.testing.assert_array_equal(found.unknown, expected.unknown)

    np.save(tmp_path / "now.npy", now)
    first = classify(folder / "c.npz", folder / "b.npz", given=given)
    for ending in ("csv", "parquet"):
        write_predictions(first, tmp_path / f"reviewed.{ending}")
        again = classify(folder / "c.npz", tmp_path / "now.npy", expect_unknown=tmp_path / f"reviewed.{ending}")
        np.testing.assert_allclose(again.unknown, expected.unknown, atol=1e-4)
    files = [folder / "c.npz", tmp_path / "now.npy", "--out", tmp_path / "o.csv"]
    words = ["classify", *map(str, files), "--expect-unknown", str(tmp_path / "reviewed.csv")]
    assert main(words) == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "o.csv")["unknown"], expected.unknown, atol=1e-4)


def test_earlier_predictions_must_have_chances(world, tmp_path):
    folder, _, batch, _ = world
    for text, said in (
        ("item,label\na,c01\n", "has no probabilities in a column 'unknown'"),
        ("item,unknown\na,\n", "has no probabilities in a column 'unknown'"),
        ("item,unknown\na,0.2\nb,2\n", "must have a probability in every row"),
        ("item,unknown\na,0.2\nb,no\n", "must have a probability in every row"),
    ):
        (tmp_path / "p.csv").write_text(text)
        with pytest.raises(HandfulError, match=said):
            classify(folder / "c.npz", folder / "b.npz", expect_unknown=tmp_path / "p.csv")
    by_method = fewshot.MethodClassifier("nearest_prototype").fit(batch, np.arange(N_ITEMS) % 3).infer(batch)
    with pytest.raises(OptionError, match="earlier answers in which unknown items were not judged"):
        UnknownShare.of(by_method)


def test_earlier_predictions_are_not_overwritten(world, tmp_path, capsys):
    folder = world[0]
    (tmp_path / "p.csv").write_text("item,unknown\na,0.2\n")
    files = [folder / "c.npz", folder / "b.npz", "--out", tmp_path / "p.csv"]
    assert main(["classify", *map(str, files), "--expect-unknown", str(tmp_path / "p.csv")]) == 1
    assert "earlier predictions" in capsys.readouterr().err
    assert (tmp_path / "p.csv").read_text() == "item,unknown\na,0.2\n"


# -- labels of a person reach the model at every door -----------------------------------------------------------------


def test_labels_of_a_person_count_alike_at_every_door(world, monkeypatch):
    folder, classifier, batch, truth = world
    given = {item: None if STRANGE[item] else f"c{truth[item]:02d}" for item in range(0, N_ITEMS, 6)}
    found = classifier.infer(batch, given=given, expect_unknown=0.3)
    assert found.rejected[[item for item in given if STRANGE[item]]].all()
    grouped = classifier.infer(batch, ["wood"] * N_ITEMS, given=given, expect_unknown=0.3)["wood"]
    about = {"given": given, "expect_unknown": 0.3}
    doors = {
        "groups": grouped,
        "classify": classify(folder / "c.npz", folder / "b.npz", **about),
        "classify groups": classify(folder / "c.npz", folder / "b.npz", group_by="site", **about),
    }
    monkeypatch.setattr(task_module, "MOST_DENSE_BYTES", 0)
    doors["large"] = classify(folder / "c.npz", folder / "b.npz", **about)
    for door, answer in doors.items():
        assert answer.rejected.tolist() == found.rejected.tolist(), door
        np.testing.assert_allclose(answer.unknown, found.unknown, atol=1e-4, err_msg=door)
        assert answer.labels.tolist() == found.labels.tolist(), door
        np.testing.assert_allclose(np.ravel(answer.presence), found.presence, atol=1e-3, err_msg=door)


@pytest.mark.parametrize("n_items", [1500])
def test_in_a_large_batch_labels_of_a_person_are_among_the_items_that_decide(world, n_items, monkeypatch):
    _, classifier, _, _ = world
    rng, seen = np.random.default_rng(0), []
    batch = rng.normal(size=(n_items, 24)).astype(np.float32)
    given = dict.fromkeys(range(3, n_items, 400))

    from handful.model import stream

    decide = stream.decide

    def watched(items, settings):
        labels = items.knowledge.labels
        seen.append(labels.code[labels.given])
        return decide(items, settings)

    monkeypatch.setattr(stream, "decide", watched)
    found = classifier.infer(batch, given=given, expect_unknown=0.3)
    n_classes = len(classifier.classes_)
    assert [(codes >= n_classes).sum() for codes in seen] == [len(given)]
    assert found.rejected[list(given)].all()


# -- together with the other things that are known ---------------------------------------------------------------------


def test_sequences_are_rejected_as_a_whole_and_no_more_than_are_expected(world):
    _, classifier, batch, _ = world
    sequence = np.arange(N_ITEMS) // 4
    for said in (True, 0.3, 0.6):
        found = classifier.infer(batch, sequence=sequence, expect_unknown=said)
        whole = found.rejected.reshape(-1, 4)
        assert (whole.all(1) == whole.any(1)).all()
        assert whole[STRANGE[::4]].mean() > 0.7
        assert found.rejected.sum() <= round(found.unknown.sum())
    assert not classifier.infer(batch, sequence=sequence, expect_unknown=0).rejected.any()


def test_siblings_keep_what_is_expected_of_each(world):
    _, classifier, batch, _ = world
    rows, groups = np.concatenate([batch] * 3), np.repeat(["a", "b", "c"], N_ITEMS)
    found = classifier.infer(rows, groups, pool=True, expect_unknown={"a": 0, "b": 0.3})
    assert not found["a"].rejected.any()
    assert found["a"].unknown_interval == pytest.approx((0, 0))
    assert found["b"].rejected[STRANGE].mean() > 0.8
