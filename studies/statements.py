"""True statements about a batch, alone and in pairs, and false ones: what each of them changes.

    python studies/statements.py DATA --group tuning
    python studies/statements.py DATA --group confirmation
    python studies/statements.py --render

64 items of eight classes and a catalogue of up to 60 classes with four examples each; none or two of the eight classes
are missing from it. `hint3-sofmattress-minilm` has the catalogue and the requests of a company, none or a quarter of
them of no intent. Figures are changes in points over items that nobody labelled, against the same batch without the
statement: known items with the right label, known items rejected, unknown items found: rejected, or with the name that
a person gave to their class.

Statements that are true:

- `candidates, 20 more`: the classes present and 20 others; `candidates`: the classes present.
- `prior`: classes that are present are ten times as likely. `sequence`: pairs of items of one class.
- `share`, `some`, `range`, `earlier`: `expect_unknown` as the share, as True, as a range around the share, and as the
  answer about an earlier batch of which a person labelled all items.
- `3 labels`, `10 labels`: of known items. `10 answers`: about items drawn at random, None for unknown ones.
- `1 none`, `3 none`, `7 none`: "none of these" about unknown items. `named`: one unknown item gets the name of its
  class.

Statements that are false: a share of 0.3 in a batch without unknown items, candidates that lack a class that is
present, one wrong label, one mistaken "none of these".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bank_data import rng_of
from handful.estimators import Answer, BatchClassifier
from open_batches_data import GROUPS as OPEN
from open_batches_data import NO_CLASS, drawn, read
from pages import Cells, Page, Row, dots, kept, mean, measure_groups

GROUPS = {
    "tuning": ("clinc150-minilm", "esc50-birdnet", "cub200-efflite0"),
    "confirmation": (
        "caltech101-efflite0",
        "grocery-efflite0",
        "banking77-minilm",
        "audiomnist-speakers",
        "tinyimagenet200-efflite0",
        "hint3-sofmattress-minilm",
    ),
}
RESULTS = Path(__file__).parent / "results" / "statements"
BATCHES, CLASSES, SHOTS, THERE, OF_CLASS, MISSING = 16, 60, 4, 8, 8, 2
# Statements of which all pairs are said together.
PAIRED = ("candidates, 20 more", "prior", "sequence", "share", "10 labels", "3 none", "named")
SHORT = {"hint3-sofmattress-minilm": "sofmattress", "audiomnist-speakers": "clips", "grocery-efflite0": "groceries"}
FIGURES = ("labels", "known", "unknown")
# What no true statement may do on any bank, in points: lower labels, reject known items, hide unknown ones.
MOST_LOWERED, MOST_REJECTED, MOST_HIDDEN = 1.0, 5.0, 3.0
# What `expect_unknown` may do: reject more known items, for at least this many more unknown ones.
SHARES = ("share", "some", "range", "earlier")
MOST_REJECTED_BY_SHARE, LEAST_FOUND_BY_SHARE = 10.0, 40.0

Ints = npt.NDArray[np.int64]
Statement = dict[str, Any]


class Batch(NamedTuple):
    """A fitted catalogue, a batch with its classes, and another one of the same kind."""

    model: BatchClassifier
    points: npt.NDArray[np.float32]
    truth: Ints
    earlier: npt.NDArray[np.float32]
    earlier_truth: Ints

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Items whose class the catalogue has."""
        return np.isin(self.truth, self.model.classes_)


def batch(folder: Path, missing: int, number: int) -> Batch:
    """Draw one."""
    if folder.name.startswith("hint3"):
        return _of_requests(folder, missing, number)
    features, labels = read(folder, "short" if folder.name == "audiomnist-speakers" else "")
    rng = rng_of("statements 2026", folder.name, number)
    classes = rng.permutation(np.unique(labels))[:CLASSES]
    enough = [k for k in classes if (labels == k).sum() >= SHOTS + 2 * OF_CLASS]
    there = enough[:THERE]
    gone = there[:missing]
    examples, items, others = [], [], []
    for k in classes:
        rows = rng.permutation(np.flatnonzero(labels == k))
        if k not in gone:
            examples.append(rows[:SHOTS])
        if k in there:
            items.append(rows[SHOTS : SHOTS + OF_CLASS])
            others.append(rows[SHOTS + OF_CLASS : SHOTS + 2 * OF_CLASS])
    rows = np.concatenate(examples)
    model = BatchClassifier().fit(features[rows], labels[rows])
    mine = rng.permutation(np.concatenate(items))
    earlier = np.concatenate(others)
    return Batch(model, features[mine], labels[mine], features[earlier], labels[earlier])


@cache
def _company(folder: Path) -> tuple[BatchClassifier, Any]:
    material = OPEN["confirmation"]["sofmattress"].make(folder.parent, "sofmattress", 0)
    return BatchClassifier().fit(material.examples, material.labels), material.pools[0]


def _of_requests(folder: Path, missing: int, number: int) -> Batch:
    model, pool = _company(folder)
    share = missing / THERE
    rows, others = (drawn(pool, share, rng_of("statements 2026", folder.name, number, which)) for which in range(2))
    rows = rows[: THERE * OF_CLASS]
    return Batch(model, pool.points[rows], pool.truth[rows], pool.points[others], pool.truth[others])


def true_statements(one: Batch, rng: np.random.Generator) -> dict[str, Statement]:
    """Return what is true about a batch, by name."""
    truth, known = one.truth, one.known
    classes = one.model.classes_.tolist()
    present = np.unique(truth[known]).tolist()
    others = [k for k in classes if k not in present]
    pairs = np.empty(len(truth), np.int64)
    pairs[np.argsort(truth, kind="stable")] = _in_pairs(np.sort(truth))
    share = float(1 - known.mean())
    labelled = rng.permutation(np.flatnonzero(known))
    strange = rng.permutation(np.flatnonzero(~known))
    anyone = rng.permutation(len(truth))[:10]
    said: dict[str, Statement] = {
        "candidates, 20 more": {"candidates": present + others[:20]},
        "candidates": {"candidates": present},
        "prior": {"prior": {k: 10.0 if k in present else 1.0 for k in classes}},
        "sequence": {"sequence": pairs},
        "share": {"expect_unknown": share},
        "3 labels": {"given": {int(row): int(truth[row]) for row in labelled[:3]}},
        "10 labels": {"given": {int(row): int(truth[row]) for row in labelled[:10]}},
        "10 answers": {"given": {int(row): int(truth[row]) if known[row] else None for row in anyone}},
    }
    if share > 0:
        said["some"] = {"expect_unknown": True}
        said["range"] = {"expect_unknown": (max(share - 0.15, 0.01), share + 0.15)}
        said["earlier"] = {"expect_unknown": _reviewed(one)}
        said |= {f"{n} none": {"given": dict.fromkeys(map(int, strange[:n]))} for n in (1, 3, 7)}
        if truth[strange[0]] != NO_CLASS:
            name = int(truth[strange[0]])
            said["named"] = {"given": {int(strange[0]): name}, "new_classes": [name]}
    return said


def _in_pairs(ordered: Ints) -> Ints:
    """Return numbers of pairs of neighbours with the same class; items of no class stand alone."""
    numbers = np.zeros(len(ordered), np.int64)
    for place in range(1, len(ordered)):
        same = ordered[place] == ordered[place - 1] != NO_CLASS
        joins = same and (place < 2 or numbers[place - 2] != numbers[place - 1])
        numbers[place] = numbers[place - 1] + (not joins)
    return numbers


def _reviewed(one: Batch) -> Answer:
    """Return the answer about the earlier batch, of which a person labelled everything."""
    known = np.isin(one.earlier_truth, one.model.classes_)
    given = {row: int(k) if here else None for row, (k, here) in enumerate(zip(one.earlier_truth, known, strict=True))}
    return one.model.infer(one.earlier, given=given)


def false_statements(one: Batch, rng: np.random.Generator) -> dict[str, Statement]:
    """Return what is false about a batch, by name."""
    truth, known = one.truth, one.known
    classes = one.model.classes_.tolist()
    present = np.unique(truth[known]).tolist()
    row = int(rng.choice(np.flatnonzero(known)))
    wrong = next(k for k in rng.permutation(classes).tolist() if k not in present)
    said: dict[str, Statement] = {
        "a class is not among the candidates": {"candidates": [k for k in classes if k != present[0]]},
        "one wrong label": {"given": {row: wrong}},
        "one mistaken none": {"given": {row: None}},
    }
    return said | ({"a share of 0.3 where nothing is unknown": {"expect_unknown": 0.3}} if known.all() else {})


def together(first: Statement, second: Statement) -> Statement | None:
    """Say both; None if they are about the same argument, but for labels of different items."""
    both = {**first, **second}
    if "given" in first and "given" in second:
        both["given"] = {**first["given"], **second["given"]}
    elif set(first) & set(second):
        return None
    return both


def measured(folder: Path, missing: int, number: int) -> Row:
    """Measure all statements about one batch."""
    one = batch(folder, missing, number)
    rng = rng_of("statements 2026", folder.name, number, missing, "said")
    true = true_statements(one, rng)
    false = false_statements(one, rng)
    before = one.model.infer(one.points)
    found = {name: _changes(one, before, said) for name, said in true.items()}
    for first, second in combinations([name for name in PAIRED if name in true], 2):
        both = together(true[first], true[second])
        if both is not None:
            found[f"{first} + {second}"] = _changes(one, before, both)
    return {**found, **{f"false: {name}": _changes(one, before, said) for name, said in false.items()}}


def _changes(one: Batch, before: Answer, said: Statement) -> list[float | None]:
    """Return the changes in points: labels, known items rejected, unknown items rejected."""
    after = one.model.infer(one.points, **said)
    rest = np.ones(len(one.truth), bool)
    rest[list(said.get("given", ()))] = False
    known, strange = one.known & rest, ~one.known & rest
    right = [np.asarray(found.labels == one.truth)[known].mean() for found in (after, before)]
    rejected = [found.rejected[known].mean() for found in (after, before)]
    found_by = [found.rejected | np.asarray(found.labels == one.truth) for found in (after, before)]
    hits = [found[strange].mean() if strange.any() else None for found in found_by]
    pairs = (right, rejected, hits)
    return [None if after is None else round(100 * float(after - was), 2) for after, was in pairs]


def cells(folder: Path) -> Cells:
    """Return the batches of a bank."""
    for missing in (0, MISSING):
        part = "closed" if missing == 0 else "two missing"
        for number in range(BATCHES):
            yield part, {"batch": number}, partial(_measured_row, folder, missing, number)


def _measured_row(folder: Path, missing: int, number: int) -> Row:
    return {"changes": measured(folder, missing, number)}


# -- the page ----------------------------------------------------------------------------------------------------------


def changes(rows: Sequence[Row], name: str) -> list[float | None]:
    """Return the mean changes by one statement over the batches of a bank."""
    found = [row["changes"][name] for row in rows if name in row["changes"]]
    columns = zip(*found, strict=True)
    return [None if any(value is None for value in column) else mean(column) for column in columns]


def by_bank(group: str, part: str, name: str) -> dict[str, list[float | None]]:
    """Return the mean changes by one statement, by bank."""
    found = kept(RESULTS / group, GROUPS[group])
    return {
        bank: changes(of[part], name)
        for bank, of in found.items()
        if any(name in row["changes"] for row in of.get(part, ()))
    }


def names_of(part: str) -> list[str]:
    """Return all statements that were measured."""
    found = kept(RESULTS / "confirmation", GROUPS["confirmation"]) | kept(RESULTS / "tuning", GROUPS["tuning"])
    return list(dict.fromkeys(name for of in found.values() for row in of.get(part, ()) for name in row["changes"]))


def short(bank: str) -> str:
    """Return how pages call a bank."""
    return SHORT.get(bank, bank.split("-")[0])


def _mean_of(by: Mapping[str, list[float | None]], figure: int) -> float | None:
    values = [of[figure] for of in by.values() if of[figure] is not None]
    return mean(value for value in values if value is not None) if values else None


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"


def table() -> str:
    """Return means over the banks of the confirmation group, with the bank where labels fall most."""
    lines = ["| statement | batch | labels | known rejected | unknown found | labels, lowest |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for part in ("closed", "two missing"):
        for name in names_of(part):
            by = {} if " + " in name else by_bank("confirmation", part, name)
            if by:
                low = min(by, key=lambda bank: by[bank][0] or 0.0)
                cells_of = [_signed(_mean_of(by, figure)) for figure in range(3)]
                lowest = f"{_signed(by[low][0])}, {short(low)}"
                lines.append(f"| {name} | {part} | {' | '.join(cells_of)} | {lowest} |")
    return "\n".join(lines)


def harms() -> Iterator[Row]:
    """Return where a true statement, alone or in a pair, does more harm on a bank than it may."""
    for group in GROUPS:
        for part in ("closed", "two missing"):
            for name in names_of(part):
                if name.startswith("false"):
                    continue
                told = any(share in name.split(" + ") for share in SHARES)
                most = MOST_REJECTED_BY_SHARE if told else MOST_REJECTED
                for bank, (labels, known, unknown) in by_bank(group, part, name).items():
                    found = {
                        "labels": labels if labels is not None and labels < -MOST_LOWERED else None,
                        "known rejected": known if known is not None and known > most else None,
                        "unknown found": unknown if unknown is not None and unknown < -MOST_HIDDEN else None,
                    }
                    for what, points in found.items():
                        if points is not None:
                            said = "pair" if " + " in name else "alone"
                            where = {"group": group, "bank": short(bank), "batch": part, "statement": name}
                            yield {"said": said, "what": what, "points": points, **where}


def n_cells(said: str) -> int:
    """Return how many statements were measured, counted once for each bank and kind of batch."""
    return sum(
        len(by_bank(group, part, name))
        for group in GROUPS
        for part in ("closed", "two missing")
        for name in names_of(part)
        if not name.startswith("false") and (" + " in name) == (said == "pair")
    )


def in_words(found: Sequence[Row]) -> str:
    """Say how often there was more harm than there may be, and the worst of each kind."""
    sentences = []
    for said, called in (("alone", "Alone"), ("pair", "In pairs")):
        mine = [row for row in found if row["said"] == said]
        worst = []
        for what in ("labels", "known rejected", "unknown found"):
            of_kind = [row for row in mine if row["what"] == what]
            if of_kind:
                one = max(of_kind, key=lambda row: abs(row["points"]))
                worst.append(
                    f"{what} {len(of_kind)} times, at worst {one['points']:+.1f} ({one['statement']}, {one['bank']})"
                )
        sentences.append(f"{called}, {len(mine)} of {n_cells(said)} did more harm than they may: {'; '.join(worst)}.")
    return " ".join(sentences)


def rows() -> list[Row]:
    """Return all means by bank."""
    return [
        {
            "group": group,
            "bank": short(bank),
            "batch": part,
            "statement": name,
            **{figure: "" if value is None else value for figure, value in zip(FIGURES, of, strict=True)},
        }
        for group in GROUPS
        for part in ("closed", "two missing")
        for name in names_of(part)
        for bank, of in by_bank(group, part, name).items()
    ]


def figure() -> Any:
    """Draw the changes of labels by statement, one dot for each bank."""
    shown = {}
    for name in names_of("two missing"):
        if " + " not in name:
            by = {part: [by_bank(group, part, name) for group in GROUPS] for part in ("closed", "two missing")}
            shown[name] = {
                part: [of[0] for found in both for of in found.values() if of[0] is not None]
                for part, both in by.items()
            }
    return dots(shown, "points, labels of known items that nobody labelled", at=0)


def page() -> Page:
    """Return the page."""
    found = list(harms())
    shows = (
        "A true statement may lower labels by one point on a bank, reject 5 points more of the known items (10 if a "
        f"share is told) and find 3 points less of the unknown ones. {in_words(found)} A false statement costs what "
        "its row says."
    )
    return Page(
        name="statements",
        title="True and false statements",
        question="What does a batch gain or lose if a person says something about it? Changes in points, over items "
        "that nobody labelled, as means over banks that nothing was tuned on: known items with the right label, "
        "known items rejected, unknown "
        "items found.",
        alt="Changes of labels by statement: one dot per bank, a mark for the mean",
        figure=figure,
        table=table(),
        shows=shows,
        limits=f"{BATCHES} batches of each bank and kind, so a mean of one bank is good to about one point. The person "
        "of this study says what is true, or one thing that is false.",
        made="64 items of eight classes, catalogues of up to 60 classes with four examples each; the docstring of "
        "`studies/statements.py` says how batches are drawn and what each statement is.",
        commands=(
            "python studies/statements.py DATA --group tuning",
            "python studies/statements.py DATA --group confirmation",
            "python studies/statements.py --render",
        ),
        rows=rows(),
        more={"harms": found},
    )


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
