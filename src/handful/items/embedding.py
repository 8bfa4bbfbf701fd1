"""Vectors of contents that have none: batch after batch, written to the disk a few batches at a time.

A content is embedded once, wherever and however often it was met, and an embedding that was interrupted goes on. The
encoder is loaded only if there is something to embed: the catalogue knows by which encoder its vectors were made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from handful.catalogue.file import CatalogueFile
from handful.catalogue.vectors import GIVEN, EncoderId
from handful.errors import OptionError
from handful.extraction.items import CALLED
from handful.extraction.options import USUAL_ENCODERS, Reading, load_network
from handful.extraction.pipeline import BATCH_SIZE, Embedded, embedded
from handful.items.listing import Listing
from handful.machine.threads import available_cores
from handful.machine.untrusted import parse_json
from handful.progress import Listener, Reporter, bars
from handful.reading.contents import Content, Contents, Unreadable, pick
from handful.reading.table import Skipped

if TYPE_CHECKING:
    from handful.extraction.encoder import Encoder

# Batches whose vectors are written together. [batches; work]
BATCHES_WRITTEN = 8
# Name of the cache of contents that cannot be decoded.
UNREADABLE = "unreadable"
CHANGED = "it was changed while it was read; bring it again"
# Digits of the hash of a preprocessing.
VERSION_DIGITS = 16


def encoder_id(network: Encoder) -> EncoderId:
    """Return what names an encoder in a catalogue: its name, what it does to an item first, and its numbers."""
    version = hashlib.sha256(network.preprocessing.encode()).hexdigest()[:VERSION_DIGITS]
    return EncoderId(network.name, version, network.numbers_hash or network.weights_hash)


def recorded_id(encoder: str) -> EncoderId:
    """Return the encoder that banks and models record, "name, weights hash"; that of given vectors for other words.

    Examples
    --------
    >>> recorded_id("minilm, weights 3f2a").name, recorded_id("a network of ours") == GIVEN
    ('minilm', True)
    """
    name, comma, weights = encoder.rpartition(", weights ")
    return EncoderId(name, "", weights) if comma else GIVEN


def encoder_of(catalogue: CatalogueFile) -> EncoderId | None:
    """Return the encoder of a catalogue; None if all its vectors were given."""
    return next((one for one in reversed(catalogue.encoders) if one.name), None)


def _is(encoder: EncoderId, network: Encoder) -> bool:
    """Whether an encoder of a catalogue is this network; banks record a hash that depends on the library."""
    recorded = (encoder.name, encoder.version, encoder.weights) == (network.name, "", network.weights_hash)
    return recorded or encoder == encoder_id(network)


@dataclass(frozen=True)
class Embedding:
    """What a listing needs before its contents have vectors.

    Attributes
    ----------
    encoder : EncoderId
        What its vectors are, or will be, made by.
    network : Encoder or None
        The encoder, loaded, if something has to be embedded.
    missing : sequence of int
        Positions in the listing whose contents have no vector; each content once.
    unreadable : mapping of int to str
        Positions of contents that could not be read before, and why.
    """

    encoder: EncoderId
    network: Encoder | None
    missing: Sequence[int]
    unreadable: Mapping[int, str]


def planned(catalogue: CatalogueFile, listing: Listing, reading: Reading) -> Embedding:
    """Find out what has to be embedded, and load the encoder for it; refuse what does not fit the catalogue."""
    if listing.vectors is not None:
        encoder = recorded_id(listing.encoder)
        _refuse_other_dim(catalogue, listing, listing.vectors.shape[1])
        return Embedding(encoder, None, _missing(catalogue, listing, encoder), {})
    own = encoder_of(catalogue)
    asked = reading.get("encoder")
    if own is not None and asked not in (None, own.name):
        raise OptionError(
            f"vectors of this catalogue are made by {own.name}, and those of {asked} cannot be compared with them; "
            "leave the encoder out"
        )
    bad = unreadable(catalogue)
    reasons = {at: bad[one.hex()] for at, one in enumerate(listing.hashes) if one.hex() in bad}
    missing = [at for at in _missing(catalogue, listing, own) if at not in reasons]
    if not missing:
        return Embedding(own or GIVEN, None, (), reasons)
    assert listing.kind != "vector"
    name = asked or (USUAL_ENCODERS[listing.kind] if own is None else own.name)
    network = load_network(listing.kind, name, reading.get("device", "cpu"))
    if network.reads != listing.kind:
        raise OptionError(
            f"encoder {name} reads items of kind {network.reads}, but {listing.where} has items of kind "
            f"{listing.kind}; choose another encoder, or make a catalogue of its own for them"
        )
    if own is not None and not _is(own, network):
        raise OptionError(
            f"encoder {name} has other weights, or prepares items otherwise, than when vectors of this catalogue were "
            "made; use the version of that time, or make a new catalogue"
        )
    _refuse_other_dim(catalogue, listing, network.dim)
    return Embedding(own or encoder_id(network), network, missing, reasons)


def _missing(catalogue: CatalogueFile, listing: Listing, encoder: EncoderId | None) -> list[int]:
    """Return positions of contents without a vector, each content once."""
    numbers = catalogue.contents_with(list(dict.fromkeys(listing.hashes)))
    there = set[int]() if encoder is None else catalogue.embedded(encoder, list(numbers.values()))
    seen = {key for key, number in numbers.items() if number in there}
    found = []
    for at, key in enumerate(listing.hashes):
        if key not in seen:
            seen.add(key)
            found.append(at)
    return found


def _refuse_other_dim(catalogue: CatalogueFile, listing: Listing, dim: int) -> None:
    """Refuse vectors that cannot be compared with those that are there."""
    for encoder in catalogue.encoders:
        if catalogue.dim(encoder) != dim:
            raise OptionError(
                f"vectors of {listing.where} have {dim:,} numbers, and those of this catalogue "
                f"{catalogue.dim(encoder):,}, so they cannot be compared; make a new catalogue for them"
            )


def embed(
    catalogue: CatalogueFile,
    listing: Listing,
    embedding: Embedding,
    *,
    on_progress: Listener | None = None,
) -> list[Skipped]:
    """Make the vectors that are missing, and keep them; return what could not be read."""
    missing = embedding.missing
    if not missing:
        return []
    keys = [listing.hashes[at] for at in missing]
    numbers = catalogue.contents_with(keys)
    contents = [numbers[key] for key in keys]
    if listing.vectors is not None:
        given = np.nan_to_num(listing.vectors[list(missing)], nan=0.0)
        catalogue.put_vectors(embedding.encoder, contents, given)
        return []
    assert listing.contents is not None
    assert embedding.network is not None
    source = KnownContents(pick(listing.contents, missing), tuple(keys))
    network = embedding.network
    lost = dict[int, str]()
    with bars("embed", on_progress) as listener:
        report = Reporter(listener).stage("embed", len(missing), 0, CALLED[network.reads][1])
        report(0)
        with closing(embedded(source, network, batch_size=BATCH_SIZE, threads=available_cores())) as batches:
            reported = _reported(batches, report)
            first = 0
            while some := list(islice(reported, BATCHES_WRITTEN)):
                n_contents = sum(batch.n_contents for batch in some)
                skipped = {position: reason for batch in some for position, reason in batch.skipped}
                kept = [contents[at] for at in range(first, first + n_contents) if at not in skipped]
                if kept:
                    catalogue.put_vectors(embedding.encoder, kept, np.concatenate([batch.vectors for batch in some]))
                _remember(catalogue, {keys[at]: reason for at, reason in skipped.items()})
                lost |= skipped
                first += n_contents
    return [_skipped(listing, missing[at], reason) for at, reason in sorted(lost.items())]


def _reported(batches: Iterable[Embedded], report: Callable[[int], None]) -> Iterator[Embedded]:
    """Report each batch that is embedded."""
    for batch in batches:
        report(batch.n_contents)
        yield batch


def not_read(listing: Listing, embedding: Embedding) -> list[Skipped]:
    """Return the items whose contents could not be read before."""
    return [_skipped(listing, at, reason) for at, reason in sorted(embedding.unreadable.items())]


def _skipped(listing: Listing, at: int, reason: str) -> Skipped:
    return Skipped(listing.rows[at], listing.arrivals[at].place, reason)


@dataclass(frozen=True)
class KnownContents:
    """Contents whose hashes are known; one that has another by now is none of them."""

    source: Contents
    hashes: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, rows: slice) -> KnownContents:
        return replace(self, source=self.source[rows], hashes=self.hashes[rows])

    def __iter__(self) -> Iterator[Content]:
        for content, key in zip(self.source, self.hashes, strict=True):
            if isinstance(content, bytes) and hashlib.sha256(content).digest() != key:
                yield Unreadable(CHANGED)
            elif isinstance(content, Unreadable):
                yield Unreadable(f"{content.reason}; {CHANGED}")
            else:
                yield content


def unreadable(catalogue: CatalogueFile) -> dict[str, str]:
    """Return contents that cannot be decoded, by their hashes in hexadecimal digits, and why."""
    try:
        found: Any = parse_json(catalogue.cached(UNREADABLE) or b"{}")
        return {str(key): str(reason) for key, reason in found.items()}
    except (ValueError, AttributeError):
        return {}


def _remember(catalogue: CatalogueFile, reasons: Mapping[bytes, str]) -> None:
    """Keep in mind which contents cannot be decoded, so that they are not tried again."""
    # An image that only lacks a package is read once that is there.
    new = {key.hex(): why for key, why in reasons.items() if CHANGED not in why and "install" not in why}
    if new:
        catalogue.cache(UNREADABLE, json.dumps({**unreadable(catalogue), **new}).encode())
