"""What says nothing changes nothing: the vacuous form of each thing that is known, beside every other."""

from itertools import product

import numpy as np
import pytest

from handful.estimators import BatchClassifier
from tests.doors import DOORS, Room
from tests.worlds import Clouds

pytestmark = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
N_ITEMS = 36
NAMES = [f"c{k}" for k in range(8)]
HALVES = np.array(["x", "z"]).repeat(N_ITEMS // 2)
PAIRED = [f"s{item // 2}" if item < 6 else f"alone {item}" for item in range(N_ITEMS)]
ALONE = [f"item {item}" for item in range(N_ITEMS)]
TIMES = np.array([1, 2]).repeat(N_ITEMS // 2)

# What says something, by the argument that it uses.
SAID = {
    "nothing": {},
    "prior": {"prior": {"c0": 5.0, "c1": 0.1}},
    "a banned class": {"prior": {"c7": 0.0}},
    "candidates": {"candidates": NAMES[:3]},
    "candidates of items": {"candidates": [NAMES[:2]] * 3 + [None] * (N_ITEMS - 3)},
    "labels": {"given": {0: "c0", 1: "c1"}},
    "none of these": {"given": {0: None, 5: None}},
    "labels and none of these": {"given": {0: "c0", 1: None}},
    "a new class": {"given": {0: "new", 1: "new"}, "new_classes": ["new"]},
    "sequence": {"sequence": PAIRED},
    "coarse": {"coarse": {"c0": "G", "c1": "G"}},
    "a share": {"expect_unknown": 0.3},
    "no unknown items": {"expect_unknown": 0},
    "some unknown items": {"expect_unknown": True},
    "a range": {"expect_unknown": (0.1, 0.5)},
    "groups": {"groups": HALVES},
    "siblings": {"groups": HALVES, "pool": True},
    "siblings in order": {"groups": HALVES, "pool": True, "order": TIMES},
    "prior of groups": {"groups": HALVES, "prior": {"x": {"c0": 5.0}, "z": {"c1": 5.0}}},
    "candidates of groups": {"groups": HALVES, "candidates": {"x": NAMES[:2], "z": NAMES[:3]}},
    "shares of groups": {"groups": HALVES, "expect_unknown": {"x": 0.2, "z": 0}},
    "none of these in a group": {"groups": HALVES, "given": {0: None}},
}
# What says nothing.
VACUOUS = {
    "all classes": {"candidates": NAMES},
    "all classes in another order": {"candidates": NAMES[::-1]},
    "all classes of every item": {"candidates": [NAMES] * N_ITEMS},
    "all classes of one item": {"candidates": [NAMES] + [None] * (N_ITEMS - 1)},
    "no candidates of any item": {"candidates": [None] * N_ITEMS},
    "equal weights": {"prior": dict.fromkeys(NAMES, 1.0)},
    "equal weights as an array": {"prior": np.full(len(NAMES), 7.0)},
    "equal tiny weights": {"prior": dict.fromkeys(NAMES, 1e-30)},
    "no weights": {"prior": {}},
    "no labels": {"given": {}},
    "no new classes": {"new_classes": []},
    "sequences of one item": {"sequence": ALONE},
    "no sequences": {"sequence": [None] * N_ITEMS},
    "no coarse classes": {"coarse": {}},
    "each class its own coarse class": {"coarse": dict(zip(NAMES, NAMES, strict=True))},
    "one group": {"groups": ["one"] * N_ITEMS},
    "a pool of one group": {"groups": ["one"] * N_ITEMS, "pool": True},
    "a pool of one group in order": {"groups": ["one"] * N_ITEMS, "pool": True, "order": [3] * N_ITEMS},
    "groups without siblings": {"pool": HALVES},
    "groups without siblings in order": {"pool": HALVES, "order": TIMES},
    "no pool": {"pool": False},
    "no share": {"expect_unknown": None},
}


def beside(said, vacuous):
    """Whether both can be said: no argument twice, and siblings only among groups."""
    needs_groups = "pool" in vacuous and "groups" not in vacuous and vacuous["pool"] is not False
    return not set(said) & set(vacuous) and not (needs_groups and "groups" not in said)


PAIRS = [
    pytest.param(said, vacuous, id=f"{one}, {other}")
    for (one, said), (other, vacuous) in product(SAID.items(), VACUOUS.items())
    if beside(said, vacuous)
]


@pytest.fixture(scope="module")
def world():
    """A catalogue of eight classes, and a batch of three of them and one that it lacks."""
    rng = np.random.default_rng(3)
    clouds = Clouds(9, 24, rng)
    X = clouds.examples(5, 0.55, 8)
    truth = rng.permutation(np.r_[rng.integers(0, 3, N_ITEMS - 6), np.full(6, 8)])
    batch = clouds.around(truth, 0.6)
    return BatchClassifier().fit(X, np.repeat(NAMES, 5)), batch


@pytest.fixture(scope="module")
def answers(world):
    """Answers to what was said, each made once."""
    classifier, batch = world
    kept = {}

    def answer(said):
        key = repr(said)
        if key not in kept:
            kept[key] = classifier.infer(batch, **said)
        return kept[key]

    return answer


def assert_equal(found, wanted):
    assert found.labels.tolist() == wanted.labels.tolist()
    assert found.rejected.tolist() == wanted.rejected.tolist()
    for name in ("unknown", "certainty", "probabilities"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-9, err_msg=name)
    np.testing.assert_allclose(np.ravel(found.presence), np.ravel(wanted.presence), atol=1e-9)


@pytest.mark.parametrize(("said", "vacuous"), PAIRS)
def test_what_says_nothing_changes_nothing(said, vacuous, world, answers):
    classifier, batch = world
    assert_equal(classifier.infer(batch, **said, **vacuous), answers(said))


@pytest.fixture(scope="module")
def room(world, tmp_path_factory):
    return Room.of(*world, tmp_path_factory.mktemp("room"))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("said", ["nothing", "prior", "candidates", "labels and none of these", "a share"])
def test_every_door_hears_as_much(room, door, said):
    wanted = DOORS[door](room, SAID[said])
    for vacuous in ("all classes", "equal tiny weights", "no share"):
        if beside(SAID[said], VACUOUS[vacuous]):
            found = DOORS[door](room, SAID[said] | VACUOUS[vacuous])
            assert found.labels.tolist() == wanted.labels.tolist()
            assert found.rejected.tolist() == wanted.rejected.tolist()
            for name in ("unknown", "certainty"):
                np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-9, err_msg=name)


@pytest.mark.parametrize("door", ["session", "classify"])
@pytest.mark.parametrize(
    "said", ["prior", "candidates", "labels", "none of these", "a new class", "sequence", "a share"]
)
def test_so_do_doors_that_take_candidates_of_items_and_sequences(room, door, said):
    if door == "classify" and said in ("sequence", "none of these", "a new class"):
        pytest.skip("in files these are columns and corrections")
    wanted = DOORS[door](room, SAID[said])
    for vacuous in ("all classes of one item", "sequences of one item"):
        if beside(SAID[said], VACUOUS[vacuous]) and (door == "session" or "sequence" not in VACUOUS[vacuous]):
            assert_equal(DOORS[door](room, SAID[said] | VACUOUS[vacuous]), wanted)
