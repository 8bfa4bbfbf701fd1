"""The answer: what a batch says about its classes, its tables and text, and the answers about single groups."""

import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import handful
from handful.datasets import load_clinc150
from handful.errors import LabelError, MissingExtraError, OptionError, UnlikeCatalogueWarning
from handful.estimators import Answer, BatchClassifier, Diagnostic
from handful.estimators.answer import counted, top_of
from handful.estimators.batches import Batches
from handful.estimators.items import ModelItems
from handful.estimators.summary import aligned, listed_in_words
from handful.fitted import FittedModel
from handful.model.knowledge import Knowledge
from handful.model.present_classes import LEAST_LISTED, PRESENT
from tests.answers_at_hand import answer_of
from tests.optional import given, optional, st
from tests.worlds import Clouds

pd = optional("pandas")
pl = optional("polars")
pa = optional("pyarrow")
torch = optional("torch")

ROOT = Path(__file__).resolve().parents[2]
CLASSES = np.array([f"class {k:02}" for k in range(20)])
COLUMNS = ["label", "certainty", "runner_up", "runner_up_certainty", "doubtful", "unknown", "rejected", "proposal"]


# -- what a batch says about its classes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentences():
    """A catalogue of real sentences, and the other rows of each class."""
    bank, rng = load_clinc150(), np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(bank.labels == k)) for k in range(bank.n_classes)]
    support = np.concatenate([of_class[:5] for of_class in rows])
    catalogue = FittedModel.of(bank.take(support).astype(np.float32), bank.labels[support])
    return bank, catalogue, [of_class[5:] for of_class in rows]


def batch_of(bank, rows):
    return bank.take(np.concatenate(rows)).astype(np.float32)


def inferred(catalogue, batch) -> Answer:
    return Batches.of(ModelItems(catalogue, batch)).answer()


def test_everything_agrees_with_the_answer_of_the_catalogue(sentences):
    bank, catalogue, spare = sentences
    batch = batch_of(bank, [spare[3][:20], spare[30][:10]])
    found, expected = inferred(catalogue, batch), catalogue.label_points(catalogue.points(batch), Knowledge())
    assert found.joint_weight == expected.joint_weight
    assert 0 < found.joint_weight < 1
    np.testing.assert_array_equal(found.presence, expected.presence)
    np.testing.assert_array_equal(found.rejected, expected.rejected)
    np.testing.assert_allclose(found.expected_counts, expected.expected_counts)
    np.testing.assert_allclose(found.expected_counts, (1 - expected.unknown) @ expected.probabilities, atol=1e-3)
    np.testing.assert_allclose(found.probabilities.sum(-1), 1)
    assert (found.labels == found.probabilities.argmax(-1)).all()


def test_present_classes_are_those_with_an_even_chance_the_largest_first(sentences):
    bank, catalogue, spare = sentences
    found = inferred(catalogue, batch_of(bank, [spare[k][: 6 + k // 10] for k in range(0, 100, 10)]))
    counts, chances = found.expected_counts, found.presence
    assert set(found.present_classes.tolist()) == set(np.flatnonzero(chances >= PRESENT).tolist())
    assert (np.diff(counts[found.present_classes]) <= 0).all()
    # A class can hold most of an item and still be absent: the chance decides, not the count.
    assert ((chances > 0) & (chances <= 1)).all()  # one by rounding
    assert (chances < 1 - 1e-6).sum() > 130


def test_presence_says_how_often_a_class_is_there(sentences):
    """Over many batches: of the classes said to be present with a chance above a half, most are; of the others few."""
    bank, catalogue, spare = sentences
    rng, chances, truth = np.random.default_rng(1), [], []
    for _ in range(30):
        present = rng.choice(150, 5, replace=False)
        found = inferred(catalogue, batch_of(bank, [spare[k][:12] for k in present]))
        chances.append(found.presence)
        truth.append(np.isin(np.arange(150), present))
    p, there = np.concatenate(chances), np.concatenate(truth)
    assert there[p >= 0.9].mean() > 0.9
    assert there[p < 0.1].mean() < 0.01
    assert p.sum() == pytest.approx(there.sum(), rel=0.2)


def _fitted(n_classes, shots):
    rng = np.random.default_rng(0)
    y = np.arange(n_classes).repeat(shots)
    return BatchClassifier().fit(rng.normal(size=(n_classes, 8))[y] + 0.2 * rng.normal(size=(len(y), 8)), y)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: _fitted(1, 30), "With a single class every item has its label"),
        (lambda: _fitted(6, 3), "at least 20 different examples in classes of two or more; add"),
        (lambda: BatchClassifier().fit(np.ones((30, 8)), np.arange(6).repeat(5)), "20 different examples"),
        (lambda: BatchClassifier().add_names({"a": np.eye(8)[0], "b": np.eye(8)[1]}), "names of classes alone; add"),
    ],
)
def test_an_answer_says_why_unknown_items_were_not_judged(make, reason):
    batch = np.random.default_rng(1).normal(size=(12, 8))
    with warnings.catch_warnings(action="ignore"):
        found = make().infer(batch)
    assert reason in found.unknown_reason
    assert found.unknown_reason in found.summary()
    assert "unknown items not judged" in repr(found)
    assert "rejected" not in repr(found)


def test_groups_say_why_unknown_items_were_not_judged():
    batch = np.random.default_rng(1).normal(size=(12, 8))
    found = _fitted(6, 3).infer(batch, groups=["a", "b"] * 6)
    assert "20 different examples" in found.unknown_reason
    assert found["a"].unknown_reason == found.unknown_reason
    assert "unknown items not judged" in repr(found)
    assert found.unknown_reason in found.summary()
    assert "not judged" in found.summary().splitlines()[2]


def test_judged_items_need_no_reason():
    batch = np.random.default_rng(1).normal(size=(12, 8))
    for found in (_fitted(6, 5).infer(batch), _fitted(6, 5).infer(batch, groups=[0] * 12)):
        assert found.unknown_reason is None
        assert "not judged" not in repr(found)


def test_scores_of_several_classes_judge_unknown_items_and_others_do_not():
    chances = np.random.default_rng(0).uniform(size=(12, 4))
    assert "another model" in handful.infer_scores(chances, kind="sigmoid").unknown_reason
    assert handful.infer_scores(chances, kind="sigmoid", several=True).unknown_reason is None


def weak_world(seed):
    """Two noisy examples of each class, and a batch with nothing unknown in it."""
    rng = np.random.default_rng(seed)
    clouds = Clouds(40, 32, rng)
    y = np.arange(40).repeat(2)
    X, batch = (clouds.around(of, 2.0) for of in (y, np.arange(5).repeat(12)))
    return X, y, batch


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
@pytest.mark.parametrize("seed", range(4))
def test_features_that_cannot_tell_left_out_classes_reject_nothing(seed):
    X, y, batch = weak_world(seed)
    found = BatchClassifier().fit(X, y).infer(batch)
    assert not found.rejected.any()
    # In the others, examples lie from another class a hundredth of a deviation farther than from their own.
    if seed in (1, 2):
        assert "examples compared with another class look like those compared with their own" in found.unknown_reason


def test_an_answer_without_rejected_items_says_how_many_may_be_unknown():
    found = _fitted(6, 5).infer(np.random.default_rng(1).normal(size=(12, 8)))
    none = np.zeros(12, dtype=bool)
    wide, narrow = (replace(found, rejected=none, unknown=np.full(12, share)) for share in (0.4, 0.1))
    assert (
        "About 40% of the items may belong to none of the classes, and the batch does not tell which" in wide.summary()
    )
    assert "may belong to none" not in narrow.summary()
    assert "may belong to none" not in replace(wide, unknown_reason="It cannot be judged.").summary()


# -- tables and text ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    """A classifier, and a batch of two known classes and an unknown one."""
    rng = np.random.default_rng(0)
    clouds = Clouds(21, 24, rng)
    X = clouds.examples(5, 0.4, 20)
    batch = clouds.around([3] * 12 + [7] * 9 + [20] * 8, 0.4)
    batch[0] = 0.4728 * clouds.centres[3] + 0.5272 * clouds.centres[7]
    return BatchClassifier().fit(X, CLASSES.repeat(5)), batch


@given(seed=st.integers(0, 1000), k=st.integers(1, 7), n_classes=st.integers(1, 5))
def test_top_is_a_full_sort(seed, k, n_classes):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (6, n_classes)) / 4  # with many ties
    found = top_of(table, np.arange(n_classes), k)
    np.testing.assert_array_equal(found.probabilities, -np.sort(-table, axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(table, found.labels, 1), found.probabilities)


def test_top_needs_a_whole_number():
    with pytest.raises(OptionError, match="k must be a whole number of at least 1, got 0"):
        top_of(np.ones((1, 2)), np.arange(2), 0)


def test_doubt_is_a_narrow_lead():
    table = [[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.6, 0.1, 0.3]]
    assert answer_of(table, "abc").doubtful.tolist() == [False, True, True]
    assert answer_of(table, "abc", rejected=np.array([False, True, False])).doubtful.tolist() == [False, False, True]


def test_a_single_class_has_no_runner_up():
    with warnings.catch_warnings(action="ignore"):
        found = BatchClassifier().fit(np.eye(4)[:2], ["only", "only"]).infer(np.eye(4)[:2])
    assert found.to_frame()["runner_up"].tolist() == [None, None]
    assert not found.doubtful.any()


def test_words():
    assert counted(1, "item") == "1 item"
    assert counted(1200, "item") == "1,200 items"
    assert listed_in_words(list(range(12))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    assert aligned([["class", "n"], ["a", "12"]]) == ["class   n", "a      12"]
    assert aligned([["class", "n"], ["a\nb", "12"]]) == ["class   n", "a\\nb   12"]


def kinds_of(batch, index):
    return {
        pd.DataFrame: pd.DataFrame({"v": list(batch)}, index=index),
        pl.DataFrame: pl.DataFrame({"v": batch}),
        pa.Table: pa.table({"v": batch.tolist()}),
    }


def test_answers_are_arrays_and_a_table_has_the_index_and_the_kind_of_the_batch(world):
    classifier, batch = world
    expected = classifier.infer(batch)
    plain = expected.to_frame()
    assert list(plain.columns) == COLUMNS
    assert plain["label"].tolist() == expected.labels.tolist()
    np.testing.assert_array_equal(plain["certainty"], expected.certainty)
    np.testing.assert_array_equal(plain["rejected"], expected.rejected)
    np.testing.assert_array_equal(plain["doubtful"], expected.doubtful)
    assert (plain["runner_up"] != plain["label"]).all()
    assert classifier.infer(torch.from_numpy(batch)).to_frame()["label"].tolist() == plain["label"].tolist()
    index = [f"photo {i}" for i in range(len(batch))]
    for kind, table in kinds_of(batch, index).items():
        found = classifier.infer(table)
        for name in ("labels", "certainty", "probabilities", "unknown", "rejected", "doubtful", "presence"):
            assert type(getattr(found, name)) is np.ndarray
        assert isinstance(found.to_frame(), kind)
        assert isinstance(found.by_class(), kind)
        assert np.asarray(found.to_frame()["label"]).tolist() == plain["label"].tolist()
        if kind is pd.DataFrame:
            assert found.to_frame().index.tolist() == index
            assert found.by_class().index.tolist() == list(range(len(found.by_class())))


def test_without_pandas_the_error_says_what_to_install(world, monkeypatch):
    classifier, batch = world
    found = classifier.infer(batch)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        found.to_frame()


def test_classes_that_may_be_present_are_read_together(world):
    classifier, batch = world
    found = classifier.infer(batch)
    table = found.by_class().set_index("class")
    assert table.index[:2].tolist() == ["class 03", "class 07"] == found.present_classes.tolist()
    assert set(table.index) == set(found.classes[found.presence >= LEAST_LISTED])
    assert (np.diff(table["expected_count"]) <= 0).all()
    listed = np.isin(found.classes, table.index)
    ordered = table.loc[found.classes[listed]]
    np.testing.assert_array_equal(ordered["expected_count"], found.expected_counts[listed])
    np.testing.assert_array_equal(ordered["presence"], found.presence[listed])
    np.testing.assert_array_equal(ordered["proportion"], found.expected_counts[listed] / len(found))


def test_the_largest_class_is_listed_whatever_its_chance(world):
    classifier, batch = world
    found = classifier.infer(batch)
    nowhere = replace(found, presence=np.zeros_like(found.presence))
    assert nowhere.by_class()["class"].tolist() == [found.classes[found.expected_counts.argmax()]]


def test_a_summary_says_what_there_is(world):
    classifier, batch = world
    found = classifier.infer(batch)
    assert repr(found) == "Answer(29 items, 2 of 20 classes present, 1 item doubtful, 8 rejected)"
    lines = found.summary().splitlines()
    assert lines[0] == "29 items, 2 of 20 classes present."
    assert lines[2].split()[:3] == ["class", "03", f"{found.expected_counts[3]:.1f}"]
    # Item 0 lies between two classes, far from both.
    assert lines[4] == "1 doubtful item: 0."
    assert lines[5].startswith("8 items look like none of the classes: 21, 22, 23, 24, 25, 26, 27, 28. The share")
    assert lines[6].startswith("Perhaps a new class of 8 items, nearest to class")


def test_a_summary_repeats_the_warnings(world):
    classifier, batch = world
    said = Diagnostic("unlike_catalogue", "The batch looks unlike the catalogue.", 0.1, 0.7, UnlikeCatalogueWarning)
    summary = replace(classifier.infer(batch), diagnostics=(said,)).summary()
    assert summary.endswith("\nWarning: The batch looks unlike the catalogue.")


# -- groups ------------------------------------------------------------------------------------------------------------


def test_groups_have_the_same_tables(world):
    classifier, batch = world
    groups = np.array(["north"] * 12 + ["south"] * 9 + ["west"] * 8)
    found = classifier.infer(batch, groups=groups)
    assert repr(found).startswith("Answer(3 groups, 29 items, ")
    table = found.to_frame()
    assert list(table.columns) == ["group", *COLUMNS]
    assert table["group"].tolist() == groups.tolist()
    assert table["label"].tolist() == found.labels.tolist()
    by_class = found.by_class()
    for group in found.groups:
        one, mine = found[group].by_class(), by_class[by_class["group"] == group]
        for name in one.columns:
            assert mine[name].tolist() == one[name].tolist()
        assert set(found[group].present_classes) <= set(mine["class"])
    np.testing.assert_array_equal(found.top(1).labels[:, 0], found.labels)
    lines = found.summary().splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["north", "south", "west"]
    assert lines[2].split()[1] == "12"
    many = classifier.infer(batch, groups=np.arange(len(batch)))
    assert many.summary().endswith("And 9 more groups, see by_class().")


def test_what_is_said_about_a_batch_has_an_axis_of_groups(world):
    classifier, batch = world
    groups = np.array(["north"] * 12 + ["south"] * 9 + ["west"] * 8)
    found = classifier.infer(batch, groups=groups)
    assert found.to_frame()["group"].value_counts(sort=False).tolist() == [12, 9, 8]
    assert found.unknown_interval.shape == (3, 2)
    assert [len(found.proposals), len(found.diagnostics), len(found.joint_weight)] == [3, 3, 3]
    assert {"class 03", "class 07"} <= set(found.present_classes)
    for place, group in enumerate(found.groups):
        one = found[group]
        np.testing.assert_array_equal(found.presence[place], one.presence)
        np.testing.assert_array_equal(found.expected_counts[place], one.expected_counts)
        assert tuple(found.unknown_interval[place]) == one.unknown_interval
        assert one.joint_weight == found.joint_weight[place]
        assert (one.groups, one.pooling) == (None, None)
        np.testing.assert_array_equal(one.doubtful, found.doubtful[groups == group])


def test_a_group_of_a_frame_keeps_its_rows_of_the_index(world):
    classifier, batch = world
    groups = np.arange(29) % 3
    for kind, table in kinds_of(batch, np.arange(29) + 1000).items():
        found = classifier.infer(table, groups=groups)
        one = found[1]
        np.testing.assert_array_equal(one.probabilities, found.probabilities[groups == 1])
        np.testing.assert_array_equal(one.labels, found.labels[groups == 1])
        assert isinstance(one.to_frame(), kind)
        if kind is pd.DataFrame:
            assert one.to_frame().index.tolist() == list(range(1001, 1029, 3))
            assert one.to_frame().equals(found.to_frame().drop(columns="group").loc[one.to_frame().index])


def test_groups_that_are_not_there_are_refused(world):
    classifier, batch = world
    with pytest.raises(LabelError, match="no group 'marshland'"):  # not cut to the length of the others
        classifier.infer(batch[:2], groups=["marsh", "wood"])["marshland"]
    with pytest.raises(LabelError, match="no group 7"):
        classifier.infer(batch[:3], groups=[1, 2, 3])[7]
    with pytest.raises(LabelError, match=r"there is no group \['marsh'\]"):
        classifier.infer(batch[:2], groups=["marsh", "wood"])[["marsh"]]
    with pytest.raises(LabelError, match="it has no group 'marsh'"):
        classifier.infer(batch)["marsh"]
    with pytest.raises(OptionError, match="the probabilities of all classes were not kept"):
        _ = Batches.of(ModelItems(classifier.model_, batch)).answer(keep=False).probabilities


class Name(str):
    """A text that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


MANY_CLASSES = """
import resource
import numpy as np
from handful import BatchClassifier
rng = np.random.default_rng(0)
centres, y = rng.normal(size=(100_000, 64)).astype(np.float32), np.arange(100_000).repeat(2)
X = centres[y] + 0.4 * rng.normal(size=(200_000, 64)).astype(np.float32)
truth = 7 * rng.integers(0, 5, 75)
found = BatchClassifier().fit(X, y).infer(centres[truth] + 0.4 * rng.normal(size=(75, 64)).astype(np.float32))
print((found.labels == truth).mean(), len(found.present_classes))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in kilobytes on Linux only")
def test_a_hundred_thousand_classes_fit_in_memory():
    found = subprocess.run([sys.executable, "-c", MANY_CLASSES], capture_output=True, text=True, check=True)
    right, present, peak = found.stdout.split()
    assert (float(right), int(present)) == (1.0, 5)
    assert int(peak) < 1_000_000


def test_reading_every_group_looks_at_each_once(world):
    classifier, batch = world
    names = np.empty(300, dtype=object)
    names[:] = [Name(f"{i % 100:03}") for i in range(300)]
    found = classifier.infer(batch[np.arange(300) % 29], groups=names)
    Name.compared = 0
    assert [len(found[Name(name)].labels) for name in found.groups] == [3] * 100
    assert Name.compared <= 300


def test_items_are_counted_indexed_and_iterated():
    found = BatchClassifier().fit(np.eye(3), ["a", "b", "c"]).infer(np.eye(3)[[2, 0]])
    table = found.to_frame()
    assert len(found) == 2
    assert [item.label for item in found] == ["c", "a"] == [found[0].label, found[-1].label]
    assert found[1]._asdict() == pytest.approx(table.iloc[1].to_dict(), nan_ok=True)
    assert list(found[1]._fields) == list(table.columns)
    assert str(found[:1]) == str([found[0]])
    with pytest.raises(IndexError):
        found[2]


def test_groups_are_counted_indexed_and_iterated_as_in_a_dict():
    found = BatchClassifier().fit(np.eye(3), ["a", "b", "c"]).infer(np.eye(3)[[2, 0, 1]], groups=["x", "y", "x"])
    assert len(found) == 2
    assert {name: found[name].labels.tolist() for name in found} == {"x": ["c", "b"], "y": ["a"]}


def test_an_answer_has_few_public_names_and_the_page_says_who_needs_each():
    names = {name for name in (*dir(Answer), *Answer.__dataclass_fields__) if not name.startswith("_")}
    page = (ROOT / "docs" / "do" / "python.md").read_text(encoding="utf-8")
    table = page[page.index("| name | meaning | who needs it |") :].split("\n\n")[0]
    assert len(names) <= 30
    assert {name for name in names if not re.search(rf"`{name}\b", table)} == set()
