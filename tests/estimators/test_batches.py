"""Groups, each labelled as one batch with the answer that it has alone, and items of one class in units."""

import warnings

import numpy as np
import pytest

from handful.errors import OptionError, TaskError
from handful.estimators import BatchClassifier, infer_scores
from handful.estimators.answer import none_of_these
from handful.estimators.batches import Batches, predict_codes
from handful.estimators.context import BatchContexts, Known
from handful.estimators.items import ModelItems
from handful.fitted import FittedModel
from tests.optional import optional
from tests.worlds import Clouds

pd = optional("pandas")
pl = optional("polars")
pa = optional("pyarrow")
torch = optional("torch")

N_CLASSES, DIM = 30, 16


def small_world(seed=0):
    clouds = Clouds(12, 16, seed)
    codes = np.arange(12).repeat(5)
    catalogue = FittedModel.of(clouds.around(codes, 0.5), codes)
    truth = np.array([1, 4, 4, 1, 7, 7, 7, 4])
    return catalogue, clouds.around(truth, 0.5), truth


def test_every_group_has_its_own_prior_and_what_is_given_holds():
    catalogue, features, truth = small_world()
    given = np.full(8, -1)
    given[0] = 9
    contexts = BatchContexts(Known(prior={"b": {7: 0}}), catalogue.classes, 8, list("aaaabbbb"), given)
    first, second = (found for _, _, found in Batches(ModelItems(catalogue, features), contexts).labelled())
    assert first.probabilities.argmax(1).tolist() == [9, *truth[1:4]]
    assert not second.probabilities[:, 7].any()


def test_predicted_codes_are_those_of_the_answer():
    catalogue, features, _ = small_world()
    items, groups, known = ModelItems(catalogue, features), np.arange(8) % 3, Known(candidates=[1, 4])
    codes, rejected, nameless = predict_codes(Batches.of(items, groups, known))
    found = Batches.of(items, groups, known).answer()
    np.testing.assert_array_equal(codes, found.codes[:, 0])
    np.testing.assert_array_equal(rejected, found.rejected)
    np.testing.assert_array_equal(nameless, none_of_these(found))


# -- groups through the classifier -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world():
    """A fitted classifier, and 120 groups of 1 to 300 rows in random order."""
    rng = np.random.default_rng(0)
    clouds = Clouds(N_CLASSES, DIM, rng)
    X = clouds.examples(5, 0.8).astype(np.float32)
    classifier = BatchClassifier().fit(X, np.array([f"class {k:02}" for k in range(N_CLASSES)]).repeat(5))
    sizes = np.concatenate([np.exp(rng.uniform(0, 4, 117)).astype(int), [300, 1, 1]])
    groups = rng.permutation(np.repeat(np.arange(120) * 10, sizes))
    present = {g: rng.choice(N_CLASSES, rng.integers(1, 6), replace=False) for g in np.unique(groups)}
    truth = np.array([rng.choice(present[g]) for g in groups])
    batch = clouds.around(truth, 0.8).astype(np.float32)
    return classifier, batch, groups, truth


def test_groups_equal_a_loop_in_any_order_of_rows(world):
    classifier, batch, groups, truth = world
    found = classifier.infer(batch, groups=groups)
    assert len(found.groups) == 120
    order = np.random.default_rng(1).permutation(len(groups))
    np.testing.assert_array_equal(classifier.predict(batch[order], groups=groups[order]), found.labels[order])
    assert (found.labels == np.array([f"class {k:02}" for k in truth])).mean() > 0.9
    for place, group in list(enumerate(found.groups))[::3]:
        rows = groups == group
        with warnings.catch_warnings(action="ignore"):
            one = classifier.infer(batch[rows])
        np.testing.assert_allclose(found.probabilities[rows], one.probabilities, atol=5e-4)
        np.testing.assert_array_equal(found.labels[rows], one.labels)
        np.testing.assert_allclose(found.presence[place], one.presence, atol=1e-4)
        again = found[group]
        np.testing.assert_array_equal(again.present_classes, one.present_classes)
        np.testing.assert_allclose(again.expected_counts, one.expected_counts, atol=1e-3)
        assert [d.name for d in again.diagnostics] == [d.name for d in one.diagnostics]
        assert again.joint_weight == pytest.approx(one.joint_weight, abs=1e-4)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_groups_in_every_container_have_the_same_answer(world):
    classifier, batch, groups, _ = world
    batch, groups = batch[groups < 200], groups[groups < 200]  # twenty of them
    expected = classifier.infer(batch, groups=groups)
    columns = {f"x{i}": column for i, column in enumerate(batch.T.copy())}
    for table, column in (
        (pd.DataFrame(batch), pd.Series(groups)),
        (torch.from_numpy(batch), torch.from_numpy(groups)),
        (pl.DataFrame(columns), pl.Series(groups)),
        (pa.table(columns), pa.array(groups)),
    ):
        found = classifier.infer(table, groups=column)
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_allclose(found[0].probabilities, expected[0].probabilities, atol=1e-6)


def test_several_columns_make_a_group(world):
    classifier, batch, groups, _ = world
    batch, groups = batch[groups % 500 < 100], groups[groups % 500 < 100]
    table = pd.DataFrame({"site": np.array(["wood", "marsh", "lake"])[groups // 500], "day": groups % 500})
    found = classifier.infer(batch, groups=table)
    assert len(found.groups) == 30
    assert ("wood", 0) in found.groups.tolist()
    np.testing.assert_array_equal(found.labels, classifier.predict(batch, groups=groups))
    assert len(found["marsh", 0].labels) == (groups == 500).sum()


def test_groups_that_do_not_fit_are_refused_with_a_sentence(world):
    classifier, batch, groups, _ = world
    with pytest.raises(TaskError, match="one entry per row"):
        classifier.infer(batch, groups=groups[:-1])
    with pytest.raises(TaskError, match="some rows have no value in groups"):
        classifier.infer(batch[:2], groups=np.array(["a", None], dtype=object))
    with pytest.raises(TaskError, match="some rows have no value in groups"):
        classifier.infer(batch[:2], groups=[1.0, np.nan])


# -- items of one class ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tracks():
    """Noisy items in units of four: 24 units of six of the classes."""
    rng = np.random.default_rng(0)
    clouds = Clouds(40, DIM, rng)
    y = np.arange(40).repeat(5)
    classifier = BatchClassifier().fit(clouds.around(y), y)
    unit = rng.permutation(np.arange(24).repeat(4))
    truth = rng.choice(40, 6, replace=False)[np.arange(24) % 6][unit]
    return classifier, clouds.around(truth, 1.8), unit, truth


def one_label_per_unit(labels, unit):
    return all(len(set(labels[unit == u].tolist())) == 1 for u in np.unique(unit))


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
def test_items_that_belong_together_have_one_label_and_more_are_right(tracks):
    classifier, batch, unit, truth = tracks
    alone, found = classifier.infer(batch), classifier.infer(batch, sequence=unit)
    assert not one_label_per_unit(alone.labels, unit)
    assert one_label_per_unit(found.labels, unit)
    assert (found.labels == truth).mean() > (alone.labels == truth).mean() + 0.1
    np.testing.assert_allclose(found.probabilities.sum(1), 1)
    np.testing.assert_allclose(found.expected_counts, (1 - found.unknown) @ found.probabilities, atol=1e-3)
    names = pd.DataFrame({"site": "wood", "track": [f"track {u}" for u in unit]})
    np.testing.assert_array_equal(classifier.infer(batch, sequence=names).labels, found.labels)


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
def test_units_of_one_item_change_nothing(tracks):
    classifier, batch, _, _ = tracks
    alone, found = classifier.infer(batch), classifier.infer(batch, sequence=np.arange(96))
    np.testing.assert_allclose(found.probabilities, alone.probabilities, atol=1e-9)
    np.testing.assert_allclose(found.expected_counts, alone.expected_counts, atol=1e-6)


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
def test_units_within_groups_are_those_of_each_group_alone(tracks):
    classifier, batch, unit, _ = tracks
    groups = np.arange(96) % 2
    unit = np.stack([groups, unit], axis=1)  # their numbers start again in each group
    found = classifier.infer(batch, groups=groups, sequence=unit)
    for group in (0, 1):
        mine = groups == group
        alone = classifier.infer(batch[mine], sequence=unit[mine])
        np.testing.assert_allclose(found[group].probabilities, alone.probabilities, atol=1e-6)
    np.testing.assert_array_equal(classifier.predict(batch, groups, sequence=unit), found.labels)


@pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
def test_a_label_that_is_given_is_that_of_the_whole_unit(tracks):
    classifier, batch, unit, _ = tracks
    mine = np.flatnonzero(unit == 5)
    found = classifier.infer(batch, sequence=unit, given={int(mine[2]): 31})
    assert found.labels[mine].tolist() == [31] * 4
    assert (found.probabilities[mine, 31] == 1).all()
    nobody = classifier.infer(batch, sequence=unit, given={int(mine[2]): None})
    assert nobody.rejected[mine].all()
    logits = np.random.default_rng(0).normal(size=(96, 40))
    assert (
        infer_scores(logits, kind="logits", sequence=unit, given={int(mine[0]): 31}).labels[mine].tolist() == [31] * 4
    )


def test_scores_of_items_that_belong_together_have_one_label(tracks):
    _, _, unit, truth = tracks
    logits = np.random.default_rng(1).normal(size=(96, 40))
    logits[np.arange(96), truth] += 1.5
    alone, found = infer_scores(logits, kind="logits"), infer_scores(logits, kind="logits", sequence=unit)
    assert one_label_per_unit(found.labels, unit)
    assert (found.labels == truth).mean() > (alone.labels == truth).mean() + 0.1
    with pytest.raises(OptionError, match="sequence says that items have one class"):
        infer_scores(1 / (1 + np.exp(-logits)), kind="sigmoid", several=True, sequence=unit)
