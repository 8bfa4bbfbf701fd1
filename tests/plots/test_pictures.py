"""Pictures of answers and catalogues: what they show, in ordinary, crowded and tiny cases."""

import warnings
from functools import cache

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest
from matplotlib import pyplot
from PIL import Image

import handful
from handful.errors import OptionError
from handful.estimators import BatchClassifier
from handful.estimators.answer import compared_items
from handful.fitted import FittedModel
from handful.fitted.report import confused_pairs
from handful.plots.catalogues import reliability
from handful.plots.classes import MOST_BARS
from handful.plots.maps import MOST_COLOURED, discriminants
from tests.answers_at_hand import answer_of
from tests.worlds import Clouds

DIM = 24


@cache
def made(n_classes=30, missing=0, seed=0):
    """A classifier of clusters, and what makes batches of them; the last `missing` clusters are not in it."""
    clouds = Clouds(n_classes + missing, DIM, seed)
    X = clouds.examples(5, 0.5, n_classes)
    names = np.array([f"class {k:03}" for k in range(n_classes)])
    return BatchClassifier().fit(X, names.repeat(5)), clouds.centres


def batch(n_classes, truth, missing=0):
    _, centres = made(n_classes, missing)
    return centres[truth] + 0.5 * np.random.default_rng(1).normal(size=(len(truth), DIM))


def found(n_classes=30, truth=(3,) * 12 + (7,) * 8, missing=0, **known):
    with warnings.catch_warnings(action="ignore"):
        return made(n_classes, missing)[0].infer(batch(n_classes, list(truth), missing), **known)


@pytest.fixture(autouse=True)
def _drawn():
    """Draw every figure, so that errors of drawing are found, and close it."""
    yield
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")


def names_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


# -- classes -----------------------------------------------------------------------------------------------------------


def test_bars_are_labels_and_their_sum_is_the_batch():
    answer = found(30, [3] * 12 + [7] * 8 + [30] * 10, missing=1)
    ax = answer.plot()
    assert names_of(ax)[:2] == answer.present_classes.tolist()
    assert names_of(ax)[-1] == "none of the classes"
    assert sum(bar.get_width() for bar in ax.patches) == len(answer) == 30


def test_marks_are_the_counts_of_each_item_alone():
    answer = found()
    items = compared_items(answer)
    alone = items.catalogue.head.scores(items.points).argmax(1)
    (line,) = found().plot().lines
    assert sum(line.get_xdata()) == len(answer)
    assert line.get_xdata()[0] == (answer.classes[alone] == answer.present_classes[0]).sum()


def test_classes_beyond_the_most_are_one_row_without_a_bar():
    answer = found(60, np.arange(60).repeat(4))
    ax = answer.plot()
    assert len(answer.present_classes) > MOST_BARS
    (rest,) = (name for name in names_of(ax) if "more classes" in name)
    assert rest.startswith(f"{len(answer.present_classes) - MOST_BARS} more classes")


def test_names_are_neither_formulas_nor_hidden():
    names = ["$x_{", "_hidden", "line\nbreak", "a" * 200]
    answer = answer_of(np.eye(4)[[0, 1, 2, 3]], names)
    shown = names_of(answer.plot())
    assert shown == ["$x_{", "_hidden", "line\\nbreak", "a" * 31 + "…"]


def test_one_item_and_one_class_and_scores_of_another_model():
    found(30, [3]).plot()
    BatchClassifier().fit([[0.0, 1.0]], ["up"]).infer([[0.0, 2.0]]).plot()
    ax = handful.infer_scores(np.log([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]), kind="logits").plot()
    assert ax.get_xlabel() == "items"


def test_axes_given_are_used():
    _, axes = pyplot.subplots(1, 2)
    answer = found()
    assert answer.plot(axes[0]) is axes[0]
    assert answer.plot_map(axes[1]) is axes[1]


# -- map ---------------------------------------------------------------------------------------------------------------


def test_two_directions_separate_the_classes_present():
    answer = found(30, [3] * 12 + [7] * 12 + [9] * 12)
    items = compared_items(answer)
    head = items.catalogue.head
    points, codes = items.catalogue.labelled_points
    project = discriminants(head.means[[3, 7, 9]], points - head.means[codes], items.points)
    at = project(items.points)
    centres = np.array([at[answer.labels == f"class {k:03}"].mean(0) for k in (3, 7, 9)])
    nearest = ((at[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert (nearest == np.repeat([0, 1, 2], 12)).mean() > 0.95


def test_one_unit_is_a_standard_deviation_within_classes():
    rng = np.random.default_rng(0)
    means, inner = rng.normal(size=(5, 20)), 0.3 * rng.normal(size=(2_000, 20))
    project = discriminants(means, inner, means)
    assert (project(inner) - project(np.zeros((1, 20)))).std(0) == pytest.approx([1, 1], abs=0.1)


def test_the_map_does_not_depend_on_the_origin_or_orientation():
    rng = np.random.default_rng(0)
    means, inner, points = rng.normal(size=(4, 8)), 0.2 * rng.normal(size=(200, 8)), rng.normal(size=(30, 8))
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    here = discriminants(means, inner, points)(points)
    there = discriminants(means @ turn + 5, inner @ turn, points @ turn + 5)(points @ turn + 5)
    np.testing.assert_allclose(np.abs(here), np.abs(there), atol=1e-8)


def test_unknown_items_and_new_groups_are_marked():
    answer = found(30, [3] * 12 + [7] * 12 + [30] * 12, missing=1)
    assert len(answer.proposals) == 1
    ax = answer.plot_map()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[-1] == "12  none of the classes"
    assert [note.get_text() for note in ax.texts] == ["new group 1"]


def test_many_classes_are_grey_and_few_are_filled_up():
    texts = [text.get_text() for text in found(60, np.arange(60).repeat(4)).plot_map().get_legend().get_texts()]
    assert sum("class " in text for text in texts) == MOST_COLOURED
    assert any("of other classes" in text for text in texts)
    assert len(found(30, [3]).plot_map().get_legend().get_texts()) == 3


@pytest.mark.parametrize("n_classes", [1, 2])
def test_a_catalogue_of_one_or_two_classes_has_a_map(n_classes):
    found(n_classes, [0] * 5).plot_map()


def test_an_answer_without_vectors_has_no_map():
    with pytest.raises(OptionError, match=r"needs the vectors.*BatchClassifier\.infer"):
        handful.infer_scores(np.log([[0.7, 0.3], [0.2, 0.8]]), kind="logits").plot_map()


def test_names_alone_have_a_map():
    rng = np.random.default_rng(0)
    names = {f"class {k}": rng.normal(size=8) for k in range(6)}
    classifier = BatchClassifier().add_names(names)
    classifier.infer(np.array([names["class 2"], names["class 4"]]).repeat(5, axis=0)).plot_map()


# -- contact sheets ----------------------------------------------------------------------------------------------------


def test_pictures_of_a_class_come_least_certain_first(tmp_path):
    answer = found()
    rng = np.random.default_rng(0)
    pixels = [rng.integers(0, 255, size=(6, 9, 3), dtype=np.uint8) for _ in range(len(answer))]
    Image.fromarray(pixels[0]).save(tmp_path / "a.png")
    images = [tmp_path / "a.png", Image.fromarray(pixels[1]), pixels[2][..., 0], *pixels[3:]]
    ax = answer.plot_items(images=images, most_items=4)
    of_class = np.flatnonzero(answer.labels == "class 003")
    first = of_class[np.argsort(answer.certainty[of_class], kind="stable")][:4]
    assert [text.get_text() for text in ax.texts][:4] == [f"{answer.certainty[i]:.2f}" for i in first]
    assert len(ax.images) == 8


def test_a_picture_that_cannot_be_read_is_a_sentence(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"nothing")
    ax = found().plot_items(images=[tmp_path / "broken.png", tmp_path / "missing.png"] * 10)
    assert not ax.images
    assert any("cannot identify" in text.get_text().replace("\n", " ") for text in ax.texts)


def test_texts_stand_below_their_class():
    answer = found()
    ax = answer.plot_items(texts=[f"text {i}" for i in range(len(answer))], most_items=2)
    assert ax.texts[0].get_text() == "class 003  (12)"
    assert (
        ax.texts[2].get_text() == f"text {np.flatnonzero(answer.labels == 'class 003')[answer.certainty[:12].argmin()]}"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [({}, "one of images and texts"), ({"texts": ["a"]}, "one image or text per item, 20, got 1")],
)
def test_wrong_items_are_refused(given, said):
    with pytest.raises(OptionError, match=said):
        found().plot_items(**given)


# -- groups ------------------------------------------------------------------------------------------------------------


def test_groups_have_a_row_each_and_classes_a_column():
    answer = found(groups=["marsh"] * 12 + ["wood"] * 8)
    ax = answer.plot()
    assert names_of(ax) == ["marsh", "wood"]
    shares = answer.expected_counts / np.array([[12], [8]])
    columns = [answer.classes.tolist().index(name) for name in answer.present_classes]
    np.testing.assert_allclose(ax.images[0].get_array(), shares[:, columns])
    assert len(found(groups=np.arange(20)).plot().images) == 1


def test_a_map_and_a_sheet_are_of_one_batch():
    answer = found(groups=["marsh"] * 12 + ["wood"] * 8)
    with pytest.raises(OptionError, match=r"about 2 groups; answer\[group\].plot_map\(\)"):
        answer.plot_map()
    with pytest.raises(OptionError, match=r"about 2 groups; answer\[group\].plot_items\(\)"):
        answer.plot_items(texts=["a"] * 20)


# -- catalogues --------------------------------------------------------------------------------------------------------


def test_a_catalogue_shows_confused_classes_and_reliability():
    clouds = Clouds(20, 16)
    clouds.centres[1] = clouds.centres[0]  # nobody can tell them apart
    X, y = (
        clouds.examples(8, 0.6),
        np.array(list("abcdefghijklmnopqrst")).repeat(8),
    )
    catalogue = FittedModel.of(X, y)
    left, right = catalogue.plot()
    assert names_of(left)[0] == "a – b"
    assert right.get_ylabel() == "share right"
    left_out = catalogue.head.left_out
    (first, second, n, of), *_ = confused_pairs(left_out, catalogue.labelled_points[1][left_out.rows])
    assert (first, second, of) == (0, 1, 16)
    assert n / of == next(pair.share for pair in catalogue.report().confusions if pair.first == "a")


def test_reliability_is_that_of_the_probabilities():
    left_out = made(30)[0].model_.head.left_out
    curve = reliability(left_out)
    assert (np.diff(curve.probability) > 0).all()
    assert ((curve.low <= curve.right + 1e-12) & (curve.right <= curve.high + 1e-12)).all()
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, 4_000)
    right = rng.random(4_000) < p
    odds = np.log(p / (1 - p))
    even = left_out._replace(own=np.where(right, p, 1 - p), lead=np.where(right, -odds, odds), rows=np.arange(4_000))
    curve = reliability(even)
    assert ((curve.low < curve.probability) & (curve.probability < curve.high)).mean() > 0.7


def test_a_catalogue_that_cannot_be_checked_says_so():
    left, right = FittedModel.of(np.eye(3), np.array(["a", "b", "c"])).plot()
    assert [ax.texts[0].get_text() for ax in (left, right)] == ["Too few examples to leave any out."] * 2


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_text_has_the_colour_of_the_style(style):
    with pyplot.style.context(style):
        ax = found(30, [3] * 12 + [7] * 12 + [30] * 12, missing=1).plot_map()
        (note,) = ax.texts
        assert note.get_color() == pyplot.rcParams["text.color"]
        ax.figure.canvas.draw()
