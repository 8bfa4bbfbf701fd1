"""Cells of `open_batches.py`: the two groups, their catalogues, and how batches are drawn from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bank_data import rng_of
from real_uses import COMPOUNDS, LABORATORY, array

SIZE, CATALOGUES = 75, 8
OUT, THERE, FEWEST, MOST = 10, 3, 5, 8  # classes taken out, those of them in a batch, and known classes of a batch
NO_CLASS = -1  # label of an item that has no class in the data either

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Material(NamedTuple):
    """Examples, and pools of items to draw batches from, in turn."""

    examples: Floats
    labels: Ints
    pools: Sequence[Pool]


class Pool(NamedTuple):
    """Items, their labels, and the rows of each known and unknown class."""

    points: Floats
    truth: Ints
    known: list[Ints]
    unknown: list[Ints]
    how: str = "few"  # `few` classes in uneven shares, `whole` classes, or `any` items


def rows_of(
    labels: Ints, classes: Sequence[int] | Ints, rng: np.random.Generator, among: Bools | None = None
) -> list[Ints]:
    """Rows of each class in random order."""
    may = np.ones(len(labels), bool) if among is None else among
    return [rng.permutation(np.flatnonzero((labels == k) & may)) for k in classes]


@cache
def read(folder: Path, part: str = "") -> tuple[Floats, Ints]:
    """Read features and labels, of a part if there are several."""
    before = f"{part}_" if part else ""
    return array(folder / f"{part or 'features'}.npy"), array(folder / f"{before}labels.npy")


def bank(
    data: Path, cell: str, number: int, *, folder: str, shots: int, part: str = "", split: bool = False
) -> Material:
    """Take ten classes out of a bank; with `split`, examples are of its part 0 and items of its part 2."""
    features, labels = read(data / folder, part)
    rng = rng_of("open batches 2026", cell, "catalogue", number)
    classes = rng.permutation(int(labels.max()) + 1)
    kept = np.sort(classes[OUT:])
    if split:
        parts = array(data / folder / "original_split.npy")
        held = [rows[:shots] for rows in rows_of(labels, kept, rng, parts == 0)]
        known, unknown = (rows_of(labels, some, rng, parts == 2) for some in (kept, classes[:OUT]))
    else:
        order = rows_of(labels, kept, rng)
        held, known = [rows[:shots] for rows in order], [rows[shots:] for rows in order]
        unknown = rows_of(labels, classes[:OUT], rng)
    rows = np.concatenate(held)
    return Material(features[rows], labels[rows], [Pool(features, labels, known, unknown)])


def strangers(data: Path, cell: str, number: int, *, folder: str, others: str, shots: int) -> Material:
    """Keep all classes of a bank; unknown items are of no class at all."""
    (features, labels), more = read(data / folder), array(data / others / "features.npy")
    rng = rng_of("open batches 2026", cell, "catalogue", number)
    order = rows_of(labels, range(int(labels.max()) + 1), rng)
    rows, n = np.concatenate([one[:shots] for one in order]), len(labels)
    points, truth = np.concatenate([features, more]), np.concatenate([labels, np.full(len(more), NO_CLASS)])
    pool = Pool(points, truth, [one[shots:] for one in order], [np.arange(n, n + len(more))])
    return Material(features[rows], labels[rows], [pool])


def shifted(
    data: Path, cell: str, number: int, *, folder: str, changed: str, kinds: Sequence[str], shots: int
) -> Material:
    """Take ten classes out of a clean bank; items are other rows after a change, one pool for each."""
    features, labels = read(data / folder)
    rows = array(data / changed / "rows.npy")
    rng, truth = rng_of("open batches 2026", cell, "catalogue", number), labels[rows]
    classes = rng.permutation(int(labels.max()) + 1)
    kept = np.sort(classes[OUT:])
    order, unknown = rows_of(truth, kept, rng), rows_of(truth, classes[:OUT], rng)
    held, known = rows[np.concatenate([one[:shots] for one in order])], [one[shots:] for one in order]
    pools = [Pool(array(data / changed / f"{kind}.npy"), truth, known, unknown) for kind in kinds]
    return Material(features[held], labels[held], pools)


def requests(data: Path, _cell: str, _number: int, *, folder: str) -> Material:
    """Take what a company wrote as the catalogue, and what people asked as items."""
    (features, labels), written = read(data / folder), array(data / folder / "original_split.npy") == 1
    known = ~written & np.isin(labels, labels[written])
    pool = Pool(features, labels, [np.flatnonzero(known)], [np.flatnonzero(~written & ~known)], "any")
    truth = np.where(known | written, labels, NO_CLASS)
    return Material(features[written], labels[written], [pool._replace(truth=truth)])


def cells(data: Path, cell: str, number: int, *, batches: Sequence[int], most: int | None) -> Material:
    """Take some cells of each type of an atlas; each pool is a batch of the other laboratory."""
    folder = data / "lung-two-atlases"
    (reference, types), (points, truth) = (read(folder, part) for part in ("reference", "query"))
    rng = rng_of("open batches 2026", cell, "catalogue", number)
    rows = np.concatenate([one[:most] for one in rows_of(types, np.unique(types), rng)])
    of, known = array(folder / "query_batches.npy"), np.isin(truth, types)
    pools = [
        Pool(points, truth, [np.flatnonzero((of == b) & known)], [np.flatnonzero((of == b) & ~known)], "any")
        for b in batches
    ]
    return Material(reference[rows], types[rows], pools)


def spectra(data: Path, _cell: str, _number: int) -> Material:
    """Take the library of one laboratory; items are all spectra that another has of some compounds."""
    folder = data / "massbank-two-labs"
    (library, labels), (points, truth) = (read(folder, part) for part in ("reference", "query"))
    here, rng = array(folder / "query_lab.npy") == LABORATORY, rng_of("open batches 2026", "spectra")
    known, unknown = (
        rows_of(truth, np.unique(truth[here & some]), rng, here) for some in (truth < COMPOUNDS, truth >= COMPOUNDS)
    )
    return Material(library, labels, [Pool(points, truth, known, unknown, "whole")])


class Cell(NamedTuple):
    """How to make the catalogues of a cell, how many the data have, and whether items come from another source.

    `slow`: a fit takes more than 10 s.
    """

    make: Callable[[Path, str, int], Material]
    catalogues: int = CATALOGUES
    elsewhere: bool = False
    slow: bool = False


def _bank(folder: str, shots: int, **more: Any) -> Cell:
    return Cell(partial(bank, folder=folder, shots=shots, **more))


def _requests(name: str) -> Cell:
    return Cell(partial(requests, folder=f"hint3-{name}-minilm"), 1, elsewhere=True)


def _cells(batches: Sequence[int], before: str) -> dict[str, Cell]:
    return {
        f"{before}-{most or 'all'}": Cell(
            partial(cells, batches=batches, most=most), CATALOGUES if most else 1, elsewhere=True
        )
        for most in (3, 10, None)
    }


_CLINC, _CUB, _ESC, _CALTECH = "clinc150-minilm", "cub200-efflite0", "esc50-birdnet", "caltech101-efflite0"
_TYPED = partial(shifted, folder=_CLINC, changed="clinc150-shifted", shots=5)
_PHOTOGRAPHED = partial(shifted, folder=_CALTECH, changed="caltech101-shifted", shots=5)
GROUPS: dict[str, dict[str, Cell]] = {
    "tuning": {
        **{f"clinc150-{shots}": _bank(_CLINC, shots) for shots in (3, 5, 10)},
        "clinc150-oos": Cell(partial(strangers, folder=_CLINC, others="clinc-oos-minilm", shots=5)),
        **{f"clinc150-{kind}": Cell(partial(_TYPED, kinds=(kind,)), elsewhere=True) for kind in ("typos", "dropped")},
        **{f"cub200-{shots}": _bank(_CUB, shots)._replace(slow=shots == 10) for shots in (3, 5, 10)},
        "omniglot659-5": _bank("omniglot659-conv4", 5)._replace(slow=True),
        **{f"esc50-{shots}": _bank(_ESC, shots) for shots in (3, 5)},
        **{name: _requests(name) for name in ("curekart", "powerplay11")},
        **_cells((0, 1, 2, 3), "lung"),
    },
    "confirmation": {
        "clips": _bank("audiomnist-speakers", 3, part="short"),
        "utterances": _bank("audiomnist-speakers", 3),
        "groceries": _bank("grocery-efflite0", 5, split=True),
        "sofmattress": _requests("sofmattress"),
        "banking77": _bank("banking77-minilm", 5),
        "tinyimagenet200": _bank("tinyimagenet200-efflite0", 5),
        "caltech101": _bank(_CALTECH, 5),
        "caltech101-shifted": Cell(
            partial(_PHOTOGRAPHED, kinds=("blur", "noise", "contrast", "jpeg", "grey")), elsewhere=True
        ),
        **_cells((4, 5), "lung-last"),
        "spectra": Cell(spectra, 1, elsewhere=True, slow=True),
    },
}


def drawn(pool: Pool, share: float, rng: np.random.Generator) -> Ints:
    """Draw the rows of a batch with this share of unknown items, in random order."""
    size = SIZE
    if pool.how == "any":
        # Batches of a small pool differ if they leave a fifth of it out.
        n_known, n_unknown = (0.8 * sum(map(len, classes)) for classes in (pool.known, pool.unknown))
        size = int(min(size, n_known / (1 - share), n_unknown / share if share else size))
    unknown = round(share * size)
    parts = [
        _of_classes(classes, pool.how, present, n, rng)
        for classes, present, n in (
            (pool.known, int(rng.integers(FEWEST, MOST + 1)), size - unknown),
            (pool.unknown, THERE, unknown),
        )
    ]
    return np.asarray(rng.permutation(np.concatenate(parts)))


def _of_classes(classes: list[Ints], how: str, present: int, n: int, rng: np.random.Generator) -> Ints:
    order = [classes[k] for k in rng.permutation(len(classes))]
    if how == "any":
        return rng.permutation(np.concatenate(order))[:n]
    if how == "whole":
        return np.concatenate(order)[:n]
    order = order[:present]
    room, sizes = np.array([len(rows) for rows in order]), np.zeros(len(order), np.int64)
    weights = rng.dirichlet(np.full(len(order), 2.0))
    while (left := min(n, int(room.sum())) - int(sizes.sum())) > 0:  # what a class lacks, the others have
        free = weights * (sizes < room)
        sizes = np.minimum(sizes + rng.multinomial(left, free / free.sum()), room)
    return np.concatenate([rng.permutation(rows)[:size] for rows, size in zip(order, sizes, strict=True)])
