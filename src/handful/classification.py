"""classify: a catalogue and a batch, each vectors, images or sentences, to a label for every item of the batch.

What is no vector yet is embedded first, by one backbone for both sides. A bank knows which backbone made it, so a batch
of photographs against a bank of photographs needs no more to be said.
"""

from __future__ import annotations

import csv
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from handful.errors import BankError, HandfulWarning, OptionError
from handful.estimators import Inference, PaddleClassifier
from handful.features import FeatureBank, read_bank
from handful.features.backbones import load_backbone
from handful.features.extract import extract, in_process, skipped_items
from handful.features.extras import import_extra
from handful.features.items import Items, Kind, Source, holds_items, list_items, pick
from handful.features.unlabelled import Vectors, read_unlabelled
from handful.shapes import Float
from handful.whole_file import written_whole

# What embeds items when neither the caller nor a bank says: both come inside packages and download nothing.
USUAL_BACKBONES: dict[Kind, str] = {"image": "efficientnet-lite0", "text": "minilm"}
PREDICTION_COLUMNS = ("row", "item", "label", "probability", "runner_up", "runner_up_probability")


@dataclass(frozen=True, eq=False)
class Batch:
    """Items to label, as vectors.

    Attributes
    ----------
    features : Float[ndarray, "item dim"]
        One vector an item.
    rows, names : tuple of int, tuple of str
        Position of each item in what was given, from 0, and its name there.
    contents : Source or None
        What the items are, images or sentences, not yet read; None where only vectors were given.
    skipped : tuple of str
        Items that could not be read and have no vector, `name: reason` each.
    """

    features: Float[np.ndarray, "item dim"]
    rows: tuple[int, ...]
    names: tuple[str, ...]
    contents: Source | None
    skipped: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Classified:
    """A labelled batch.

    Attributes
    ----------
    batch : Batch
        The items.
    inference : Inference
        What they say, jointly; arrays.
    class_names : tuple of str
        Name of each column of `inference.probabilities`.
    n_examples : int
        Rows of the catalogue.
    backbone : str
        What made the features, where that is known.
    """

    batch: Batch
    inference: Inference
    class_names: tuple[str, ...]
    n_examples: int
    backbone: str

    @property
    def present(self) -> list[int]:
        """Positions in `class_names` of the classes present, the largest first."""
        order = np.argsort(-self.inference.expected_counts, kind="stable")
        return order[: len(self.inference.present_classes)].tolist()  # type: ignore[no-any-return]

    def predictions(self) -> dict[str, list[Any]]:
        """Return one entry an item: where and what it is, its label and the next likeliest, with probabilities."""
        table, places = self.inference.probabilities, np.arange(len(self.batch.rows))
        first = table.argmax(-1)
        others = table.copy()
        others[places, first] = -1
        second = others.argmax(-1)
        alone = len(self.class_names) == 1
        columns = (
            list(self.batch.rows),
            list(self.batch.names),
            [self.class_names[k] for k in first],
            table[places, first].tolist(),
            [None if alone else self.class_names[k] for k in second],
            [None if alone else p for p in table[places, second].tolist()],
        )
        return dict(zip(PREDICTION_COLUMNS, columns, strict=True))


def classify(
    catalogue: str | os.PathLike[str],
    batch: str | os.PathLike[str],
    *,
    backbone: str | None = None,
    features: str | None = None,
    labels: str | None = None,
    device: str = "cpu",
) -> Classified:
    """Label every item of the batch, jointly, by the classes of the catalogue.

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
            executor = in_process(torch.get_num_threads())
            embedded[side] = extract(listed, network, Path(work) / side, dtype="float32", executor=executor)
        examples = embedded["catalogue"] if bank is None else bank
        known = np.array(examples.features, np.float32)
        ready = _of_items(items["batch"], embedded["batch"]) if vectors is None else _of_vectors(vectors)
    if ready.features.shape[1] != known.shape[1]:
        raise BankError(
            f"vectors of the catalogue have {known.shape[1]} numbers, those of the batch {ready.features.shape[1]}; "
            "both must come from the same backbone"
        )
    classifier = PaddleClassifier().fit(known, examples.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HandfulWarning)  # they are in the diagnostics
        inference = classifier.infer(ready.features)
    names = tuple(examples.class_names[k] for k in classifier.classes_)
    return Classified(
        ready, inference, names, len(known), network.name if network else next(filter(None, recorded), "")
    )


def check_ending(path: Path) -> None:
    """Refuse a place for predictions that `write_predictions` would refuse, before any work is done."""
    if path.suffix.lower() not in (".parquet", ".csv"):
        raise OptionError(f"predictions are written as .parquet or .csv, got {path}; change the ending")


def write_predictions(classified: Classified, path: str | os.PathLike[str]) -> None:
    """Write the predictions as Parquet or CSV, by the ending of the path; the file appears whole or not at all."""
    final = Path(path)
    check_ending(final)
    columns = classified.predictions()
    final.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(final) as place:
        if final.suffix.lower() == ".csv":
            with place.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream)
                writer.writerow(PREDICTION_COLUMNS)
                writer.writerows(zip(*columns.values(), strict=True))
        else:
            pa, parquet = (import_extra(module, "parquet") for module in ("pyarrow", "pyarrow.parquet"))
            kinds = (pa.int64(), pa.string(), pa.string(), pa.float64(), pa.string(), pa.float64())
            schema = pa.schema(list(zip(PREDICTION_COLUMNS, kinds, strict=True)))
            parquet.write_table(pa.table(columns, schema=schema), place)


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


def _of_vectors(vectors: Vectors) -> Batch:
    features = np.array(vectors.features, np.float32)
    return Batch(features, tuple(range(len(features))), vectors.names, vectors.texts, ())


def _of_items(items: Items, bank: FeatureBank) -> Batch:
    """Join the items that could be read with their vectors."""
    lost = skipped_items(bank)
    rows = [row for row, name in enumerate(items.names) if not any(line.startswith(f"{name}: ") for line in lost)]
    names = tuple(items.names[row] for row in rows)
    return Batch(np.array(bank.features, np.float32), tuple(rows), names, pick(items.source, rows), tuple(lost))
