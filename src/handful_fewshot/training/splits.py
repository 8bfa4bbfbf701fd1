"""Splits: which images belong to base, validation and test classes, read from the files benchmarks come with.

| benchmark | lists | classes (base, validation, test) | images |
|---|---|---|---|
| mini-imagenet | `train.csv`, `val.csv`, `test.csv`: header, then `file,class` | 64, 16, 20 | 600 per class |
| tiered-imagenet | the same names: one `file,class` or `class,superclass` per line | 351, 97, 160 | 779,165 in total |
| inat | `train.csv`, `repr.csv` (support), `query.csv`: `file,class` per line | 908, none, 227 | 50–1,000 per class |

Image files are relative to the given folder. If a tiered list has classes, each has a folder of that name there.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from handful.extraction.items import Items, list_items
from handful.machine.outputs import refuse_overwriting, written_whole
from handful.machine.untrusted import read_text
from handful.reading.contents import IMAGE_SUFFIXES
from handful_fewshot.errors import TrainingError

BASE = "base"
VALIDATION = "validation"
TEST = "test"
# Images of test classes, where a benchmark has one support for all tasks.
SUPPORT = "support"
QUERY = "query"


class ImageRow(NamedTuple):
    """One image of a benchmark: its file, its class, and the split it belongs to."""

    path: str
    label: str
    split: str


@dataclass(frozen=True)
class Benchmark:
    """What the files of a benchmark must contain."""

    lists: Mapping[str, str]  # split of each file of the folder of lists
    classes: Mapping[str, int]  # number of classes of each split
    images_a_class: tuple[int, int]  # least and most
    source: str  # where to get it
    images: int | None = None  # in total, if that is published
    numbered: bool = False  # whether a class is a number within its split, with each split counting from 0


@dataclass(frozen=True, eq=False)
class BaseSplit:
    """Images to train on, and images of other classes to validate with; None if there are none."""

    base: Items
    validation: Items | None


def hold_out(items: Items, n_classes: int, seed: int) -> BaseSplit:
    """Set classes aside for validation, drawn with the seed; none if `n_classes` is 0.

    Parameters
    ----------
    items : Items
        Images with their classes.
    n_classes : int
        Number of classes to set aside.
    seed : int
        Seed of the draw.

    Returns
    -------
    BaseSplit
        Images of base classes and of validation classes.
    """
    there = len(items.class_names)
    if n_classes == 0:
        return BaseSplit(items, None)
    if not 2 <= n_classes <= there - 2:
        raise TrainingError(
            f"{n_classes} of {there} classes cannot be held out; at least 2 must be, and 2 must be left to train on"
        )
    chosen = np.sort(np.random.default_rng(seed).choice(there, n_classes, replace=False))
    rest = np.setdiff1d(np.arange(there), chosen)
    return BaseSplit(only_classes(items, rest.tolist()), only_classes(items, chosen.tolist()))


def only_classes(items: Items, classes: Sequence[int]) -> Items:
    """Items of some classes, renumbered in this order."""
    number = {old: new for new, old in enumerate(classes)}
    rows = [row for row, label in enumerate(items.labels.tolist()) if label in number]
    return replace(
        items.take(rows),
        labels=np.array([number[int(items.labels[row])] for row in rows], dtype=np.int64),
        class_names=tuple(items.class_names[old] for old in classes),
        data_hash=hashlib.sha256(repr((items.data_hash, list(classes))).encode()).hexdigest(),
    )


def check_disjoint(base: Items, validation: Items) -> None:
    """Refuse classes of the same name on both sides: validation would measure memorisation."""
    common = sorted(set(base.class_names) & set(validation.class_names))
    if common:
        raise TrainingError(
            f"{len(common)} classes are both trained on and validated with, the first is {common[0]!r}; "
            "give validation classes that are not among the base classes, or hold some out"
        )


def read_benchmark(name: str, lists: Path, images: Path, table: Path) -> BaseSplit:
    """Read the lists of a benchmark, check them, and list its images.

    Parameters
    ----------
    name : str
        A key of `BENCHMARKS`.
    lists : Path
        Folder with its lists.
    images : Path
        Folder with its images.
    table : Path
        A table `path,label,split` of all images is written here, from which `handful extract` reads any split.

    Returns
    -------
    BaseSplit
        Images of base classes and of validation classes.
    """
    refuse_overwriting({"lists": lists, "images": images}, {"table of images": table})
    rows = benchmark_rows(name, lists, images)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(ImageRow._fields)
    writer.writerows((str((images / row.path).absolute()), row.label, row.split) for row in rows)
    with written_whole(table) as place:
        place.write_text(text.getvalue(), encoding="utf-8")
    return BaseSplit(
        _listed(table, BASE), _listed(table, VALIDATION) if VALIDATION in BENCHMARKS[name].classes else None
    )


def _listed(table: Path, split: str) -> Items:
    items = list_items(table, split=split)
    return only_classes(items, sorted(set(items.labels.tolist())))


def benchmark_rows(name: str, lists: Path, images: Path) -> list[ImageRow]:
    """Read and check the lists of a benchmark: files exist, counts are as published, no class is in two splits."""
    if name not in BENCHMARKS:
        raise TrainingError(f"no benchmark is called {name!r}; choose from {', '.join(BENCHMARKS)}")
    benchmark = BENCHMARKS[name]
    if not images.is_dir():
        raise TrainingError(
            f"the images of {name} are expected in a folder, but {images} is not a folder; {benchmark.source}"
        )
    rows: list[ImageRow] = []
    for file, split in benchmark.lists.items():
        rows += _read_list(lists / file, split, images, benchmark)
    for fault in _faults(rows, images, benchmark):
        raise TrainingError(f"{name}: {fault}; {benchmark.source}")
    return rows


def _read_list(path: Path, split: str, images: Path, benchmark: Benchmark) -> Iterator[ImageRow]:
    """Rows of one list, of images or of classes; a header is a first line whose first entry is neither."""
    if not path.exists():
        raise TrainingError(f"the list {path} is missing; {benchmark.source}")
    text = read_text(path, TrainingError)
    try:
        entries = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise TrainingError(f"{path} is not a CSV file ({error}); {benchmark.source}") from error
    for number, entry in enumerate(entries, 1):
        if not entry or (number == 1 and entry[0] in ("filename", "file")):
            continue
        if len(entry) != 2 or not all(part.strip() for part in entry):
            raise TrainingError(
                f"line {number} of {path} must have two entries, `file,class` or `class,superclass`, got {entry}"
            )
        first, second = (part.strip() for part in entry)
        if Path(first).suffix.lower() in IMAGE_SUFFIXES:
            yield ImageRow(first, f"{split}/{second}" if benchmark.numbered and second.isdecimal() else second, split)
        else:
            yield from _folder_rows(images, first, split, benchmark)


def _folder_rows(images: Path, label: str, split: str, benchmark: Benchmark) -> Iterator[ImageRow]:
    folder = images / label
    if not folder.is_dir():
        raise TrainingError(f"class {label} has no folder {folder}; {benchmark.source}")
    files = sorted(file.name for file in folder.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES)
    return (ImageRow(f"{label}/{file}", label, split) for file in files)


def _faults(rows: Sequence[ImageRow], images: Path, benchmark: Benchmark) -> Iterator[str]:
    """Say what is wrong with the lists, the most important first."""
    splits = {split: {row.label for row in rows if row.split == split} for split in benchmark.classes}
    for split, expected in benchmark.classes.items():
        if len(splits[split]) != expected:
            yield f"it has {expected} {split} classes, but the lists have {len(splits[split])}"
    for one, other in combinations(benchmark.classes, 2):
        if {one, other} == {SUPPORT, QUERY}:
            yield from (f"class {k} has a support or a query, not both" for k in sorted(splits[one] ^ splits[other]))
        else:
            yield from (f"class {k} is in {one} and in {other}" for k in sorted(splits[one] & splits[other]))
    yield from (f"the image {path} is listed twice" for path, n in Counter(row.path for row in rows).items() if n > 1)
    if missing := [row.path for row in rows if not (images / row.path).is_file()]:
        yield f"{len(missing)} of {len(rows)} images are not in {images}, the first is {missing[0]}"
    if benchmark.images not in (None, len(rows)):
        yield f"it has {benchmark.images:,} images, but the lists lead to {len(rows):,}"
    least, most = benchmark.images_a_class
    for label, number in Counter(row.label for row in rows).items():
        if not least <= number <= most:
            yield f"it has {least} to {most:,} images of each class, but {number} of {label}"


IMAGENET_LISTS = MappingProxyType({"train.csv": BASE, "val.csv": VALIDATION, "test.csv": TEST})
BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType(
    {
        "mini-imagenet": Benchmark(
            IMAGENET_LISTS,
            {BASE: 64, VALIDATION: 16, TEST: 20},
            (600, 600),
            "images and lists (split/mini) are those of github.com/mboudiaf/TIM, see *Train an encoder* in the "
            "documentation",
        ),
        "tiered-imagenet": Benchmark(
            IMAGENET_LISTS,
            {BASE: 351, VALIDATION: 97, TEST: 160},
            (0, 779_165),
            "images and lists are made by scripts/make_splits of github.com/mboudiaf/TIM, or the lists are those of "
            "classes in github.com/renmengye/few-shot-ssl-public, see *Train an encoder* in the documentation",
            images=779_165,
            numbered=True,
        ),
        "inat": Benchmark(
            MappingProxyType({"train.csv": BASE, "repr.csv": SUPPORT, "query.csv": QUERY}),
            {BASE: 908, SUPPORT: 227, QUERY: 227},
            (50, 1000),
            "images are made by github.com/daviswer/fewshotlocal and lists by src/inatural_split.py of "
            "github.com/mileyan/simple_shot, see *Train an encoder* in the documentation",
        ),
    }
)
