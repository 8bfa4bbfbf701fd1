"""Encoder: turns an image or a sentence into a vector, and has a hash that identifies it exactly.

Any `torch.nn.Module` with a transform can become one; `encoders.py` has those with names.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from handful.errors import ExtractionError
from handful.extraction.items import ItemKind
from handful.machine.extras import import_extra
from handful.machine.threads import one_thread

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
    embed : callable
        `[item] -> Float[ndarray, "item dim"]`, float32; each item alone, to rounding.
    text_side : callable or None
        Of a network that reads images, the half that reads texts: a list of texts to vectors comparable with those of
        images.
    numbers_hash : str
        SHA-256 over the numbers alone, whatever library runs the network and whatever it calls them.

    Examples
    --------
    `of_images` and `of_sentences` make one from any module with a transform:

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
    embed: Callable[[Sequence[Any]], np.ndarray]
    text_side: Callable[[Sequence[str]], np.ndarray] | None = None
    numbers_hash: str = ""

    @property
    def embed_texts(self) -> Callable[[Sequence[str]], np.ndarray] | None:
        """From texts to vectors comparable with those of items, for names of classes; None if it cannot."""
        return self.embed if self.reads == "text" else self.text_side

    def has_weights(self, weights: str) -> bool:
        """Whether this is the encoder of a record: by its numbers alone, or with its layers, as banks record it."""
        return weights in (self.weights_hash, self.numbers_hash)

    @classmethod
    def of_images(
        cls,
        module: nn.Module,
        transform: Callable[[Any], Tensor],
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
        embed = ImageEmbedding(module.eval(), transform)
        described = without_addresses(repr(transform)) if preprocessing is None else preprocessing
        return identified(name, "image", embed, module, described, ("torch", "pillow", *packages))

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
        embed = SentenceEmbedding(module.eval(), transform)
        described = without_addresses(repr(transform)) if preprocessing is None else preprocessing
        return identified(name, "text", embed, module, described, ("torch", *packages))


@dataclass(frozen=True)
class ImageEmbedding:
    """Transform each image, stack, run the network."""

    module: nn.Module
    transform: Callable[[Any], Tensor]

    def __call__(self, images: Sequence[Any]) -> np.ndarray:
        """[item] -> [item, dim]."""
        in_colour = (image.convert("RGB") if image.mode != "RGB" else image for image in images)
        batch = torch.stack([self.transform(image) for image in in_colour])
        with torch.inference_mode():
            return _array(self.module(batch.to(_device(self.module))))


@dataclass(frozen=True)
class SentenceEmbedding:
    """Transform all sentences at once (they are padded to one length), run the network."""

    module: nn.Module
    transform: Callable[[list[str]], Any]

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """[item] -> [item, dim]."""
        batch = self.transform(list(sentences))
        device = _device(self.module)
        with torch.inference_mode():
            if isinstance(batch, Tensor):
                return _array(self.module(batch.to(device)))
            return _array(self.module(**{name: value.to(device) for name, value in batch.items()}))


def identified(
    name: str,
    reads: ItemKind,
    embed: Callable[[Sequence[Any]], np.ndarray],
    module: nn.Module,
    preprocessing: str,
    packages: Sequence[str],
) -> Encoder:
    """Hash the weights, embed the probes, and put both into the fingerprint."""
    with one_thread():
        vectors = embed(_probe_images() if reads == "image" else PROBE_SENTENCES)
    if vectors.ndim != 2 or len(vectors) != len(PROBE_SENTENCES):
        raise ExtractionError(
            f"encoder {name} must give one vector per item, axes (item, dim), got shape {vectors.shape} for "
            f"{len(PROBE_SENTENCES)} items; flatten or average the other axes"
        )
    weights_hash = _weights_hash(module)
    versions = {package: _version(package) for package in packages}
    digest = hashlib.sha256(repr((name, reads, weights_hash, preprocessing, sorted(versions.items()))).encode())
    digest.update(vectors.tobytes())
    about = (name, reads, vectors.shape[1], weights_hash, preprocessing, versions, digest.hexdigest(), embed)
    return Encoder(*about, numbers_hash=_numbers_hash(module))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # importable, but not installed by an installer
        return "unknown"


def _weights_hash(module: nn.Module) -> str:
    digest = hashlib.sha256(without_addresses(repr(module)).encode())
    for name, value in sorted(module.state_dict().items()):
        if isinstance(value, Tensor):  # a module may also keep plain values as extra state
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _numbers_hash(module: nn.Module) -> str:
    digests = []
    for value in module.state_dict().values():
        if isinstance(value, Tensor) and value.is_floating_point():
            numbers = value.detach().to("cpu", torch.float32).contiguous().numpy()
            digests.append(hashlib.sha256(numbers.astype("<f4", copy=False).data).digest())
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def _probe_images() -> list[Any]:
    """Two images of noise, wide and tall: every resize, crop and normalisation changes them."""
    image = import_extra("PIL.Image", "images")
    noise = np.random.default_rng(0)
    sizes = [(240, 320, 3), (300, 230, 3)]
    return [image.fromarray(noise.integers(0, 256, size, dtype=np.uint8)) for size in sizes]


def without_addresses(text: str) -> str:
    """Drop ` at 0x…`, which differs from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _device(module: nn.Module) -> torch.device:
    return next((parameter.device for parameter in module.parameters()), torch.device("cpu"))


def _array(vectors: Tensor) -> np.ndarray:
    return vectors.float().cpu().numpy()
