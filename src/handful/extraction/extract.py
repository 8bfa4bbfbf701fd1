"""extract: items to a bank, shard by shard; a killed run resumes where it stopped and ends with the same bytes.

Items are cut into shards and shards into batches by position alone, and a shard runs on one thread. So the bytes of a
shard are a function of (encoder, contents, batch size), whatever computes it: this process, a second attempt, or a
worker of a cluster. Finished shards wait beside the bank in a folder named by the hash of all that, so they are never
mixed with shards of other weights, another preprocessing or changed data.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from handful.banks import store
from handful.banks.bank import FeatureBank, Provenance
from handful.errors import BankError, ExtractionError, OptionError
from handful.extraction.items import CALLED, Items
from handful.extraction.pipeline import BATCH_SIZE, embedded, refuse_none_read, refuse_other_kind
from handful.machine.folders import LocalFolder
from handful.machine.lock import only_writer
from handful.machine.untrusted import parse_json
from handful.progress import Progress, Reporter, bars
from handful.reading.contents import Contents
from handful.reading.table import Skipped
from handful.shapes import Float
from handful.workers import Shared, Workers, here

if TYPE_CHECKING:
    from handful.extraction.encoder import Encoder

# Part of every key: a change in how shards are computed or stored makes older ones invisible.
SHARD_FORMAT = 4
# Start of a line about a skipped item in the bank's notes; the rest is a JSON object.
SKIPPED = "skipped "


@dataclass(frozen=True)
class Shard:
    """Consecutive items: the number of the shard, and their contents, not yet read."""

    number: int
    source: Contents


@dataclass(frozen=True, eq=False)
class ShardFeatures:
    """The result of a shard.

    Attributes
    ----------
    number : int
        Which shard.
    features : Float[ndarray, "kept dim"]
        Vectors of the items that could be read, in order.
    skipped : tuple of (int, str)
        Position inside the shard, and reason, of those that could not.
    """

    number: int
    features: Float[np.ndarray, "kept dim"]
    skipped: tuple[tuple[int, str], ...]


def shard_features(shard: Shard, encoder: Encoder, batch_size: int, dtype: str, threads: int = 1) -> ShardFeatures:
    """Read, decode and embed a shard, batch by batch; a batch is that many items, without those that cannot be read."""
    # One pass over the shard: each pass opens the archive and reads its whole table of contents again.
    found = list(embedded(shard.source, encoder, batch_size=batch_size, dtype=dtype, threads=threads))
    vectors = [np.empty((0, encoder.dim), dtype), *(batch.vectors for batch in found)]
    skipped = tuple(one for batch in found for one in batch.skipped)
    return ShardFeatures(shard.number, np.concatenate(vectors), skipped)


def extract(
    items: Items,
    encoder: Encoder,
    out: str | os.PathLike[str],
    *,
    batch_size: int = BATCH_SIZE,
    shard_size: int = 256,
    dtype: str = "float16",
    workers: Workers | None = None,
    threads: int = 1,
    provenance: Provenance | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> FeatureBank:
    r"""Run the encoder over all items and save the bank; called again after an interruption, it resumes.

    Parameters
    ----------
    items : Items
        From `list_items`.
    encoder : Encoder
        From `load_encoder`, or made from your own module.
    out : path
        The new bank. If it already is the result of this extraction, it is returned.
    batch_size : int
        Items the encoder sees at once. It changes features by rounding, so it is part of the key.
    shard_size : int
        Items saved at a time, and computed by one worker at a time; also part of the key.
    dtype : "float16" or "float32"
        How features are stored.
    workers : Workers, optional
        Who computes the shards: `here()` of `handful.workers`, the default, or its
        `on_ray(address)`; then every node must see the items under the same path.
    threads : int
        Threads that work on one shard; they change no byte.
    provenance : Provenance, optional
        Data set and licence, for the bank; the rest is filled in.
    on_progress : callable, optional
        Called with a `Progress` in items, at the start and after each shard.

    Returns
    -------
    FeatureBank
        As loaded from `out`. Items that could not be read have no row; its provenance lists them.

    Examples
    --------
    Sentences, and an encoder that counts five letters in each; `load_encoder` has real ones.

    >>> import tempfile
    >>> import torch
    >>> from handful.extraction.encoder import Encoder
    >>> from handful.extraction.items import list_items
    >>> def letters(sentences):
    ...     return torch.tensor([[float(sentence.count(letter)) for letter in "aeiou"] for sentence in sentences])
    >>> encoder = Encoder.of_sentences(torch.nn.Identity(), letters, name="vowels", preprocessing="vowels counted")
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sentences.csv").write_text("text,label\nwhere is my bag,luggage\nwake me at six,alarm\n")
    >>> bank = extract(list_items(folder / "sentences.csv"), encoder, folder / "sentences.bank")
    >>> bank.class_names, bank.features.tolist()
    (('alarm', 'luggage'), [[1.0, 2.0, 1.0, 0.0, 0.0], [2.0, 2.0, 1.0, 0.0, 0.0]])
    """
    _check(items, encoder, batch_size, shard_size, dtype)
    out = Path(os.path.abspath(out))
    key = extraction_key(items, encoder, batch_size=batch_size, shard_size=shard_size, dtype=dtype)
    work = shards_folder(out)
    if not out.exists():
        with only_writer(work, ExtractionError):
            starts = range(0, len(items), shard_size)
            shards = [Shard(number, items.source[start : start + shard_size]) for number, start in enumerate(starts)]
            folder = LocalFolder(work / key)
            with bars("embed", on_progress) as listener:
                reporter = Reporter(listener)
                settings = (encoder, batch_size, dtype, threads)
                skipped = _compute(shards, folder, settings, workers or here(), reporter)
            unread = {starts[k] + position: reason for k in sorted(skipped) for position, reason in skipped[k]}
            refuse_none_read(unread, len(items))
            # One line of JSON each, which escapes line ends and everything that is not ASCII.
            listed = (json.dumps(asdict(Skipped(row, items.names[row], reason))) for row, reason in unread.items())
            made = replace(
                provenance or Provenance(),
                encoder=encoder.recorded,
                preprocessing=encoder.preprocessing,
                versions=encoder.versions,
                notes="\n".join([_key_note(key), *(f"{SKIPPED}{line}" for line in listed)]),
            )
            # Shards are added to the bank one by one, so that it may be larger than memory.
            store.write(
                out,
                (_features(folder, shard) for shard in shards),
                items.labels[[row not in unread for row in range(len(items))]],
                dtype=dtype,
                dim=encoder.dim,
                class_names=items.class_names,
                provenance=made.to_mapping(),
                splits={},
            )
    bank = _finished_before(out, key)
    shutil.rmtree(work, ignore_errors=True)
    return bank


def _compute(
    shards: Sequence[Shard],
    folder: LocalFolder,
    settings: tuple[Encoder, int, str, int],
    workers: Workers,
    reporter: Reporter,
) -> dict[int, Sequence[tuple[int, str]]]:
    """Compute the shards that are missing; return what each of all shards skipped."""
    found = ((shard.number, _load(folder, shard.number)) for shard in shards)
    skipped: dict[int, Sequence[tuple[int, str]]] = {number: one.skipped for number, one in found if one is not None}
    missing = [shard for shard in shards if shard.number not in skipped]
    total, left = (sum(len(shard.source) for shard in some) for some in (shards, missing))
    report = reporter.stage("embed", total, total - left, CALLED[settings[0].reads][1])
    report(0)
    shared = Shared(settings[0])
    tasks = [(shard, shared, *settings[1:]) for shard in missing]
    with closing(workers(shard_features, tasks)) as results:
        for result in results:
            _save(folder, result)
            skipped[result.number] = result.skipped
            report(len(shards[result.number].source))
    return skipped


def _features(folder: LocalFolder, shard: Shard) -> Float[np.ndarray, "kept dim"]:
    found = _load(folder, shard.number)
    if found is None:
        raise ExtractionError(f"shard {shard.number} vanished from {folder.path}; run the extraction again")
    return found.features


def _save(folder: LocalFolder, shard: ShardFeatures) -> None:
    """Write a shard, complete or not at all."""
    with folder.written(_name_of(shard.number)) as place, place.open("wb") as stream:
        np.savez(
            stream, number=np.array(shard.number), features=shard.features, skipped=np.array(json.dumps(shard.skipped))
        )


def _load(folder: LocalFolder, number: int) -> ShardFeatures | None:
    """Return a shard; None if it is missing or damaged, which its checksums tell."""
    try:
        with (folder.path / _name_of(number)).open("rb") as stream, np.load(stream, allow_pickle=False) as there:
            if there["number"] != number:
                return None
            skipped = tuple((int(at), str(why)) for at, why in json.loads(str(there["skipped"])))
            return ShardFeatures(number, there["features"], skipped)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _name_of(number: int) -> str:
    return f"{number:08d}.npz"


def checkpoint_of(encoder: str) -> str | None:
    """Return the path that the name of an encoder has, `checkpoint:PATH`; None for any other name."""
    family, _, path = encoder.partition(":")
    return path if family == "checkpoint" else None


def shards_folder(out: Path) -> Path:
    """Return where the shards of an unfinished bank are, beside it; the folder is removed with the last step."""
    return out.parent / f".{out.name}.shards"


def extraction_key(items: Items, encoder: Encoder, *, batch_size: int, shard_size: int, dtype: str) -> str:
    """SHA-256 of everything the bytes of the shards depend on: weights, preprocessing, data and how they are cut."""
    parts = [SHARD_FORMAT, items.data_hash, encoder.fingerprint, batch_size, shard_size, dtype]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def skipped_items(bank: FeatureBank) -> list[Skipped]:
    """Return the items an extraction could not read, as noted in the bank's provenance."""
    lines = [line.removeprefix(SKIPPED) for line in bank.provenance.notes.split("\n") if line.startswith(SKIPPED)]
    found = []
    for line in lines:
        try:
            entry = parse_json(line)
            found.append(Skipped(int(entry["row"]), str(entry["name"]), str(entry["reason"]), entry["kind"]))
        except (ValueError, TypeError, KeyError):  # a user's note
            continue
    return found


def _check(items: Items, encoder: Encoder, batch_size: int, shard_size: int, dtype: str) -> None:
    refuse_other_kind(items, encoder)
    if batch_size < 1 or shard_size < 1:
        raise OptionError(f"batch_size and shard_size must be at least 1, got {batch_size} and {shard_size}")
    if dtype not in store.FEATURE_TYPES:
        raise OptionError(f"dtype must be {' or '.join(store.FEATURE_TYPES)}, got {dtype!r}")


def _key_note(key: str) -> str:
    return f"extraction key {key}"


def _finished_before(out: Path, key: str) -> FeatureBank:
    try:
        bank = FeatureBank.load(out)
    except BankError as error:
        raise ExtractionError(f"{out} is in the way: {error}; move it, or choose another name") from error
    if _key_note(key) not in bank.provenance.notes.split("\n"):
        raise ExtractionError(
            f"{out} contains a bank made from other items, or with another encoder or other settings; "
            "remove it, or choose another name"
        )
    return bank
