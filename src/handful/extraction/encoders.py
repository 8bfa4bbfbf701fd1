"""Encoders with names; their packages are imported when one is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handful import extensions
from handful.arguments import did_you_mean
from handful.errors import OptionError, UnknownNameError
from handful.extraction.efficientnet_lite import lite0
from handful.extraction.encoder import Encoder
from handful.machine.extras import import_extra
from handful.machine.registry import Registry

# Letters of a message of PyTorch that are shown.
MOST_LETTERS = 80


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
    _check_device(device)
    family, colon, rest = name.partition(":")
    if rest and family + colon in ENCODERS:
        return ENCODERS[family + colon](rest, device)
    if not colon and name in ENCODERS:
        return ENCODERS[name](device)
    plain = [known for known in ENCODERS if not known.endswith(":")]
    there = [f"{known}NAME" if known.endswith(":") else known for known in ENCODERS]
    raise UnknownNameError(
        f"no encoder is called {name!r}{did_you_mean(name, plain)}; choose from {', '.join(there)}"
        f"{extensions.what_to_install()}"
    )


def _check_device(device: str) -> None:
    """Refuse a device that cannot be used here; the processor needs no PyTorch."""
    if device == "cpu":
        return
    try:
        torch = import_extra("torch", "torch")
    except ImportError as error:
        raise OptionError(
            f"device {device!r} needs PyTorch, which is not installed; leave it out to use the cpu"
        ) from error
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
    >>> import torch
    >>> def vowels(sentences):
    ...     return torch.tensor([[float(sentence.count(letter)) for letter in "aeiou"] for sentence in sentences])
    >>> register_encoder("vowels", lambda device: Encoder.of_sentences(torch.nn.Identity(), vowels, name="vowels"))
    >>> load_encoder("vowels").dim
    5
    """
    ENCODERS.register(name, load)


def _check(name: str, load: Callable[..., Encoder]) -> None:
    if not callable(load):
        raise OptionError(f"the encoder {name!r} must be a function from a device to an Encoder, got {load!r}")
    if ":" in name[:-1] or not name.strip(":"):
        raise OptionError(f"the name of an encoder must not be empty or have a colon before its end, got {name!r}")


def _by_torch(load: str, extra: str, *first: Any) -> Callable[..., Encoder]:
    """Return a function of `torch_encoders`, which is imported, with PyTorch, when it is called."""

    def by_torch(*arguments: str) -> Encoder:
        loaders = import_extra("handful.extraction.torch_encoders", extra)
        encoder: Encoder = getattr(loaders, load)(*first, *arguments)
        return encoder

    return by_torch


ENCODERS: Registry[Callable[..., Encoder]] = Registry(
    extensions.ENCODERS,
    {
        "efficientnet-lite0": lite0,
        "efficientnet-lite1": _by_torch("efficientnet_lite", "torch", 1),
        "efficientnet-lite2": _by_torch("efficientnet_lite", "torch", 2),
        "minilm": _by_torch("minilm", "torch"),
        "timm:": _by_torch("of_timm", "timm"),
        "open_clip:": _by_torch("of_open_clip", "open-clip"),
        "transformers:": _by_torch("of_transformers", "torch"),
        "sentence-transformers:": _by_torch("of_sentence_transformers", "torch"),
    },
    _check,
)
