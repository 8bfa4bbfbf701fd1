"""Which encoder? Labelled examples, embedded by several encoders or with several columns of vectors, to a comparison.

The same rows count for all encoders: one that an encoder cannot read is left out for all. So are examples that have two
labels. Examples of equal content, or nearly equal vectors, and those of one sequence, are left out together.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.special import stdtrit

from handful.arguments import column_names, counted, some_of, whole
from handful.classification.batch import Batch, extracted
from handful.classification.measured import filled
from handful.errors import BankError, LabelError, OptionError
from handful.extraction.extract import Shard, shard_features, skipped_items
from handful.extraction.items import Items, list_items
from handful.extraction.options import Reading, asked_of, load_network
from handful.fitted.comparison import LEVEL, Comparison, Interval, compared
from handful.fitted.labels import distinct
from handful.fitted.left_out_batches import LeftOutBatches, drawn_rows, together
from handful.fitted.rows import unit
from handful.model.links import find_copies
from handful.progress import Progress, Reporter, bars
from handful.reading.labels import label_column, labelled, missing_labels
from handful.reading.read import kind_of, read_input, refuse_useless
from handful.reading.table import Skipped, Table, warn_of_skipped
from handful.shapes import Float, Int

Listener = Callable[[Progress], None]
# Blocks of items whose reading and embedding is timed, one by one, and items of a block.
TIMED_BLOCKS = 6
TIMED_ITEMS = 8


@dataclass(frozen=True, eq=False)
class _Examples:
    """Vectors of some rows of what was read, by encoder.

    `rows` are positions in what was read; `content` has equal numbers for items of equal content.
    """

    rows: Int[np.ndarray, "row"]
    labels: Sequence[str]
    content: Int[np.ndarray, "row"]
    vectors: Mapping[str, Float[np.ndarray, "row dim"]]
    seconds: Mapping[str, Interval]

    def of_rows(self, rows: Int[np.ndarray, "some"]) -> _Examples:
        """Keep the items at these positions of what was read; all of them are there."""
        place = {row: at for at, row in enumerate(self.rows.tolist())}
        chosen = np.array([place[row] for row in rows.tolist()], np.int64)
        return replace(
            self,
            rows=rows,
            labels=[self.labels[at] for at in chosen.tolist()],
            content=self.content[chosen],
            vectors={name: own[chosen] for name, own in self.vectors.items()},
        )


def compare_encoders(
    examples: Any,
    *,
    encoder: str | Sequence[str] = (),
    features: str | Sequence[str] = (),
    sequence: str | Sequence[str] = (),
    seed: int = 0,
    on_progress: Listener | None = None,
    **reading: Any,
) -> Comparison:
    """Compare encoders by what they do with left-out examples of a catalogue.

    Every example that can be left out is left out once. Those left out are labelled in batches of few classes by
    catalogues of the others. At most 150 classes, and at most 20 examples of each, are drawn.

    Parameters
    ----------
    examples : path, frame or (X, y)
        Labelled examples: anything that `handful.read` reads, with labels.
    encoder : str or sequence of str
        Encoders for images or sentences, as in `load_encoder`.
    features : str or sequence of str
        Columns of vectors, or prefixes of their columns.
    sequence : str or sequence of str
        Columns that mark examples that were made together, such as frames of a burst: they are left out together.
    seed : int
        What is left out together, and with which other classes, is drawn by it.
    on_progress : callable, optional
        Called with a `handful.progress.Progress`.
    **reading : object
        How the examples are read, see `Reading`.

    Returns
    -------
    Comparison
        Print it; `encoders` has what was found about each, `table()` all of it.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["ant", "bee", "cat", "dog", "eel", "fox", "gnu"], 6)
    >>> centres = rng.normal(size=(7, 16)).repeat(6, 0)
    >>> frame = pd.DataFrame({"label": labels})
    >>> frame["sharp"] = list(centres + 0.3 * rng.normal(size=(42, 16)))
    >>> frame["blurred"] = list(centres + 3 * rng.normal(size=(42, 16)))
    >>> found = compare_encoders(frame, features=["sharp", "blurred"])
    >>> {one.name: one.verdict for one in found.encoders}
    {'sharp': 'best', 'blurred': 'worse'}
    """
    encoders = column_names("encoder", encoder)
    columns = column_names("features", features)
    sequences = column_names("sequence", sequence)
    seed = whole("seed", seed, least=0, error=OptionError)
    names = [*encoders, *columns]
    if not names:
        raise OptionError(
            "name the encoders to compare: encoders (--encoder efficientnet-lite0 --encoder efficientnet-lite1) or "
            "columns of vectors (--features a --features b)"
        )
    if twice := [name for name in names if names.count(name) > 1]:
        raise OptionError(f"{twice[0]!r} is named twice; name each encoder once")
    about = cast(Reading, reading)
    with bars("compare", on_progress) as listener:
        rng = np.random.default_rng(seed)
        found = [_of_columns(examples, name, about) for name in columns]
        encoded = _Encoded.of(examples, encoders, about) if encoders else None
        sequence_of = _sequences(examples, sequences, encoders, columns, about)
        rows, notes = _drawn(found, encoded, rng)
        if encoded is not None:
            found.append(encoded.embedded(rows, listener))
            rows = found[-1].rows
        aligned = [one.of_rows(rows) for one in found]
        return _compared(aligned, names, sequence_of, notes, seed, Reporter(listener))


def _of_columns(examples: Any, name: str, reading: Reading) -> _Examples:
    """Read one column of vectors."""
    reading = {**reading, "features": name}
    table = _read_examples(examples, reading)
    if table.vectors is not None and not kind_of(examples).columns:
        raise OptionError(f"{table.where} has one vector per example, and no columns; give a table with {name!r}")
    labels = reading.get("labels")
    bank = labelled(table, labels)
    if labels is not None or table.bank is None:
        column = label_column(table, labels)
        classes = table.values(column) if column else table.classes
        table = table.without(missing_labels(classes, table), "without label")
    rows = np.asarray(Batch.of(table, id_column=reading.get("id_column")).rows)
    names = [bank.class_names[code] for code in bank.labels.tolist()]
    return _Examples(rows, names, np.arange(len(rows)), {name: np.asarray(bank.features, np.float32)}, {})


def _read_examples(path: Any, reading: Reading) -> Table:
    """Read images, sentences or vectors of a model."""
    asked = asked_of(reading)
    refuse_useless([path], asked)
    table = read_input(path, asked)
    if table.measured:
        raise BankError(
            f"{table.where} has measurements in the columns {some_of(table.measured)}, and encoders make vectors; name "
            "columns of vectors with `features` (--features)"
        )
    return filled(table) if asked.gaps else table


@dataclass(frozen=True, eq=False)
class _Encoded:
    """Images or sentences, and the encoders that embed them; all are loaded before the first is used."""

    where: str
    items: Items
    networks: Mapping[str, Any]
    device: str

    @classmethod
    def of(cls, examples: Any, names: Sequence[str], reading: Reading) -> _Encoded:
        """Read the items and load the encoders."""
        table = _read_examples(examples, reading)
        if table.vectors is not None:
            raise OptionError(
                f"an encoder is for images and sentences, but {table.where} has vectors; name the column of texts with "
                "`text` (--text), or columns of vectors with `features` (--features)"
            )
        items = list_items(table, labels=reading.get("labels"), id_column=reading.get("id_column"))
        device = reading.get("device", "cpu")
        networks = {name: load_network(items.kind, name, device) for name in names}
        return cls(table.where, items, networks, device)

    def embedded(self, rows: Int[np.ndarray, "row"], listener: Listener) -> _Examples:
        """Embed the items at these positions of what was read, without those that cannot be read."""
        place = {row: at for at, row in enumerate(self.items.rows)}
        items = self.items.take([place[row] for row in rows.tolist()])
        vectors = dict[str, Float[np.ndarray, "item dim"]]()
        seconds = dict[str, Interval]()
        lost = dict[int, Skipped]()
        with tempfile.TemporaryDirectory(prefix="handful-") as work:
            for number, (name, network) in enumerate(self.networks.items()):
                bank = extracted(items, network, Path(work) / str(number), _embedding(name, listener))
                unread = {one.row: one for one in skipped_items(bank)}
                lost |= unread
                there = [row for row in range(len(items)) if row not in unread]
                vectors[name] = np.zeros((len(items), bank.dim), np.float32)
                vectors[name][there] = bank.features
                seconds[name] = seconds_per_item(items.take(there), network, self.device)
        warn_of_skipped(self.where, list(lost.values()), len(items))
        _, content = np.unique(items.hashes, return_inverse=True)
        every = _Examples(np.asarray(items.rows), _labels_of(items), content, vectors, seconds)
        return every.of_rows(every.rows[[row not in lost for row in range(len(items))]])


def _labels_of(items: Items) -> list[str]:
    return [items.class_names[code] for code in items.labels.tolist()]


def _drawn(
    found: Sequence[_Examples], encoded: _Encoded | None, rng: np.random.Generator
) -> tuple[Int[np.ndarray, "row"], list[str]]:
    """Return the rows that take part, positions in what was read, and what to say about the others.

    They are drawn before anything is embedded, which takes longest.
    """
    sources = [(one.rows, one.labels) for one in found]
    if encoded is not None:
        sources.append((np.asarray(encoded.items.rows), _labels_of(encoded.items)))
    label_of = dict(zip(sources[-1][0].tolist(), sources[-1][1], strict=True))
    common = sources[0][0]
    for rows, _ in sources[1:]:
        common = np.intersect1d(common, rows)
    if not len(common):
        raise LabelError("no example has a vector of every encoder; compare fewer encoders, or look at their columns")
    notes = list[str]()
    n_lost = len(set().union(*(rows.tolist() for rows, _ in sources))) - len(common)
    if n_lost:
        notes.append(f"{counted(n_lost, 'example')} left out: an encoder has no vector of it.")
    classes, codes = distinct(np.array([label_of[row] for row in common.tolist()]))
    chosen = drawn_rows(codes, rng)
    if len(chosen) < len(common):
        n_classes = len(np.unique(codes[chosen]))
        notes.append(
            f"Drawn at random: {counted(n_classes, 'class')} of {len(classes):,} and "
            f"{counted(len(chosen), 'example')} of {len(common):,}. With more classes, fewer labels are right."
        )
    return common[chosen], notes


def seconds_per_item(items: Items, network: Any, device: str) -> Interval:
    """Time the reading and embedding of a few blocks of items, after one that is not counted.

    On a processor it is the time of the one core that is used, whatever else the machine does.
    """
    clock = time.thread_time if device == "cpu" else time.perf_counter
    n_items = len(items)
    step = max(1, (n_items - TIMED_ITEMS) // TIMED_BLOCKS)
    starts = [min(number * step, max(0, n_items - TIMED_ITEMS)) for number in range(TIMED_BLOCKS + 1)]
    times = []
    for number, start in enumerate(starts):
        source = items.source[start : start + TIMED_ITEMS]
        began = clock()
        shard_features(Shard(number, source), network, TIMED_ITEMS, "float32")
        times.append((clock() - began) / len(source))
    counted_times = np.array(times[1:])
    mean = float(counted_times.mean())
    error = float(counted_times.std(ddof=1)) / np.sqrt(TIMED_BLOCKS)
    half = float(stdtrit(TIMED_BLOCKS - 1, 0.5 + LEVEL / 2)) * error
    return Interval(mean, max(0.0, mean - half), mean + half)


def _sequences(
    examples: Any, sequences: Sequence[str], encoders: Sequence[str], columns: Sequence[str], reading: Reading
) -> Mapping[int, tuple[Any, ...]]:
    """Return the sequence of each row of what was read; empty if none is named."""
    if not sequences:
        return {}
    first = reading if encoders else cast(Reading, {**reading, "features": columns[0]})
    table: Table = _read_examples(examples, first)
    batch = Batch.of(table, columns=sequences, id_column=reading.get("id_column"))
    values = batch.columns.values()
    keys = zip(*(values[name] for name in sequences), strict=True)
    return dict(zip(batch.rows, keys, strict=True))


def _compared(
    found: Sequence[_Examples],
    names: Sequence[str],
    sequence_of: Mapping[int, tuple[Any, ...]],
    notes: list[str],
    seed: int,
    reporter: Reporter,
) -> Comparison:
    """Compare encoders on the same rows."""
    vectors = {name: own for one in found for name, own in one.vectors.items()}
    seconds = {name: own for one in found for name, own in one.seconds.items()}
    content = found[-1].content
    points = [unit(vectors[name]) for name in names]
    classes, codes = distinct(np.array(found[-1].labels))
    twice = _with_two_labels(points, content, codes)
    if twice.any():
        notes.append(f"{counted(int(twice.sum()), 'example')} left out, because an equal one has another label.")
    kept = np.flatnonzero(~twice)
    if not len(kept):
        raise LabelError("every example occurs with two labels; correct them")
    classes, codes = distinct(classes[codes[kept]])
    of_sequence = [sequence_of.get(row, ()) for row in found[-1].rows[kept].tolist()]
    group_of = _groups([own[kept] for own in points], codes, content[kept], of_sequence)
    notes += _about_classes(classes, codes, group_of)
    drawn = LeftOutBatches.draw(codes, group_of, np.random.default_rng(seed))
    chosen = {name: vectors[name][kept] for name in names}
    return compared(chosen, drawn, seconds=seconds, notes=notes, seed=seed, reporter=reporter)


def _with_two_labels(
    points: Sequence[Float[np.ndarray, "row dim"]], content: Int[np.ndarray, "row"], codes: Int[np.ndarray, "row"]
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the rows of which an equal one has another label: of equal content, or equal for every encoder."""
    copies = np.stack([find_copies(own)[0] for own in points])
    _, equal = np.unique(copies, axis=1, return_inverse=True)
    found = np.zeros(len(codes), bool)
    for numbers in (content, equal):
        pairs = np.unique(np.stack([numbers, codes]), axis=1)
        several = pairs[0][:-1][pairs[0][1:] == pairs[0][:-1]]
        found |= np.isin(numbers, several)
    return found


def _groups(
    points: Sequence[Float[np.ndarray, "row dim"]],
    codes: Int[np.ndarray, "row"],
    content: Int[np.ndarray, "row"],
    of_sequence: Sequence[tuple[Any, ...]],
) -> Int[np.ndarray, "row"]:
    """Return the group of each row; a sequence that has two classes is one group in each of them."""
    known = [content]
    if any(of_sequence):
        numbers = dict[tuple[Any, ...], int]()
        keys = list(zip(of_sequence, codes.tolist(), strict=True))
        known.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys]))
    return together(points, codes, known)


def _about_classes(classes: Any, codes: Int[np.ndarray, "row"], group_of: Int[np.ndarray, "row"]) -> list[str]:
    """Say which classes cannot be left out, and how many examples have copies; refuse what cannot be compared."""
    groups, first = np.unique(group_of, return_index=True)
    sizes = np.bincount(codes[first], minlength=len(classes))
    single = np.flatnonzero(sizes < 2)
    if len(classes) - len(single) < 2:
        raise LabelError(
            f"{counted(len(classes) - len(single), 'class')} of {len(classes):,} has two different examples, and one "
            "of them has to be left out; give at least two such classes"
        )
    said = []
    n_copies = len(codes) - len(groups)
    if n_copies:
        said.append(f"{counted(n_copies, 'example')} nearly equal to another or of its sequence: left out with it.")
    if len(single):
        named = some_of(classes[single].tolist())
        said.append(f"{counted(len(single), 'class')} with one example, which is never left out: {named}.")
    return said


def _embedding(name: str, listener: Listener) -> Listener:
    """Return what names the encoder in the reports of an extraction."""
    return lambda progress: listener(replace(progress, stage=f"embed with {name}"))
