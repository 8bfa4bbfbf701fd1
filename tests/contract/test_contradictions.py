"""What is known is applied or refused: every door refuses every contradiction, with an error of handful."""

import json

import numpy as np
import pandas as pd
import pytest

from handful.classification import classify, rescore
from handful.cli.main import main
from handful.errors import HandfulError
from handful.estimators import BatchClassifier, infer_scores
from handful.scale import label_table
from tests.worlds import Clouds

pytestmark = pytest.mark.filterwarnings("ignore::handful.errors.HandfulWarning")
N_ITEMS, NAMES = 12, [f"c{k}" for k in range(8)]
SITES = np.array(["marsh", "wood"]).repeat(6)
ALONE = [f"alone {item}" for item in range(N_ITEMS)]

# What is known, whether it is about groups, and what is said.
CONTRADICTIONS = {
    "a label that is no class": ({"given": {0: "C2"}}, False, "did you mean 'c2'?"),
    "a blank label": ({"given": {0: " "}}, False, "give a class, or None"),
    "lists beside a class": ({"candidates": [["c2"]] * 11 + ["c3"]}, False, "which is not a class, and not every row"),
    "candidates that are no class": ({"candidates": ["C2"]}, False, "did you mean 'c2'?"),
    "candidates against each other": (
        {"sequence": ["s", "s", *ALONE[2:]], "candidates": [["c2"], ["c3"], *[None] * 10]},
        False,
        "candidates leave no class for sequence 's'",
    ),
    "a label against candidates": ({"given": {0: "c2"}, "candidates": ["c3", "c4"]}, False, "candidates exclude"),
    "a label against the candidates of its sequence": (
        {"sequence": ["s", "s", *ALONE[2:]], "given": {0: "c2"}, "candidates": [None, ["c3"], *[None] * 10]},
        False,
        "candidates exclude",
    ),
    "labels against each other": (
        {"sequence": ["s", "s", *ALONE[2:]], "given": {0: "c2", 1: "c3"}},
        False,
        "items of one sequence were given different labels",
    ),
    "a sequence in two groups": (
        {"sequence": ["s", *ALONE[1:11], "s"]},
        True,
        "sequence 's' has items in the groups 'marsh' and 'wood'",
    ),
    "an order of two kinds": ({"pool": True, "order": [1] * 6 + ["2"] * 6}, True, "order must have values of one kind"),
    "an order of other text": ({"pool": True, "order": ["week 9"] * 6 + ["week 10"] * 6}, True, "got 'week 9'"),
    "a coarse class that is another class": ({"coarse": {"c1": "c2"}}, False, "which is another class"),
    "a cycle of coarse classes": ({"coarse": {"c1": "c2", "c2": "c1"}}, False, "which is another class"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("contradictions"), np.random.default_rng(0)
    clouds = Clouds(8, 16, rng)
    X, y = clouds.examples(4, 0.5), np.repeat(NAMES, 4)
    batch = clouds.around([2] * 6 + [3] * 6, 0.5)
    np.savez(folder / "c.npz", features=X, labels=y)
    return folder, BatchClassifier().fit(X, y), batch, batch @ clouds.centres.T


def in_memory(world, name, known, groups):
    _, classifier, batch, scores = world
    return {
        "infer": lambda: classifier.infer(batch, groups, **known),
        "predict": lambda: classifier.predict(batch, groups, **known),
        "predict_proba": lambda: classifier.predict_proba(batch, groups, **known),
        "explain": lambda: classifier.explain(batch, 0, **known),
        "questions": lambda: classifier.questions(batch, **known),
        "infer_scores": lambda: infer_scores(scores, NAMES, kind="similarities", groups=groups, **known),
    }[name]()


@pytest.mark.parametrize("door", ["infer", "predict", "predict_proba", "explain", "questions", "infer_scores"])
@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_doors_of_items_in_memory(world, door, what):
    known, of_groups, said = CONTRADICTIONS[what]
    if of_groups and door in ("explain", "questions"):
        pytest.skip("they are about one batch, and take no groups")
    with pytest.raises(HandfulError) as caught:
        in_memory(world, door, known, SITES if of_groups else None)
    assert said in str(caught.value)


def files_of(folder, world, known, scores):
    """The same as files: columns of the batch, lists, and corrections; return the arguments of `classify`."""
    _, _, batch, values = world
    columns, asked = {"site": SITES.tolist(), "id": [f"i{item}" for item in range(N_ITEMS)]}, dict(known)
    for name in ("sequence", "order"):
        if name in known:
            columns[name], asked[name] = known[name], name
    candidates = known.get("candidates")
    if candidates is not None and any(isinstance(one, list) for one in candidates) and "c3" not in candidates:
        rows = [(f"i{item}", name) for item, names in enumerate(candidates) for name in names or ()]
        pd.DataFrame(rows, columns=["id", "class"]).to_csv(folder / "may.csv", index=False)
        asked["candidates"] = folder / "may.csv"
    if "coarse" in known:
        pd.DataFrame(known["coarse"].items(), columns=["class", "coarse"]).to_csv(folder / "coarse.csv", index=False)
        asked["coarse"] = folder / "coarse.csv"
    if not scores:
        rows = [{"vector": vector.tolist(), **{k: v[i] for k, v in columns.items()}} for i, vector in enumerate(batch)]
        (folder / "b.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return asked
    softmax = np.exp(values) / np.exp(values).sum(1, keepdims=True)
    images = [
        {"filepath": f"i{item}.jpg", "classifications": {"classes": NAMES, "scores": row.tolist()}}
        for item, row in enumerate(softmax)
    ]
    (folder / "p.json").write_text(json.dumps({"predictions": images}))
    table = pd.DataFrame({"file": [f"i{item}.jpg" for item in range(N_ITEMS)], **columns})
    table.to_csv(folder / "sites.csv", index=False)
    return asked


@pytest.mark.parametrize("door", ["classify", "rescore"])
@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_doors_of_files(world, tmp_path, door, what):
    known, of_groups, said = CONTRADICTIONS[what]
    if what == "an order of two kinds" and door == "rescore":
        pytest.skip("a table of sites is text")
    asked = files_of(tmp_path, world, known, door == "rescore")
    group_by = "site" if of_groups else None
    doors = {
        "classify": lambda: classify(world[0] / "c.npz", tmp_path / "b.jsonl", group_by=group_by, **asked),
        "rescore": lambda: rescore(tmp_path / "p.json", sites=tmp_path / "sites.csv", group_by=group_by, **asked),
    }
    with pytest.raises(HandfulError) as caught:
        doors[door]()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "what", ["a sequence in two groups", "an order of two kinds", "a coarse class that is another class"]
)
def test_the_command_line(world, tmp_path, capsys, what):
    known, of_groups, said = CONTRADICTIONS[what]
    asked = files_of(tmp_path, world, known, False)
    words = [
        "classify",
        world[0] / "c.npz",
        tmp_path / "b.jsonl",
        "--out",
        tmp_path / "o.csv",
    ]
    words += ["--group-by", "site"] if of_groups else []
    for name, value in asked.items():
        words += [f"--{name}", "site" if value is True else value]
    assert main([*map(str, words)]) == 1
    assert said in " ".join(capsys.readouterr().err.split())
    if what == "a sequence in two groups":
        assert main([*map(str, words), "--sequence", "site"]) == 0


def test_tables_of_groups(world):
    arrow = pytest.importorskip("pyarrow")
    _, classifier, batch, _ = world
    table = arrow.table({"site": SITES.tolist(), "vector": batch.tolist()})
    for lists in ([["c2"]] * 11 + ["c3"], ["C2"]):
        with pytest.raises(HandfulError, match=r"not every row has a list|did you mean"):
            label_table(table, classifier, "site", features="vector", candidates=lists)
