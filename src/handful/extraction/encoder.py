"""Encoder: turns an image or a sentence into a vector, and has a hash that identifies it exactly.

Any `torch.nn.Module` with a transform can become one; `encoders.py` has those with names.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from handful.errors import ExtractionError
from handful.extraction.items import ItemKind
from handful.machine.extras import import_extra
from handful.machine.threads import one_thread
from handful.shapes import Float

if TYPE_CHECKING:
    from torch import Tensor, nn

PROBE_SENTENCES = ("a handful of words", "Numbers, 1 2 3, and an accent: é!")


@dataclass(frozen=True, eq=False)
class Encoder:
    """A function from items to vectors, and what identifies it.

    Attributes
    ----------
    name : str
        As given to `load_encoder`, or by the caller.
    reads : "image" or "text"
        What `embed` takes a list of: RGB images of Pillow, or sentences.
    dim : int
        Length of a vector.
    weights_hash : str
        SHA-256 over structure, names, shapes and values of all parameters and buffers.
    preprocessing : str
        What happens to an item before the network, in words or as the transform prints itself.
    versions : Mapping[str, str]
        Packages that take part.
    fingerprint : str
        SHA-256 over all of the above and the vectors of a few fixed items. The vectors make it reliable: a transform
        that was edited without changing how it prints still changes them.
    prepare : callable
        From one item to what the network takes: the pixels of a resized image; a sentence stays as it is.
    forward : callable
        `[prepared item] -> Float[ndarray, "item dim"]`, float32; each item alone, to rounding.
    text_side : callable or None
        Of a network that reads images, the half that reads texts: a list of texts to vectors comparable with those of
        images.
    numbers_hash : str
        SHA-256 over the numbers alone, whatever library runs the network and whatever it calls them.

    Examples
    --------
    `of_images` and `of_sentences` make one from any module with a transform:

    >>> import torch
    >>> def letters(sentences):
    ...     return torch.tensor([[float(sentence.count(letter)) for letter in "aeiou"] for sentence in sentences])
    >>> encoder = Encoder.of_sentences(torch.nn.Identity(), letters, name="vowels", preprocessing="vowels counted")
    >>> encoder.reads, encoder.dim
    ('text', 5)
    >>> encoder.embed(["a handful of words"]).tolist()
    [[2.0, 0.0, 0.0, 2.0, 1.0]]
    """

    name: str
    reads: ItemKind
    dim: int
    weights_hash: str
    preprocessing: str
    versions: Mapping[str, str]
    fingerprint: str
    prepare: Callable[[Any], Any]
    forward: Callable[[Sequence[Any]], np.ndarray]
    text_side: Callable[[Sequence[str]], np.ndarray] | None = None
    numbers_hash: str = ""

    def embed(self, items: Sequence[Any]) -> Float[np.ndarray, "item dim"]:
        """Return the vectors of images of Pillow, or of sentences."""
        return self.forward([self.prepare(item) for item in items])

    @property
    def embed_texts(self) -> Callable[[Sequence[str]], np.ndarray] | None:
        """From texts to vectors comparable with those of items, for names of classes; None if it cannot."""
        return self.embed if self.reads == "text" else self.text_side

    @property
    def recorded(self) -> str:
        """What banks record of it."""
        return f"{self.name}, weights {self.weights_hash}"

    def has_weights(self, weights: str) -> bool:
        """Whether this is the encoder of a record: by its numbers alone, or with its layers, as banks record it."""
        return weights in (self.weights_hash, self.numbers_hash)

    @classmethod
    def of_images(
        cls,
        module: nn.Module,
        transform: Callable[[Any], Tensor | np.ndarray],
        *,
        name: str,
        preprocessing: str | None = None,
        packages: Sequence[str] = (),
    ) -> Encoder:
        """Wrap a network [item, channel, height, width] -> [item, dim] and the transform of one RGB image of Pillow.

        The network runs where its parameters are. `preprocessing` says in words what the transform does; by default
        the transform is asked to print itself.

        Examples
        --------
        >>> import numpy as np, torch
        >>> pixels = lambda image: torch.from_numpy(np.array(image.resize((8, 8)), dtype=np.float32))
        >>> Encoder.of_images(torch.nn.Flatten(), pixels, name="pixels", preprocessing="resized to 8 × 8").dim
        192
        """
        modules = import_extra("handful.extraction.modules", "torch")
        forward = modules.ImageModule(module.eval())
        described = without_addresses(repr(transform)) if preprocessing is None else preprocessing
        hashes = modules.hashes_of(module)
        return identified(
            name, "image", InColour(transform), forward, hashes, described, ("torch", "pillow", *packages)
        )

    @classmethod
    def of_sentences(
        cls,
        module: nn.Module,
        transform: Callable[[list[str]], Any],
        *,
        name: str,
        preprocessing: str | None = None,
        packages: Sequence[str] = (),
    ) -> Encoder:
        """Wrap a network whose input, for a list of sentences, is what `transform` returns: a tensor or a mapping."""
        modules = import_extra("handful.extraction.modules", "torch")
        forward = modules.SentenceModule(module.eval(), transform)
        described = without_addresses(repr(transform)) if preprocessing is None else preprocessing
        hashes = modules.hashes_of(module)
        return identified(name, "text", as_it_is, forward, hashes, described, ("torch", *packages))


@dataclass(frozen=True)
class InColour:
    """The transform of an image with three channels; any other image is converted before."""

    transform: Callable[[Any], Any]

    def __call__(self, image: Any) -> Any:
        """One image to what the network takes."""
        return self.transform(image if image.mode == "RGB" else image.convert("RGB"))


def as_it_is(item: Any) -> Any:
    """Return an item that needs no preparation."""
    return item


def identified(
    name: str,
    reads: ItemKind,
    prepare: Callable[[Any], Any],
    forward: Callable[[Sequence[Any]], np.ndarray],
    hashes: tuple[str, str],
    preprocessing: str,
    packages: Sequence[str],
) -> Encoder:
    """Embed the probes, and put them and the hashes of the weights and of their numbers into the fingerprint."""
    with one_thread():
        probes = _probe_images() if reads == "image" else PROBE_SENTENCES
        vectors = forward([prepare(probe) for probe in probes])
    if vectors.ndim != 2 or len(vectors) != len(PROBE_SENTENCES):
        raise ExtractionError(
            f"encoder {name} must give one vector per item, axes (item, dim), got shape {vectors.shape} for "
            f"{len(PROBE_SENTENCES)} items; flatten or average the other axes"
        )
    weights_hash, numbers_hash = hashes
    versions = {package: _version(package) for package in packages}
    digest = hashlib.sha256(repr((name, reads, weights_hash, preprocessing, sorted(versions.items()))).encode())
    digest.update(vectors.tobytes())
    about = (name, reads, vectors.shape[1], weights_hash, preprocessing, versions, digest.hexdigest())
    return Encoder(*about, prepare, forward, numbers_hash=numbers_hash)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # importable, but not installed by an installer
        return "unknown"


def _probe_images() -> list[Any]:
    """Two images of noise, wide and tall: every resize, crop and normalisation changes them."""
    image = import_extra("PIL.Image", "images")
    noise = np.random.default_rng(0)
    sizes = [(240, 320, 3), (300, 230, 3)]
    return [image.fromarray(noise.integers(0, 256, size, dtype=np.uint8)) for size in sizes]


def without_addresses(text: str) -> str:
    """Drop ` at 0x…`, which differs from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
