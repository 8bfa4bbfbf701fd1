"""Contents to vectors, batch by batch: one thread decodes images while another runs the network; the order is kept."""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from handful.errors import ExtractionError
from handful.extraction.decode import decode_image
from handful.machine.threads import available_cores, one_thread, only_one_thread
from handful.reading.contents import Content, Unreadable
from handful.shapes import Float

if TYPE_CHECKING:
    from handful.extraction.encoder import Encoder
    from handful.extraction.items import Items

# Items that the encoder sees at once, by default. [items; work]
BATCH_SIZE = 8
# Batches that are read ahead for each thread: enough that none waits for a large photograph of another. [batches; work]
BATCHES_PER_THREAD = 2


@dataclass(frozen=True, eq=False)
class Embedded:
    """What came of a batch.

    Attributes
    ----------
    n_contents : int
        How many contents the batch had.
    vectors : Float[ndarray, "kept dim"]
        Vectors of those that could be read, in order.
    skipped : tuple of (int, str)
        Position among all contents, and reason, of those that could not.
    """

    n_contents: int
    vectors: Float[np.ndarray, "kept dim"]
    skipped: tuple[tuple[int, str], ...]


def embedded(
    contents: Iterable[Content], encoder: Encoder, *, batch_size: int, dtype: str = "float32", threads: int = 1
) -> Generator[Embedded, None, None]:
    """Decode and embed contents; yield a batch after the other, in order.

    A batch is decoded and embedded by one thread, on one core, so the vectors do not depend on how many threads there
    are. One image of each thread is decoded at a time: only what the network takes of it is kept.

    Parameters
    ----------
    contents : iterable of bytes, str or Unreadable
        Files of images, or sentences. They are read here, in one pass: an archive would be opened again for each part.
    encoder : Encoder
        What embeds them. Each thread has a copy, because a tokeniser, or a module that keeps something of its last
        call, cannot serve two threads at once.
    batch_size : int
        Contents of a batch, with those that cannot be read.
    dtype : "float16" or "float32"
        Type of the vectors.
    threads : int
        Batches that are worked on at the same time.

    Examples
    --------
    >>> import torch
    >>> from handful.extraction.encoder import Encoder
    >>> lengths = lambda texts: torch.tensor([[float(len(text))] for text in texts])
    >>> encoder = Encoder.of_sentences(torch.nn.Identity(), lengths, name="lengths")
    >>> [found.vectors.tolist() for found in embedded(["fox", "a fox", "owls"], encoder, batch_size=2, threads=2)]
    [[[3.0], [5.0]], [[4.0]]]
    """
    batches = _batches(contents, batch_size)
    with one_thread():
        if threads == 1:
            for start, batch in batches:
                yield _embedded(encoder, start, batch, dtype)
        else:
            yield from _in_threads(batches, encoder, dtype, threads)


def embed_items(
    items: Items, encoder: Encoder, report: Callable[[int], None]
) -> tuple[Float[np.ndarray, "kept dim"], dict[int, str]]:
    """Return vectors of the items that can be read, and why others cannot, by their positions; on all cores.

    `report` is called with the number of items after each batch.
    """
    refuse_other_kind(items, encoder)
    report(0)
    vectors = [np.empty((0, encoder.dim), np.float32)]
    lost = dict[int, str]()
    with closing(embedded(items.source, encoder, batch_size=BATCH_SIZE, threads=available_cores())) as batches:
        for batch in batches:
            vectors.append(batch.vectors)
            lost |= dict(batch.skipped)
            report(batch.n_contents)
    refuse_none_read(lost, len(items))
    return np.concatenate(vectors), lost


def refuse_other_kind(items: Items, encoder: Encoder) -> None:
    """Refuse items that an encoder does not read."""
    if items.kind != encoder.reads:
        raise ExtractionError(
            f"encoder {encoder.name} reads items of kind {encoder.reads}, but these are of kind {items.kind}; "
            "choose another encoder"
        )


def refuse_none_read(lost: Mapping[int, str], n_items: int) -> None:
    """Refuse items of which none could be read."""
    if len(lost) == n_items:
        raise ExtractionError(f"none of the {n_items} items could be read; the first: {lost[0]}")


def _batches(contents: Iterable[Content], batch_size: int) -> Iterator[tuple[int, list[Content]]]:
    """Yield the position of the first content of each batch, and its contents."""
    left = iter(contents)
    start = 0
    while batch := list(islice(left, batch_size)):
        yield start, batch
        start += len(batch)


def _in_threads(
    batches: Iterable[tuple[int, list[Content]]], encoder: Encoder, dtype: str, threads: int
) -> Iterator[Embedded]:
    """Work on several batches at the same time; read another one only when there is room."""
    own = threading.local()

    def work(start: int, batch: list[Content]) -> Embedded:
        if not hasattr(own, "encoder"):
            own.encoder = copy.deepcopy(encoder)
        return _embedded(own.encoder, start, batch, dtype)

    pool = ThreadPoolExecutor(threads, "handful", only_one_thread)
    running = deque[Future[Embedded]]()
    try:
        for start, batch in batches:
            running.append(pool.submit(work, start, batch))
            if len(running) == BATCHES_PER_THREAD * threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _embedded(encoder: Encoder, start: int, batch: Sequence[Content], dtype: str) -> Embedded:
    """Decode and embed a batch."""
    prepared = list[Any]()
    skipped = list[tuple[int, str]]()
    for position, content in enumerate(batch, start):
        item = decode_image(content) if isinstance(content, bytes) else content
        if isinstance(item, Unreadable):
            skipped.append((position, item.reason))
        else:
            prepared.append(encoder.prepare(item))
    vectors = _vectors(encoder, prepared, dtype) if prepared else np.empty((0, encoder.dim), dtype)
    return Embedded(len(batch), vectors, tuple(skipped))


def _vectors(encoder: Encoder, prepared: Sequence[Any], dtype: str) -> Float[np.ndarray, "item dim"]:
    with np.errstate(over="ignore"):  # an overflow is reported below, in a sentence
        vectors = encoder.forward(prepared).astype(dtype)
    if vectors.shape != (len(prepared), encoder.dim):
        raise ExtractionError(
            f"encoder {encoder.name} must give {encoder.dim} numbers for each of {len(prepared)} items, "
            f"got shape {vectors.shape}"
        )
    if not np.isfinite(vectors).all():
        raise ExtractionError(
            f"encoder {encoder.name} gives features that are not finite in {dtype}; "
            "try float32, and if that is not enough, check its weights"
        )
    return vectors
