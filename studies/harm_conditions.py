"""Conditions of the study of harm, as `harm.py` describes them: each yields its parts and what measures their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from harm_data import GROUPS, RESULTS, Study, bank, drawn, orders, plain, read, rng_of, shared_out, taken
from side_by_side import (
    OURS,
    Batch,
    Bools,
    Catalogue,
    Ints,
    Outcome,
    Row,
    Sharpness,
    cell,
    certainty,
    chosen,
    proportions_by_em,
    shuffled,
    unit,
    warnings_of,
    whole_numbers,
)

N_QUERY, SHOTS, MOST_SHOTS, SPARE = 75, 5, 50, 6
CATALOGUES, DRAWS = 5, 10
SIZES = (1, 5, 15, 75, 250, 1000, 5000)
TEMPERATURES = (0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.4)
FACTORS = (3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 9.0, 12.0)
EMQ_CATALOGUES, EMQ_BATCHES = 3, 20
FEW, MANY = 3, 20

# Names of parts of a condition, and what measures their rows.
Parts = Iterator[tuple[str, Callable[[], list[Row]]]]


def emq(study: Study) -> Parts:
    """Choose the sharpness of both EMQs."""

    def measured(name: str) -> list[Row]:
        folder, rows = study.data / name, []
        for shots in (5, 10):
            for present in (5, 20):
                right: dict[tuple[str, float], list[float]] = {}
                for number in range(EMQ_CATALOGUES):
                    catalogue, rng = plain(folder, shots, number), rng_of("emq", name, shots, present, number)
                    left = [order[shots:] for order in orders(folder, number)]
                    for batch in drawn(folder, left, present, EMQ_BATCHES, rng, N_QUERY):
                        points = torch.from_numpy(batch.points)[None]
                        logits = catalogue.scores(points) * catalogue.head.temperature
                        halves, truth = catalogue.half_distances(points), torch.from_numpy(batch.truth)
                        tried = {("temperature", value): logits / value for value in TEMPERATURES}
                        tried |= {("factor", value): -(value**2) * halves for value in FACTORS}
                        for which, scores in tried.items():
                            labels = proportions_by_em(scores)[0].argmax(-1)
                            right.setdefault(which, []).append(float((labels == truth).double().mean()))
                where = {"data": name, "shots": shots, "present": present}
                rows += [
                    {**where, kind: v, "accuracy": round(100 * float(np.mean(r)), 2)} for (kind, v), r in right.items()
                ]
        return rows

    for name in GROUPS["tuning"].banks:
        yield name, partial(measured, name)


def sharpness() -> Sharpness:
    """Return the values with the highest mean accuracy."""
    kept = read(RESULTS / "tuning" / "emq.json")
    if len(kept) < len(GROUPS["tuning"].banks):
        raise SystemExit("the sharpness of EMQ is not known yet: python studies/harm.py DATA --group tuning --only emq")
    rows = [row for part in kept.values() for row in part["rows"]]

    def best(kind: str) -> float:
        values: list[float] = sorted({row[kind] for row in rows if kind in row})
        return max(values, key=lambda v: float(np.mean([row["accuracy"] for row in rows if row.get(kind) == v])))

    return Sharpness(best("temperature"), best("factor"))


def clean(study: Study) -> Parts:
    """Equal shots, right labels, one source, every item of some class."""

    def measured(name: str, shots: int) -> list[Row]:
        folder = study.data / name
        n_classes = int(bank(folder)[1].max()) + 1
        few = n_classes >= 500 or (n_classes >= 200 and shots >= 10)
        found: dict[int | str, list[Outcome]] = {5: [], 20: [], "all": []}
        seconds = []
        for number, n in enumerate(shared_out(study.clean_tasks, 5 if few else 10)):
            catalogue, left = plain(folder, shots, number), [order[shots:] for order in orders(folder, number)]
            seconds.append(catalogue.seconds)
            for present, outcomes in found.items():
                rng = rng_of("clean", name, shots, present, number)
                count = n_classes if isinstance(present, str) else present
                outcomes += catalogue.outcomes(drawn(folder, left, count, n, rng, N_QUERY), sharpness())
        about = {"data": name, "shots": shots, "classes": n_classes, "fit_seconds": round(float(np.mean(seconds)), 1)}
        return [{**about, "present": key, **cell(found[key]), **certainty(found[key])} for key in found]

    for name in study.group.banks:
        for shots in (1, 5, 10):
            yield f"{name}, {shots} shots", partial(measured, name, shots)


def shots(study: Study) -> Parts:
    """Classes with one example next to classes with fifty."""

    def measured(name: str) -> list[Row]:
        folder = study.data / name
        features, labels = bank(folder)
        most = min(MOST_SHOTS, int(np.bincount(labels).max()) - SPARE)
        found: dict[int, list[Outcome]] = {5: [], 20: []}
        counts: dict[int, Ints] = {}
        for number, n in enumerate(shared_out(study.tasks, CATALOGUES)):
            rng, order = rng_of("shots", name, number), orders(folder, number)
            counts[number] = np.array([min(round(most ** rng.random()), len(rows) - SPARE) for rows in order])
            held = np.concatenate([rows[:s] for rows, s in zip(order, counts[number], strict=True)])
            left = [rows[s:] for rows, s in zip(order, counts[number], strict=True)]
            catalogue = Catalogue(features[held], labels[held], number)
            for present, outcomes in found.items():
                outcomes += catalogue.outcomes(drawn(folder, left, present, n, rng, N_QUERY))
        rows = []
        for present, outcomes in found.items():
            row = {"data": name, "most_shots": most, "present": present, **cell(outcomes)}
            examples = [counts[one.catalogue][labels[one.items]] for one in outcomes]
            for size, inside in (("few", [of <= FEW for of in examples]), ("many", [of >= MANY for of in examples])):
                parts = [one.only(which) for one, which in zip(outcomes, inside, strict=True)]
                right = {rule: np.concatenate([part.right[rule] for part in parts]) for rule in row["accuracy"]}
                if len(right[OURS]):
                    row[size] = {rule: round(100 * float(values.mean()), 2) for rule, values in right.items()}
            rows.append(row)
        return rows

    for name in study.group.banks:
        yield name, partial(measured, name)


def requests(study: Study) -> Parts:
    """Real requests to a company, without those that fit no intent and with them."""
    name = study.group.requests
    folder = study.data / name

    @cache
    def fitted() -> Catalogue:
        features, labels = bank(folder)
        written = whole_numbers(folder / "original_split.npy") == 1
        return Catalogue(features[written], labels[written])

    def measured(size: int | str, opened: bool) -> list[Row]:
        asked = np.flatnonzero(whole_numbers(folder / "original_split.npy") == 0)
        fits = fitted().codes_of(bank(folder)[1]) >= 0
        rows = asked if opened else asked[fits[asked]]
        rng, batches = rng_of("requests", name, size, opened), []
        for _shuffle in range(1 if isinstance(size, str) else DRAWS):
            order = rng.permutation(rows)
            step = len(order) if isinstance(size, str) else size
            parts = np.split(order, range(step, len(order), step))
            batches += [taken(folder, part) for part in parts if len(part) >= 5 and fits[part].any()]
        outcomes = fitted().outcomes(batches)
        row = {"data": name, "classes": len(fitted().classes), "batch": size, "open": opened}
        row |= cell(outcomes, over_items=True)
        if opened:
            row |= found_out(outcomes, [~fits[batch.items] for batch in batches])
        return [row]

    for size in (30, 75, "all"):
        for opened in (False, True):
            what = f"{size}, {'with' if opened else 'without'} requests of no intent"
            yield what, partial(measured, size, opened)


def laboratories(study: Study) -> Parts:
    """Cells of one laboratory as the catalogue, batches of another."""
    folder = study.data / "lung-two-atlases"

    def measured(cap: int | None) -> list[Row]:
        reference, types = unit(folder / "reference.npy"), whole_numbers(folder / "reference_labels.npy")
        cells, truth = unit(folder / "query.npy"), whole_numbers(folder / "query_labels.npy")
        numbers, known = whole_numbers(folder / "query_batches.npy"), truth <= types.max()
        found: dict[bool, list[Outcome]] = {False: [], True: []}
        strangers = []
        for draw in range(1 if cap is None else DRAWS):
            rng = rng_of("laboratories", cap, draw)
            held = np.concatenate([rng.permutation(np.flatnonzero(types == k))[:cap] for k in np.unique(types)])
            catalogue = Catalogue(reference[held], types[held], draw)
            for opened, outcomes in found.items():
                picked = [np.flatnonzero((numbers == b) & (known | opened)) for b in study.group.laboratory_batches]
                outcomes += catalogue.outcomes([Batch(cells[rows], truth[rows], rows) for rows in picked])
                strangers += [~known[rows] for rows in picked] if opened else []
        rows = []
        for opened, outcomes in found.items():
            row = {"data": folder.name, "most_shots": cap, "open": opened, **cell(outcomes, over_items=True)}
            rows.append(row | (found_out(outcomes, strangers) if opened else {}))
        return rows

    for cap in (3, 5, 10, None):
        yield f"at most {cap or 'all'}", partial(measured, cap)


def shifted(study: Study) -> Parts:
    """Give a clean catalogue batches of photographs or sentences after a change."""
    name, changed = (study.data / part for part in study.group.changed)

    @cache
    def fitted(number: int) -> tuple[Catalogue, list[Ints]]:
        features, labels = bank(name)
        rows = whole_numbers(changed / "rows.npy")
        order = shuffled(np.random.default_rng(number), labels[rows])
        held = rows[np.concatenate([places[:SHOTS] for places in order])]
        return Catalogue(features[held], labels[held], number), [places[SHOTS:] for places in order]

    def measured(kind: str) -> list[Row]:
        features, labels = bank(name)
        rows = whole_numbers(changed / "rows.npy")
        vectors = features[rows] if kind == "unchanged" else unit(changed / f"{kind}.npy")
        found: dict[int, list[Outcome]] = {present: [] for present in study.group.changed_present}
        for number, n in enumerate(shared_out(study.tasks, CATALOGUES)):
            catalogue, left = fitted(number)
            for present, outcomes in found.items():
                rng, batches = rng_of("shifted", kind, present, number), []
                for _batch in range(n):
                    places = chosen(rng, left, rng.choice(len(left), present, replace=False), N_QUERY)
                    batches.append(Batch(vectors[places], labels[rows[places]], places))
                outcomes += catalogue.outcomes(batches)
        return [{"data": name.name, "change": kind, "present": p, **cell(outcomes)} for p, outcomes in found.items()]

    for kind in ("unchanged", *json.loads((changed / "kinds.json").read_text())):
        yield kind, partial(measured, kind)


def wrong_labels(study: Study) -> Parts:
    """Examples with the label of another class."""

    def measured(name: str, share: float) -> list[Row]:
        folder = study.data / name
        features, labels = bank(folder)
        found: dict[int, list[Outcome]] = {5: [], 20: []}
        for number, n in enumerate(shared_out(study.tasks, CATALOGUES)):
            rng, order = rng_of("wrong", name, share, number), orders(folder, number)
            held = np.concatenate([rows[:SHOTS] for rows in order])
            given = labels[held]
            wrong = rng.choice(len(given), round(share * len(given)), replace=False)
            given[wrong] = (given[wrong] + rng.integers(1, len(order), len(wrong))) % len(order)
            catalogue, left = Catalogue(features[held], given, number), [rows[SHOTS:] for rows in order]
            for present, outcomes in found.items():
                outcomes += catalogue.outcomes(drawn(folder, left, present, n, rng, N_QUERY))
        return [{"data": name, "wrong": share, "present": p, **cell(outcomes)} for p, outcomes in found.items()]

    for name in study.group.banks:
        for share in (0.1, 0.2):
            yield f"{name}, {share}", partial(measured, name, share)


def confusable(study: Study) -> Parts:
    """Only classes that resemble one another occur."""

    def measured(name: str) -> list[Row]:
        folder = study.data / name
        features, labels = bank(folder)
        means = np.stack([features[labels == k].mean(0) for k in range(int(labels.max()) + 1)])
        squares = (means**2).sum(-1) - 2 * means @ means.T + (means**2).sum(-1, keepdims=True)
        rows = []
        for present in (5, 10):
            outcomes = []
            for number, n in enumerate(shared_out(study.tasks, CATALOGUES)):
                rng, left = rng_of("confusable", name, present, number), [r[SHOTS:] for r in orders(folder, number)]
                near = [np.argsort(squares[rng.integers(len(left))])[:present] for _batch in range(n)]
                batches = [taken(folder, chosen(rng, left, classes, N_QUERY)) for classes in near]
                outcomes += plain(folder, SHOTS, number).outcomes(batches)
            rows.append({"data": name, "present": present, **cell(outcomes)})
        return rows

    for name in study.group.banks:
        yield name, partial(measured, name)


def stray(study: Study) -> Parts:
    """Give a batch of five classes a single item of a sixth."""

    def measured(name: str) -> list[Row]:
        folder, outcomes = study.data / name, []
        for number, n in enumerate(shared_out(study.tasks, CATALOGUES)):
            rng, left = rng_of("stray", name, number), [rows[SHOTS:] for rows in orders(folder, number)]
            batches = []
            for _batch in range(n):
                *five, sixth = rng.choice(len(left), 6, replace=False)
                parts = [chosen(rng, left, five, N_QUERY - 1), chosen(rng, left, [sixth], 1)]
                batches.append(taken(folder, np.concatenate(parts)))
            outcomes += plain(folder, SHOTS, number).outcomes(batches)
        last = [one.only(np.arange(len(one.items)) == len(one.items) - 1) for one in outcomes]
        return [{"data": name, **cell(last), "warnings": warnings_of(outcomes)}]

    for name in study.group.banks:
        yield name, partial(measured, name)


def sizes(study: Study) -> Parts:
    """From one item to 5,000."""

    def classes_of(rng: np.random.Generator, left: list[Ints], present: int | None, size: int) -> Ints:
        order = rng.permutation(len(left))
        if present is None:
            held = np.cumsum([len(left[k]) for k in order])
            present = int(np.searchsorted(held, size)) + 1
        return order[:present]

    def measured(name: str) -> list[Row]:
        folder, rows = study.data / name, []
        most = int(np.bincount(bank(folder)[1]).max()) - SHOTS
        cells: list[tuple[int | None, int]] = [
            (present, size)
            for present in (5, 20)
            for smaller, size in zip((0, *SIZES), SIZES, strict=False)
            if smaller < present * most
        ]
        for present, size in [*cells, (None, SIZES[-1])]:
            tasks = max(1, study.tasks * min(max(N_QUERY // size, 1), 5) // max(size // 250, 1))
            outcomes, there = [], []
            for number, n in enumerate(shared_out(max(tasks, min(study.tasks, CATALOGUES)), CATALOGUES)):
                rng, left = rng_of("sizes", name, present, size, number), [r[SHOTS:] for r in orders(folder, number)]
                picked = [classes_of(rng, left, present, size) for _batch in range(n)]
                there += [len(classes) for classes in picked]
                batches = [taken(folder, chosen(rng, left, classes, size)) for classes in picked]
                outcomes += plain(folder, SHOTS, number).outcomes(batches)
            rows.append({"data": name, "present": round(float(np.mean(there))), "size": size, **cell(outcomes)})
        return rows

    for name in study.group.banks:
        yield name, partial(measured, name)


def unknown(study: Study) -> Parts:
    """Items of classes that the catalogue lacks."""
    size = 60

    def measured(name: str) -> list[Row]:
        folder = study.data / name
        features, labels = bank(folder)
        found: dict[float, tuple[list[Outcome], list[Bools]]] = {s: ([], []) for s in (0.0, 0.2, 0.5, 1.0)}
        for number, n in enumerate(shared_out(study.tasks, CATALOGUES)):
            rng, order = rng_of("unknown", name, number), orders(folder, number)
            classes = rng.permutation(len(order))
            kept, removed = classes[: len(classes) // 2], classes[len(classes) // 2 :]
            held = np.concatenate([order[k][:SHOTS] for k in kept])
            catalogue, left = Catalogue(features[held], labels[held], number), [rows[SHOTS:] for rows in order]
            for share, (outcomes, strangers) in found.items():
                batches = []
                for _batch in range(n):
                    n_unknown = round(share * size)
                    parts = [
                        chosen(rng, left, rng.choice(which, 4, replace=False), m)
                        for which, m in ((kept, size - n_unknown), (removed, n_unknown))
                    ]
                    batches.append(taken(folder, np.concatenate(parts)))
                outcomes += catalogue.outcomes(batches)
                strangers += [catalogue.codes_of(batch.truth) < 0 for batch in batches]
        rows = []
        for share, (outcomes, strangers) in found.items():
            row: Row = {"data": name, "unknown": share, "warned": sum(bool(one.diagnostics) for one in outcomes)}
            row["false_classes"] = round(100 * float(np.mean([(~o.there)[o.called].mean() for o in outcomes])), 1)
            row |= cell(outcomes) if share < 1 else {"batches": len(outcomes)}
            rows.append(row | (found_out(outcomes, strangers) if share > 0 else {}))
        return rows

    for name in study.group.banks:
        yield name, partial(measured, name)


def found_out(outcomes: Sequence[Outcome], strangers: Sequence[Bools]) -> Row:
    """How well the probability and the plain distance tell items of no class, and how probable their labels are."""
    pairs = list(zip(outcomes, strangers, strict=True))
    mixed = [(one, stranger) for one, stranger in pairs if stranger.any() and not stranger.all()]
    row = {"said_of_unknown": round(float(np.mean([(1 - one.doubt)[s].mean() for one, s in pairs if s.any()])), 3)}
    if mixed:
        row["auroc_probability"] = round(float(np.mean([roc_auc_score(s, one.doubt) for one, s in mixed])), 3)
        row["auroc_distance"] = round(float(np.mean([roc_auc_score(s, one.distance) for one, s in mixed])), 3)
    return row


CONDITIONS: dict[str, Callable[[Study], Parts]] = {
    "emq": emq,
    "clean": clean,
    "shots": shots,
    "requests": requests,
    "laboratories": laboratories,
    "shifted": shifted,
    "wrong_labels": wrong_labels,
    "confusable": confusable,
    "stray": stray,
    "sizes": sizes,
    "unknown": unknown,
}
