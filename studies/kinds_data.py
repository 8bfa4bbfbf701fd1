"""Kinds of batches of `mechanisms.py`: catalogues and batches as people have them, drawn from banks and other data.

A kind says which catalogue is made and which batches are labelled with it. Unless it says otherwise, a catalogue has
five examples of each class, and a batch has 75 items of five classes with equal chances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bank_data import Floats, Ints, chosen, rng_of, shuffled, whole_numbers
from real_uses import COMPOUNDS, array

SHOTS, PRESENT, ITEMS = 5, 5, 75
SPARE = 3  # rows that a class must have besides its examples
REMOVED, THERE, UNKNOWN_SHARE = 10, 3, 0.3  # of an open kind: classes taken out, those of a batch, share of their items
NO_CLASS = -1
UNEVEN = 0.5  # Dirichlet parameter of uneven shares
MOST_EXAMPLES, SPARE_OF_UNEQUAL = 30, 10  # of a catalogue with unequal examples: of a class, and rows left for batches
MOSTLY_UNKNOWN = 0.7
LIBRARY, SHARED_BY_BOTH, COMPOUNDS_OF_A_RUN, NEW_COMPOUNDS = 200, 100, 20, 12
CELLS_OF_A_TYPE, LEAST_CELLS = 10, 60
WORSE = ("blur", "contrast", "grey", "jpeg", "noise")
TYPED = ("typos", "dropped")


class Batch(NamedTuple):
    """Items and their classes; `NO_CLASS` if the catalogue lacks the class."""

    points: Floats
    truth: Ints


class Task(NamedTuple):
    """Examples of a catalogue, and batches to label with it."""

    examples: Floats
    labels: Ints
    batches: list[Batch]


Draw = Callable[[Path, np.random.Generator, int], Task]


class Kind(NamedTuple):
    """How batches of a kind are drawn, whether some of their items are unknown, and how many catalogues it has."""

    draw: Draw
    is_open: bool = False
    catalogues: int = 3


def of_bank(
    data: Path,
    rng: np.random.Generator,
    n: int,
    *,
    name: str,
    shots: int = SHOTS,
    present: int = PRESENT,
    items: int = ITEMS,
    part: str = "",
    uneven: bool = False,
    is_open: bool = False,
    strangers: str = "",
) -> Task:
    """Draw from a bank; if it is open, ten classes are taken out, or items of `strangers` have no class at all."""
    points, labels = _read(data / name, part)
    order = shuffled(rng, labels)
    classes = rng.permutation([k for k, rows in enumerate(order) if len(rows) >= shots + SPARE])
    out = classes[:REMOVED] if is_open and not strangers else classes[:0]
    known = classes[len(out) :]
    left = [rows[shots:] for rows in order]
    held = np.concatenate([order[k][:shots] for k in known])
    n_unknown = round(UNKNOWN_SHARE * items) if is_open else 0
    batches = []
    for _ in range(n):
        some = rng.choice(known, min(present, len(known)), replace=False)
        rows = _uneven(rng, left, some, items) if uneven else chosen(rng, left, some, items - n_unknown)
        own = Batch(points[rows], labels[rows])
        if strangers:
            others = array(data / strangers / "features.npy")
            own = _with_unknown(own, others[rng.choice(len(others), n_unknown, replace=False)])
        elif is_open:
            there = rng.choice(out, THERE, replace=False)
            own = _with_unknown(own, points[chosen(rng, left, there, n_unknown)])
        batches.append(own)
    return Task(points[held], labels[held], batches)


def with_unequal_examples(
    data: Path, rng: np.random.Generator, n: int, *, name: str, present: int, strangers: str = "", share: float = 0.0
) -> Task:
    """Draw 1 to 30 examples of each class, log-uniformly; a share of the items is of `strangers`."""
    points, labels = _read(data / name)
    order = shuffled(rng, labels)
    wanted = np.exp(rng.uniform(0, np.log(MOST_EXAMPLES), len(order))).round().astype(int)
    shots = [min(most, max(1, len(rows) - SPARE_OF_UNEQUAL)) for most, rows in zip(wanted, order, strict=True)]
    held = np.concatenate([rows[:some] for rows, some in zip(order, shots, strict=True)])
    left = [rows[some:] for rows, some in zip(order, shots, strict=True)]
    n_unknown = round(share * ITEMS)
    batches = []
    for _ in range(n):
        rows = chosen(rng, left, rng.choice(len(order), present, replace=False), ITEMS - n_unknown)
        own = Batch(points[rows], labels[rows])
        if strangers:
            others = array(data / strangers / "features.npy")
            own = _with_unknown(own, others[rng.choice(len(others), n_unknown, replace=False)])
        batches.append(own)
    return Task(points[held], labels[held], batches)


def after_a_change(
    data: Path,
    rng: np.random.Generator,
    n: int,
    *,
    name: str,
    changed: str,
    kinds: Sequence[str],
    is_open: bool = False,
) -> Task:
    """Draw a clean catalogue, and batches of other rows of the bank after a change."""
    points, labels = _read(data / name)
    rows = whole_numbers(data / changed / "rows.npy")
    order = shuffled(rng, labels)
    classes = rng.permutation([k for k, own in enumerate(order) if len(own) >= SHOTS + SPARE])
    out = classes[: REMOVED if is_open else 0]
    known = classes[len(out) :]
    held = np.concatenate([order[k][:SHOTS] for k in known])
    places = np.flatnonzero(~np.isin(rows, held))
    truth = labels[rows]
    left = [places[truth[places] == k] for k in range(len(order))]
    n_unknown = round(UNKNOWN_SHARE * ITEMS) if is_open else 0
    batches = []
    for _ in range(n):
        source = array(data / changed / f"{rng.choice(kinds)}.npy")
        own = chosen(rng, left, rng.choice(known, PRESENT, replace=False), ITEMS - n_unknown)
        batch = Batch(source[own], truth[own])
        if is_open:
            there = rng.choice(out, THERE, replace=False)
            batch = _with_unknown(batch, source[chosen(rng, left, there, n_unknown)])
        batches.append(batch)
    return Task(points[held], labels[held], batches)


def shop_to_shop(data: Path, rng: np.random.Generator, n: int, *, iconic: bool = False) -> Task:
    """Draw photographs of groceries in other shops than those of the catalogue, or than its iconic pictures."""
    folder = data / "grocery-efflite0"
    points, labels = _read(folder)
    part = whole_numbers(folder / "original_split.npy")
    left = [rng.permutation(np.flatnonzero((labels == k) & (part == 2))) for k in range(int(labels.max()) + 1)]
    if iconic:
        examples = array(folder / "iconic_features.npy")
        codes = np.arange(len(examples))
    else:
        own = [rng.permutation(np.flatnonzero((labels == k) & (part == 0)))[:SHOTS] for k in range(len(left))]
        rows = np.concatenate(own)
        examples = points[rows]
        codes = labels[rows]
    there = np.intersect1d(codes, [k for k, rows in enumerate(left) if len(rows)])
    drawn = [chosen(rng, left, rng.choice(there, PRESENT + 1, replace=False), ITEMS) for _ in range(n)]
    return Task(examples, codes, [Batch(points[rows], labels[rows]) for rows in drawn])


def two_laboratories(data: Path, rng: np.random.Generator, n: int, *, is_open: bool = False) -> Task:
    """Draw a library of 200 compounds of one laboratory, and runs of 20 of them by two others, in turn."""
    folder = data / "massbank-two-labs"
    library, compounds = _read(folder, "reference")
    points, truth = _read(folder, "query")
    laboratory = whole_numbers(folder / "query_lab.npy")
    measured = [np.unique(truth[(laboratory == one) & (truth < COMPOUNDS)]) for one in (0, 1)]
    both = rng.choice(np.intersect1d(measured[0], measured[1]), SHARED_BY_BOTH, replace=False)
    others = rng.choice(np.setdiff1d(np.arange(COMPOUNDS), both), LIBRARY - SHARED_BY_BOTH, replace=False)
    listed = np.concatenate([both, others])
    held = np.isin(compounds, listed)
    batches = []
    for number in range(n):
        here = laboratory == number % 2
        of_run = rng.choice(np.intersect1d(listed, truth[here]), COMPOUNDS_OF_A_RUN, replace=False)
        rows = np.flatnonzero(here & np.isin(truth, of_run))
        batch = Batch(points[rows], truth[rows])
        if is_open:
            new = rng.choice(np.unique(truth[here & (truth >= COMPOUNDS)]), NEW_COMPOUNDS, replace=False)
            strange = rng.permutation(np.flatnonzero(here & np.isin(truth, new)))
            most = round(len(rows) * UNKNOWN_SHARE / (1 - UNKNOWN_SHARE))
            batch = _with_unknown(batch, points[strange[:most]])
        batches.append(batch)
    return Task(library[held], compounds[held], batches)


def two_atlases(data: Path, rng: np.random.Generator, n: int, *, is_open: bool = False) -> Task:
    """Draw at most ten cells of each type of one atlas, and cells of the other as batches."""
    folder = data / "lung-two-atlases"
    reference, types = _read(folder, "reference")
    points, truth = _read(folder, "query")
    held = np.concatenate([rows[:CELLS_OF_A_TYPE] for rows in shuffled(rng, types)])
    of_batch = array(folder / "query_batches.npy")
    known = np.isin(truth, types)
    names, sizes = np.unique(of_batch, return_counts=True)
    large = names[sizes >= LEAST_CELLS]
    batches = []
    for number in range(n):
        pool = np.flatnonzero((of_batch == large[number % len(large)]) & (known | is_open))
        rows = rng.choice(pool, min(ITEMS, len(pool)), replace=False)
        batches.append(Batch(points[rows], np.where(known[rows], truth[rows], NO_CLASS)))
    return Task(reference[held], types[held], batches)


def requests(data: Path, rng: np.random.Generator, n: int, *, name: str, is_open: bool = False) -> Task:
    """Take what a company wrote as the catalogue, and requests of people in natural shares as batches."""
    folder = data / name
    points, labels = _read(folder)
    written = whole_numbers(folder / "original_split.npy") == 1
    known = np.isin(labels, labels[written])
    pool = np.flatnonzero(~written & (known | is_open))
    rows = [rng.choice(pool, min(ITEMS, len(pool)), replace=False) for _ in range(n)]
    batches = [Batch(points[some], np.where(known[some], labels[some], NO_CLASS)) for some in rows]
    return Task(points[written], labels[written], batches)


@cache
def _read(folder: Path, part: str = "") -> tuple[Floats, Ints]:
    before = f"{part}_" if part else ""
    return array(folder / f"{part or 'features'}.npy"), array(folder / f"{before}labels.npy")


def _uneven(rng: np.random.Generator, left: Sequence[Ints], classes: Ints, items: int) -> Ints:
    """Draw rows of classes whose shares are unequal; at least one of each."""
    sizes = np.maximum(np.round(items * rng.dirichlet(np.full(len(classes), UNEVEN))).astype(int), 1)
    return np.concatenate([rng.permutation(left[k])[:size] for k, size in zip(classes, sizes, strict=True)])


def _with_unknown(batch: Batch, more: Floats) -> Batch:
    truth = np.concatenate([batch.truth, np.full(len(more), NO_CLASS)])
    return Batch(np.concatenate([batch.points, more]), truth)


_CLINC, _CALTECH, _CUB = "clinc150-minilm", "caltech101-efflite0", "cub200-efflite0"
_HWU, _HINT = "hwu64-minilm", "hint3-sofmattress-minilm"
_TYPED = partial(after_a_change, name=_CLINC, changed="clinc150-shifted", kinds=TYPED)
_WORSE = partial(after_a_change, name=_CALTECH, changed="caltech101-shifted", kinds=WORSE)
_MOSTLY = partial(with_unequal_examples, share=MOSTLY_UNKNOWN)
GROUPS: dict[str, dict[str, Kind]] = {
    "tuning": {
        **{f"clinc150, {n} classes": Kind(partial(of_bank, name=_CLINC, present=n)) for n in (2, 5, 10)},
        "clinc150, 1 example": Kind(partial(of_bank, name=_CLINC, shots=1)),
        "clinc150, typing errors": Kind(_TYPED),
        "banking77, 10 items": Kind(partial(of_bank, name="banking77-minilm", present=3, items=10)),
        "caltech101, 1 example": Kind(partial(of_bank, name=_CALTECH, shots=1)),
        "caltech101, one class": Kind(partial(of_bank, name=_CALTECH, present=1, items=25)),
        "caltech101, worse pictures": Kind(_WORSE),
        "tinyimagenet200, 300 items": Kind(
            partial(of_bank, name="tinyimagenet200-efflite0", present=8, items=300), catalogues=2
        ),
        "clinc150, unequal examples": Kind(partial(with_unequal_examples, name=_CLINC, present=20)),
        "open clinc150": Kind(partial(of_bank, name=_CLINC, is_open=True), is_open=True),
        "open clinc150, real requests": Kind(
            partial(of_bank, name=_CLINC, is_open=True, strangers="clinc-oos-minilm"), is_open=True
        ),
        "open clinc150, unequal examples, mostly unknown": Kind(
            partial(_MOSTLY, name=_CLINC, present=20, strangers="clinc-oos-minilm"), is_open=True
        ),
        "open caltech101": Kind(partial(of_bank, name=_CALTECH, is_open=True), is_open=True),
        "open caltech101, worse pictures": Kind(partial(_WORSE, is_open=True), is_open=True),
    },
    "confirmation": {
        "cub200": Kind(partial(of_bank, name=_CUB), catalogues=2),
        "groceries, shop to shop": Kind(shop_to_shop),
        "groceries, iconic to shop": Kind(partial(shop_to_shop, iconic=True)),
        "audiomnist, short clips": Kind(partial(of_bank, name="audiomnist-speakers", part="short", items=60)),
        "esc50": Kind(partial(of_bank, name="esc50-birdnet")),
        "massbank, two laboratories": Kind(two_laboratories, catalogues=2),
        "lung, two atlases": Kind(two_atlases),
        "hwu64, uneven sizes": Kind(partial(of_bank, name=_HWU, present=8, uneven=True)),
        "hwu64, nearly all classes": Kind(partial(of_bank, name=_HWU, present=58, items=150)),
        "sofmattress, requests": Kind(partial(requests, name=_HINT), catalogues=1),
        "hwu64, unequal examples": Kind(partial(with_unequal_examples, name=_HWU, present=20)),
        "open hwu64, unequal examples, mostly unknown": Kind(
            partial(_MOSTLY, name=_HWU, present=20, strangers="clinc-oos-minilm"), is_open=True
        ),
        "open cub200": Kind(partial(of_bank, name=_CUB, is_open=True), is_open=True, catalogues=2),
        "open massbank": Kind(partial(two_laboratories, is_open=True), is_open=True, catalogues=2),
        "open lung": Kind(partial(two_atlases, is_open=True), is_open=True),
        "open sofmattress": Kind(partial(requests, name=_HINT, is_open=True), is_open=True, catalogues=1),
    },
}


def tasks(data: Path, name: str, kind: Kind, batches: int) -> list[Task]:
    """Draw the catalogues of a kind, with this many batches in all."""
    each = -(-batches // kind.catalogues)
    return [kind.draw(data, rng_of("mechanisms", name, number), each) for number in range(kind.catalogues)]
