"""classify: a catalogue and a batch, each vectors, images or sentences, to a label for every item of the batch.

What is no vector yet is embedded first, by one backbone for both sides. A bank knows which backbone made it, so a batch
of photographs against a bank of photographs needs no more to be said.

A batch whose dense arrays would be large (`dense_bytes`) is streamed by `handful.large`, any other solved in memory.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from handful import large
from handful.catalogue import Catalogue
from handful.errors import BankError, OptionError
from handful.estimators import Diagnostic
from handful.estimators.diagnostics import Alone, diagnose
from handful.estimators.inference import PRESENT_COUNT, inferred
from handful.features import FeatureBank, read_bank
from handful.features.backbones import load_backbone
from handful.features.extract import Skipped, extract, in_process, skipped_items
from handful.features.extras import import_extra
from handful.features.items import Items, Kind, Source, holds_items, list_items, pick
from handful.features.unlabelled import Vectors, read_unlabelled
from handful.large.crew import Executor
from handful.large.inputs import fitted
from handful.methods import METHODS
from handful.shapes import Float, Int
from handful.whole_file import written_whole

# What embeds items when neither the caller nor a bank says: both come inside packages and download nothing.
USUAL_BACKBONES: dict[Kind, str] = {"image": "efficientnet-lite0", "text": "minilm"}
# What a streamed batch is labelled by; in memory PaddleClassifier has the same.
STREAMED = METHODS["calibrated_paddle"]
# A batch is streamed when `dense_bytes` is larger. Labelling in memory holds several such copies at once.
MOST_DENSE_BYTES = 2**28
# Items of a streamed batch that are looked at for diagnostics.
DIAGNOSED_ITEMS = 1024
# Predictions written at once.
ROWS_AT_ONCE = 65_536
PREDICTION_COLUMNS = ("row", "item", "label", "probability", "runner_up", "runner_up_probability")


@dataclass(frozen=True, eq=False)
class Batch:
    """Items to label.

    Attributes
    ----------
    rows, names : sequence of int, tuple of str
        Position of each item in what was given, from 0, and its name there.
    contents : Source or None
        What the items are, images or sentences, not yet read; None where only vectors were given.
    skipped : tuple of Skipped
        Items that could not be read and have no vector, each with its position in what was given, name and reason.
    """

    rows: Sequence[int]
    names: tuple[str, ...]
    contents: Source | None
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, eq=False)
class Answers:
    """The two likeliest classes of every item, as positions in the class names; runner-up -1 where there is none."""

    labels: Int[np.ndarray, "item"]
    probabilities: Float[np.ndarray, "item"]
    runners_up: Int[np.ndarray, "item"]
    runner_up_probabilities: Float[np.ndarray, "item"]

    @classmethod
    def of(cls, table: Float[np.ndarray, "item class"]) -> Answers:
        """Read them off the probabilities of all classes."""
        places = np.arange(len(table))
        first = table.argmax(-1)
        if table.shape[1] == 1:
            return cls(first, table[:, 0], np.full(len(table), -1), np.zeros(len(table)))
        others = table.copy()
        others[places, first] = -1
        second = others.argmax(-1)
        return cls(first, table[places, first], second, table[places, second])

    @classmethod
    def streamed(cls, found: large.LargeSolution) -> Answers:
        """Read them from the files of a large run."""
        parts = list(found.answers())
        columns = ("label", "probability", "runner_up", "runner_up_probability")
        return cls(*(np.concatenate([part[name] for part in parts]) for name in columns))


@dataclass(frozen=True, eq=False)
class Classified:
    """A labelled batch.

    Attributes
    ----------
    batch : Batch
        The items.
    answers : Answers
        Their labels, with probabilities.
    expected_counts, presence : Float[ndarray, "class"]
        Items that each class is expected to hold, and how sure it is that there is one at least, see `Inference`.
    diagnostics : tuple of Diagnostic
        What looks wrong; of a streamed batch a sample of the items was looked at.
    class_names : tuple of str
        Name of each class.
    n_examples : int
        Rows of the catalogue.
    backbone : str
        What made the features, where that is known.
    streamed : bool
        Whether the batch was too large to be labelled in memory.
    """

    batch: Batch
    answers: Answers
    expected_counts: Float[np.ndarray, "class"]
    presence: Float[np.ndarray, "class"]
    diagnostics: tuple[Diagnostic, ...]
    class_names: tuple[str, ...]
    n_examples: int
    backbone: str
    streamed: bool

    @property
    def present(self) -> list[int]:
        """Positions in `class_names` of the classes present, the largest first."""
        order = np.argsort(-self.expected_counts, kind="stable")
        return order[self.expected_counts[order] >= PRESENT_COUNT].tolist()  # type: ignore[no-any-return]

    def predictions(self, items: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """Return one entry per item: where and what it is, its label and the next likeliest, with probabilities.

        `items` are positions in the batch; by default all.
        """
        chosen = range(len(self.batch.rows)) if items is None else items
        places = np.asarray(chosen, dtype=np.int64)
        second = self.answers.runners_up[places].tolist()
        columns = (
            [self.batch.rows[i] for i in chosen],
            [self.batch.names[i] for i in chosen],
            [self.class_names[k] for k in self.answers.labels[places].tolist()],
            self.answers.probabilities[places].tolist(),
            [None if k < 0 else self.class_names[k] for k in second],
            [
                None if k < 0 else p
                for k, p in zip(second, self.answers.runner_up_probabilities[places].tolist(), strict=True)
            ],
        )
        return dict(zip(PREDICTION_COLUMNS, columns, strict=True))


def dense_bytes(n_items: int, n_classes: int, n_examples: int, dim: int) -> int:
    """`4 (|Q| K + (|Q| + |S|) d)`: one copy of assignments and features in single precision."""
    return 4 * (n_items * n_classes + (n_items + n_examples) * dim)


def classify(
    catalogue: str | os.PathLike[str],
    batch: str | os.PathLike[str],
    *,
    backbone: str | None = None,
    features: str | None = None,
    labels: str | None = None,
    device: str = "cpu",
    folder: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    on_progress: Callable[[large.Progress], None] | None = None,
) -> Classified:
    """Label every item of the batch, jointly, by the classes of the catalogue.

    Batches with `dense_bytes` above `MOST_DENSE_BYTES` are streamed; the last three arguments are for these alone.

    Parameters
    ----------
    catalogue : path
        Labelled examples: whatever `read_bank` reads, or images and sentences with labels as `list_items` lists them.
    batch : path
        Items to label: whatever `read_unlabelled` reads, or images and sentences; labels are not looked at.
    backbone : str, optional
        As `load_backbone` names it. By default the one that made the features of the other side; where both sides are
        items, `efficientnet-lite0` for images and `minilm` for sentences.
    features, labels : str, optional
        Names of the columns of vectors and labels, where they cannot be told by themselves.
    device : str
        Where the backbone runs.
    folder : path, optional
        Where a streamed batch keeps shortlists and checkpoint. Called again with the same, an interrupted one goes on.
        By default a temporary one.
    executor : callable, optional
        Who streams, see `handful.large.solve`; by default this process.
    on_progress : callable, optional
        Called with a `handful.large.Progress` after every part of a pass.
    """
    catalogue, batch = Path(catalogue), Path(batch)
    items: dict[str, Items] = {}
    bank = vectors = None
    if _are_items(catalogue):
        items["catalogue"] = list_items(catalogue)
    else:
        bank = read_bank(catalogue, features=features, labels=labels)
    if _are_items(batch):
        items["batch"] = list_items(batch, labelled=False)
    else:
        vectors = read_unlabelled(batch, features=features)
    recorded = (bank.provenance.backbone if bank else "", vectors.backbone if vectors else "")
    network = _backbone(backbone, {one.kind for one in items.values()}, recorded, len(items) == 2, device)

    with tempfile.TemporaryDirectory(prefix="handful-") as work:
        embedded = {}
        for side, listed in items.items():
            workers = in_process(torch.get_num_threads())
            embedded[side] = extract(listed, network, Path(work) / side, dtype="float32", executor=workers)
        examples = embedded["catalogue"] if bank is None else bank
        examples = examples.classes(np.flatnonzero(examples.class_sizes)) if 0 in examples.class_sizes else examples
        _refuse_equal_names(examples.class_names)
        if vectors is None:
            ready, points = _of_items(items["batch"], embedded["batch"]), embedded["batch"].features
        else:
            ready, points = _of_vectors(vectors), vectors.features
        if points.shape[1] != examples.dim:
            raise BankError(
                f"vectors of the catalogue have {examples.dim} numbers, those of the batch {points.shape[1]}; "
                "both must come from the same backbone"
            )
        about = (examples.class_names, examples.n_rows, network.name if network else next(filter(None, recorded), ""))
        catalogued = fitted(examples, STREAMED.transform)
        if dense_bytes(len(points), examples.n_classes, examples.n_rows, examples.dim) <= MOST_DENSE_BYTES:
            found = inferred(
                catalogued,
                torch.from_numpy(np.array(points, np.float32)),
                STREAMED.make_options(),
                np.array(examples.class_names),
            )
            return Classified(
                ready,
                Answers.of(found.probabilities.numpy()),
                found.expected_counts,
                found.presence,
                found.diagnostics,
                *about,
                streamed=False,
            )
        place = Path(work) / "run" if folder is None else Path(folder)
        run = large.solve(catalogued, points, place, executor=executor, on_progress=on_progress)
        answers = Answers.streamed(run)
        diagnostics = _diagnosed(catalogued, examples.class_names, points, answers, run)
        counts, presence = run.expected_counts.numpy(), run.presence.numpy()
        return Classified(ready, answers, counts, presence, diagnostics, *about, streamed=True)


def _diagnosed(
    catalogue: Catalogue,
    class_names: tuple[str, ...],
    points: Float[np.ndarray, "item dim"],
    answers: Answers,
    run: large.LargeSolution,
) -> tuple[Diagnostic, ...]:
    """Look at items spread over the batch."""
    items = _spread(len(points), DIAGNOSED_ITEMS)
    alone = Alone.of(catalogue.against(torch.from_numpy(np.array(points[items], np.float32)).unsqueeze(0)))
    labels = torch.from_numpy(answers.labels[items].astype(np.int64))
    square, n_iter, converged = run.scale**2, run.n_iter, run.converged
    return diagnose(labels, class_names, alone, catalogue.usual, square, n_iter=n_iter, converged=converged)


def _spread(n: int, most: int) -> Int[np.ndarray, "place"]:
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def check_ending(path: Path) -> None:
    """Refuse a place for predictions that `write_predictions` would refuse, before any work is done."""
    if path.suffix.lower() not in (".parquet", ".csv"):
        raise OptionError(f"predictions are written as .parquet or .csv, got {path}; change the ending")


def write_predictions(classified: Classified, path: str | os.PathLike[str]) -> None:
    """Write the predictions as Parquet or CSV, by the ending of the path; the file appears whole or not at all."""
    final = Path(path)
    check_ending(final)
    final.parent.mkdir(parents=True, exist_ok=True)
    n_items, kind = len(classified.batch.rows), _csv_file if final.suffix.lower() == ".csv" else _parquet_file
    with written_whole(final) as place, kind(place) as write:
        for start in range(0, max(1, n_items), ROWS_AT_ONCE):
            write(classified.predictions(range(start, min(start + ROWS_AT_ONCE, n_items))))


@contextmanager
def _csv_file(path: Path) -> Iterator[Callable[[dict[str, list[Any]]], None]]:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(PREDICTION_COLUMNS)
        yield lambda columns: writer.writerows(zip(*columns.values(), strict=True))


@contextmanager
def _parquet_file(path: Path) -> Iterator[Callable[[dict[str, list[Any]]], None]]:
    pa, parquet = (import_extra(module, "parquet") for module in ("pyarrow", "pyarrow.parquet"))
    kinds = (pa.int64(), pa.string(), pa.string(), pa.float64(), pa.string(), pa.float64())
    schema = pa.schema(list(zip(PREDICTION_COLUMNS, kinds, strict=True)))
    with parquet.ParquetWriter(path, schema) as writer:
        yield lambda columns: writer.write_table(pa.table(columns, schema=schema))


def _are_items(path: Path) -> bool:
    """Tell images and sentences from features; a folder that holds features is read as such, whatever lies beside."""
    holds_features = path.is_dir() and (any(path.glob("*.npy")) or any(path.glob("*.parquet")))
    return not holds_features and holds_items(path)


def _backbone(asked: str | None, kinds: set[Kind], recorded: tuple[str, str], both: bool, device: str) -> Any:
    """Return what embeds the items, or None where there are none; refuse two sides that do not belong together."""
    if all(recorded) and recorded[0] != recorded[1]:
        raise BankError(
            f"the catalogue was made by {recorded[0]}, the batch by {recorded[1]}; make both with the same backbone"
        )
    if not kinds:
        if asked is not None:
            raise OptionError("a backbone is for images and sentences, but both sides are features; leave it out")
        return None
    if len(kinds) > 1:
        raise OptionError("catalogue and batch must both be images or both be sentences")
    made_by, _, weights = next(filter(None, recorded), "").partition(", weights ")
    if asked is None and not made_by and not both:
        raise OptionError("the features do not say which backbone made them; name it, so that the items get the same")
    network = load_backbone(asked or made_by or USUAL_BACKBONES[next(iter(kinds))], device=device)
    if weights and weights != network.weights_hash:
        raise BankError(
            f"backbone {network.name} has weights {network.weights_hash[:12]}…, but the features at hand were made by "
            f"{made_by} with weights {weights[:12]}…; use that one, or make the features anew"
        )
    return network


def _refuse_equal_names(names: Sequence[str]) -> None:
    """Refuse a catalogue whose answer would not say which class is meant."""
    if len(set(names)) != len(names):
        repeated = next(name for k, name in enumerate(names) if name in names[:k])
        raise BankError(
            f"the catalogue has more than one class named {repeated!r}, and labels are given by name; rename one"
        )


def _of_vectors(vectors: Vectors) -> Batch:
    return Batch(range(len(vectors.features)), vectors.names, vectors.texts, ())


def _of_items(items: Items, bank: FeatureBank) -> Batch:
    """Leave out the items that could not be read."""
    skipped = tuple(skipped_items(bank))
    lost = {item.row for item in skipped}
    rows = [row for row in range(len(items)) if row not in lost]
    if len(rows) != bank.n_rows:
        raise BankError(f"{bank.n_rows} vectors for {len(rows)} of {len(items)} items; extract their features again")
    return Batch(rows, tuple(items.names[row] for row in rows), pick(items.source, rows), skipped)
