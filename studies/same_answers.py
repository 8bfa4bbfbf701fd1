"""Whether two versions of handful give the same answers: write those of each to a file, and compare the files.

    python studies/same_answers.py write DATA FILE [--quick] [--methods] [--catalogues FOLDER]
    python studies/same_answers.py compare FILE FILE [--keep]

The first command labels batches with the version of handful that Python finds (`PYTHONPATH`), and takes a few minutes.
DATA is a folder that holds the banks. With `--catalogues`, catalogues are fitted once and kept there: two versions that
get the same folder differ in nothing but how they label. `--quick` takes an eighth of the batches of two banks.

The second command prints for every kind of batch how many labels and rejections differ, and by how much probabilities,
chances to be unknown and presence do at most. It fails if a label or a rejection differs, or a probability by more than
1e-5. `--keep` writes the outcome to `studies/results/same_answers.json`, where `tools/measure.py --check` finds it. For
that, each file must be written by a version in a repository, without changes that are not committed.

Six catalogues, of which ten classes are left out for unknown items, and about 100,000 items: closed and open batches of
75, groups of three and of ten, batches of 600 and of 4,000 items; with labels that a person gave, classes or none of
them, with weights of the classes, with candidates of a batch and of its items, with a share of unknown items that is
told; by scores of another model, by names alone, and in blocks. Scores are in double precision: in single precision
rounding alone moves chances by up to 3e-5. Each method of the literature labels two tasks of ten classes of a bank.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import handful
import handful_fewshot as fewshot
from bank_data import Floats, Ints, bank, rng_of
from handful.estimators import BatchClassifier
from handful.estimators.context import BatchContexts
from handful.estimators.items import ModelItems
from handful.estimators.large_batch import label_large
from handful.fitted import FittedModel
from handful.fitted.files import load_model, save_model
from methods_table import ROWS
from pages import SAME_ANSWERS, VERSIONS, keep

# Examples of each class; 0 stands for one to eight of them, another number for each class.
BANKS = {
    "clinc150-minilm": 5,
    "cub200-efflite0": 1,
    "banking77-minilm": 3,
    "hwu64-minilm": 0,
    "caltech101-efflite0": 5,
    "omniglot659-conv4": 3,
}
QUICK = ("clinc150-minilm", "cub200-efflite0")
OUT = 10
SHARE = 0.3
SIZE = 75
# What may differ at most.
MOST = 1e-5
FIELDS = ("labels", "rejected", "probabilities", "unknown", "presence")
Answers = dict[str, npt.NDArray[Any]]
# Tasks by which methods are compared, small enough for the slowest.
TASKS = fewshot.TaskSpec(fewshot.ShotsPerClass(5), fewshot.UniformOverPool(k_eff=5), n_query=75, n_classes=10)
# The name under which a file has what wrote it.
ABOUT = "about"


class World(NamedTuple):
    """A catalogue and the items that batches are drawn from."""

    name: str
    examples: Floats
    labels: Ints
    points: Floats
    truth: Ints
    known: list[Ints]
    unknown: list[Ints]


def world_of(data: Path, name: str, shots: int) -> World:
    """Draw the catalogue of a bank."""
    features, labels = bank(data / name)
    rng = rng_of("same answers", name)
    classes = rng.permutation(int(labels.max()) + 1)
    held = []
    known = []
    for k in np.sort(classes[OUT:]):
        rows = rng.permutation(np.flatnonzero(labels == k))
        n = shots or int(rng.integers(1, 9))
        held.append(rows[:n])
        known.append(rows[n:])
    unknown = [np.flatnonzero(labels == k) for k in classes[:OUT]]
    rows = np.concatenate(held)
    return World(name, features[rows], labels[rows], features, labels, known, unknown)


def drawn(world: World, rng: np.random.Generator, size: int, share: float = 0.0) -> Ints:
    """Draw the rows of a batch: few classes, in uneven shares, and this share of unknown items."""
    n_classes = int(rng.integers(2, 9)) if size <= 600 else 60
    some = rng.choice(len(world.known), min(n_classes, len(world.known)), replace=False)
    strangers = np.concatenate(world.unknown)
    n_unknown = min(round(share * size), len(strangers))
    shares = rng.dirichlet(np.full(len(some), 2.0))
    pools = [rng.permutation(world.known[k]) for k in some]
    counts = rng.multinomial(size - n_unknown, shares)
    rows = [np.resize(pool, n) if size <= 10 else pool[:n] for pool, n in zip(pools, counts, strict=True)]
    if n_unknown:
        rows.append(rng.choice(strangers, n_unknown, replace=False))
    found: Ints = rng.permutation(np.concatenate(rows))
    if len(found) < size:
        others = np.setdiff1d(np.concatenate(world.known), found)
        found = np.concatenate([found, rng.choice(others, min(size - len(found), len(others)), replace=False)])
    return found


class Task(NamedTuple):
    """A kind of batch, its rows, their groups, and what is known about it."""

    kind: str
    rows: Ints
    groups: Ints | None = None
    known: dict[str, Any] | None = None


def large(part: int) -> int:
    """Return the size of a large batch."""
    return 4000 if part == 1 else 1300


def tasks(world: World, part: int) -> Iterator[Task]:
    """Draw all batches; a part of them if `part` is more than one."""
    rng = rng_of("same answers, batches", world.name)
    classes = np.unique(world.labels)

    def times(n: int) -> range:
        return range(max(1, n // part))

    for _ in times(20):
        yield Task("closed", drawn(world, rng, SIZE))
        yield Task("open", drawn(world, rng, SIZE, SHARE))
    for size, n in ((3, 900), (10, 270)):
        for share in (0.0, SHARE):
            groups = [drawn(world, rng, size, share) for _ in times(n)]
            of = np.repeat(np.arange(len(groups)), [len(rows) for rows in groups])
            yield Task(f"groups of {size}", np.concatenate(groups), of)
    for size in (600, large(part)):
        for share in (0.0, SHARE / 2):
            yield Task(f"{size} items", drawn(world, rng, size, share))
    for _ in times(8):
        rows = drawn(world, rng, SIZE, SHARE)
        is_known = np.isin(world.truth[rows], classes)
        said = rng.permutation(np.flatnonzero(is_known))[:8]
        given: dict[int, Any] = {int(row): int(world.truth[rows[row]]) for row in said}
        yield Task("classes given", rows, known={"given": given})
        none: dict[int, Any] = dict.fromkeys(rng.permutation(np.flatnonzero(~is_known))[:4].tolist())
        yield Task("none of these", rows, known={"given": none})
        yield Task("classes and none", rows, known={"given": given | none})
        yield Task("new class", rows, known={"given": dict.fromkeys(none, -1), "new_classes": [-1]})
    for _ in times(8):
        rows = drawn(world, rng, SIZE)
        here = np.isin(classes, world.truth[rows])
        yield Task("prior", rows, known={"prior": np.where(here, 10.0, 1.0)})
        yield Task("wrong prior", rows, known={"prior": np.where(here, 1.0, rng.uniform(0.5, 20, len(here)))})
        some = np.union1d(classes[here], rng.choice(classes, 20, replace=False))
        yield Task("candidates", rows, known={"candidates": some.tolist()})
        lists = [[int(world.truth[row]), *rng.choice(classes, 5, replace=False).tolist()] for row in rows]
        yield Task("candidates of items", rows, known={"candidates": lists})
        given = {3: int(world.truth[rows[3]])}
        yield Task("prior and given", rows, known={"prior": np.where(here, 10.0, 1.0), "given": given})
    told: tuple[Any, ...] = (True, 0.3, (0.1, 0.5), 0)
    for expected in told:
        for _ in times(2):
            yield Task("share told", drawn(world, rng, SIZE, SHARE), known={"expect_unknown": expected})
    many = np.concatenate([drawn(world, rng, 10) for _ in times(40)])
    of = np.repeat(np.arange(len(many) // 10), 10)
    yield Task("siblings", many, of, {"pool": True})


def answers_of(found: Any, probabilities: npt.NDArray[Any]) -> Answers:
    """Return what is compared."""
    return {
        "labels": np.asarray(found.codes)[:, 0],
        "rejected": np.asarray(found.rejected),
        "probabilities": np.asarray(probabilities, np.float32),
        "unknown": np.asarray(found.unknown),
        "presence": np.asarray(found.presence),
    }


def labelled(world: World, classifier: BatchClassifier, part: int) -> Iterator[tuple[str, Answers]]:
    """Label all batches of a world."""
    for task in tasks(world, part):
        found = classifier.infer(world.points[task.rows], groups=task.groups, **(task.known or {}))
        yield task.kind, answers_of(found, found.probabilities)
    rng = rng_of("same answers, scores", world.name)
    classes = np.unique(world.labels)
    means = np.stack([world.examples[world.labels == k].mean(0) for k in classes])
    of_names = BatchClassifier().add_names(dict(zip(classes.tolist(), means, strict=True)))
    for _ in range(max(1, 8 // part)):
        rows = drawn(world, rng, SIZE)
        here = np.isin(classes, world.truth[rows])
        scores = (world.points[rows] @ (means - means.mean(0)).T).astype(np.float64)
        told: dict[str, dict[str, Any]] = {
            "scores": {},
            "scores, prior": {"prior": np.where(here, 10.0, 1.0)},
            "scores, given": {"given": {5: int(world.truth[rows[5]])}},
        }
        for kind, known in told.items():
            found = handful.infer_scores(scores, classes, kind="similarities", **known)
            yield kind, answers_of(found, found.probabilities)
        found = handful.infer_scores(1 / (1 + np.exp(-9 * scores)), classes, kind="sigmoid", several=True)
        yield "several", answers_of(found, found.probabilities)
        found = of_names.infer(world.points[rows])
        yield "names", answers_of(found, found.probabilities)
        found = of_names.infer(world.points[rows], prior=np.where(here, 10.0, 1.0))
        yield "names", answers_of(found, found.probabilities)
    rows = drawn(world, rng, large(part))
    found = handful.infer_scores((world.points[rows] @ means.T).astype(np.float64), classes, kind="similarities")
    yield "many scores", answers_of(found, found.probabilities)
    for share in (0.0, SHARE):
        rows = drawn(world, rng, large(part), share)
        contexts = BatchContexts({}, classifier.classes_, len(rows))
        answer = label_large(ModelItems(classifier.model_, world.points[rows]), contexts)
        certainties = answer.to_frame()[["certainty", "runner_up_certainty"]].to_numpy()
        yield "large", answers_of(answer, certainties)


def by_methods(world: World) -> Iterator[tuple[str, Answers]]:
    """Label two tasks by every method that this version has under the name of now."""
    names = [str(k) for k in range(int(world.truth.max()) + 1)]
    features = handful.FeatureBank.from_arrays(world.points, world.truth, names)
    task, _ = fewshot.gather(features, fewshot.draw(features.labels, TASKS, 0, range(2)))
    nothing = np.empty(0)
    for row in ROWS:
        if row.method in fewshot.METHODS:
            found = fewshot.solve(row.method, fewshot.transform(row.transform, task), **row.options)
            answers = dict.fromkeys(FIELDS, nothing)
            answers["labels"] = found.predictions.numpy().ravel()
            answers["probabilities"] = found.log_assignments.exp().numpy().ravel()
            yield f"method {row.method}, {row.note}" if row.note else f"method {row.method}", answers


def catalogue_of(world: World, folder: Path | None) -> FittedModel:
    """Fit a catalogue, or read one that was kept."""
    path = None if folder is None else folder / f"{world.name}.safetensors"
    if path is not None and path.is_file():
        return load_model(path)
    catalogue = FittedModel.of(world.examples, world.labels)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_model(catalogue, path)
        return load_model(path)
    return catalogue


def write(data: Path, file: Path, quick: bool, methods: bool, catalogues: Path | None) -> None:
    """Label everything and write the answers."""
    batches = "methods" if methods else "all"
    table: dict[str, Any] = {ABOUT: np.array([*about(), "some" if quick else batches])}
    n_items = 0
    for name in QUICK if quick else BANKS:
        world = world_of(data, name, BANKS[name])
        found = list(by_methods(world))
        if not methods:
            classifier = BatchClassifier()._became(catalogue_of(world, catalogues))
            classifier.n_features_in_ = world.points.shape[1]
            found += labelled(world, classifier, 8 if quick else 1)
        numbers = Counter[str]()  # within a kind, because a version may lack another one
        for kind, answers in found:
            n_items += len(answers["labels"])
            table |= {f"{name}|{kind}|{numbers[kind]:04d}|{field}": value for field, value in answers.items()}
            numbers[kind] += 1
        print(f"{name}: {n_items:,} items so far", flush=True)
    with file.open("wb") as output:
        np.savez(output, **table)


def about() -> tuple[str, str]:
    """Return the version, and the commit that its source is of; empty if it is not as it was committed."""
    folder = Path(handful.__file__).parent
    if git("status", "--porcelain", ".", at=folder) != "":
        return handful.__version__, ""
    return handful.__version__, git("rev-parse", "HEAD", at=folder) or ""


def git(*words: str, at: Path) -> str | None:
    """Return what git says; nothing outside a repository."""
    said = subprocess.run(["git", *words], cwd=at, check=False, capture_output=True, text=True)
    return None if said.returncode else said.stdout.strip()


def same_source(commit: str) -> list[str]:
    """Return this commit, and those that studies were measured with and whose source is the same."""
    here = Path(__file__).parent
    studies = json.loads(VERSIONS.read_text(encoding="utf-8")).values()
    of = {one: git("rev-parse", f"{one}:src", at=here) for one in (commit, *(study["commit"] for study in studies))}
    return [one for one, source in of.items() if one == commit or (source is not None and source == of[commit])]


def differences(one: Answers, other: Answers) -> dict[str, float]:
    """Return how many labels and rejections differ, and by how much other numbers do at most."""
    if one["labels"].shape != other["labels"].shape or one["presence"].shape != other["presence"].shape:
        return {"items": len(one["labels"]), **dict.fromkeys(FIELDS, np.inf)}
    row: dict[str, float] = {"items": len(one["labels"])}
    for field in FIELDS:
        if field in ("labels", "rejected"):
            row[field] = int((one[field] != other[field]).sum())
        else:
            gap = np.abs(one[field].astype(np.float64) - other[field])
            row[field] = float(np.max(np.where(np.isnan(one[field]) & np.isnan(other[field]), 0, gap), initial=0))
    return row


def read(file: Path) -> dict[str, Answers]:
    """Read what `write` wrote, by batch."""
    batches = dict[str, Answers]()
    with np.load(file) as table:
        for key in set(table.files) - {ABOUT}:
            batch, _, field = key.rpartition("|")
            batches.setdefault(batch, {})[field] = table[key]
    return batches


def compare(first: Path, second: Path) -> dict[str, dict[str, float]]:
    """Print what differs; return it by kind of batch. What is in one file only is `missing`, and not compared."""
    one = read(first)
    other = read(second)
    kinds = dict[str, dict[str, float]]()
    for batch in sorted(set(one) | set(other)):
        both = batch in one and batch in other
        row = differences(one[batch], other[batch]) if both else dict.fromkeys(("items", *FIELDS), 0.0)
        for name in (batch.split("|")[1], "all"):
            total = kinds.setdefault(name, {"batches": 0, "missing": 0, "items": 0, **dict.fromkeys(FIELDS, 0)})
            total["batches" if both else "missing"] += 1
            for field in ("items", "labels", "rejected"):
                total[field] += row[field]
            for field in ("probabilities", "unknown", "presence"):
                total[field] = max(total[field], row[field])
    print(f"{'kind':34}{'batches':>8}{'items':>9}{'labels':>8}{'rejected':>9}{'p':>10}{'unknown':>10}{'presence':>10}")
    for kind, row in kinds.items():
        whole = f"{row['batches']:8,.0f}{row['items']:9,.0f}{row['labels']:8,.0f}{row['rejected']:9,.0f}"
        missing = f"  {row['missing']:.0f} batches are in one file only" if row["missing"] else ""
        print(f"{kind:34}{whole}{row['probabilities']:10.1e}{row['unknown']:10.1e}{row['presence']:10.1e}{missing}")
    return kinds


def moved(kinds: dict[str, dict[str, float]]) -> list[str]:
    """Return the kinds of batches of which a label or a rejection differs, a probability clearly, or one is missing."""
    counted = ("labels", "rejected", "missing")
    return sorted(
        kind for kind, row in kinds.items() if any(row[name] for name in counted) or not row["probabilities"] <= MOST
    )


def keep_comparison(first: Path, second: Path, kinds: dict[str, dict[str, float]], file: Path = SAME_ANSWERS) -> None:
    """Keep the outcome beside those of other pairs of versions."""
    before, after = (np.load(one)[ABOUT].tolist() for one in (first, second))
    if "" in (before[1], after[1]) or before[2] != after[2] or before[2] == "some":
        raise SystemExit(
            "not kept: write both files from repositories without changes, with the same batches, and not --quick"
        )
    found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    found[f"{before[1]} {before[2]} {after[0]}"] = {
        "before": {"version": before[0], "commits": same_source(before[1])},
        "after": {"version": after[0], "commit": after[1]},
        "batches": before[2],
        "moved": moved(kinds),
        "kinds": kinds,
    }
    keep(file, found, levels=3)
    print(file)


def main() -> None:
    """Write answers, or compare two files of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="label batches and write the answers")
    writing.add_argument("data", type=Path, help="folder that holds the banks")
    writing.add_argument("file", type=Path, help="the file to write")
    writing.add_argument("--quick", action="store_true", help="an eighth of the batches of two banks")
    writing.add_argument("--methods", action="store_true", help="the methods of the literature alone")
    writing.add_argument("--catalogues", type=Path, help="folder of fitted catalogues, which are made if missing")
    comparing = commands.add_parser("compare", help="compare two files")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    comparing.add_argument("--keep", action="store_true", help="keep the outcome for tools/measure.py --check")
    asked = parser.parse_args()
    if asked.command == "write":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(asked.data, asked.file, asked.quick, asked.methods, asked.catalogues)
        return
    kinds = compare(asked.first, asked.second)
    if asked.keep:
        keep_comparison(asked.first, asked.second, kinds)
    if found := moved(kinds):
        raise SystemExit(f"the answers differ: {', '.join(found)}")


if __name__ == "__main__":
    main()
