"""How inputs are read and embedded: the options that every door takes, and the network that they name."""

from __future__ import annotations

from typing import Any, TypedDict

from handful.arguments import did_you_mean, option
from handful.errors import OptionError
from handful.extraction.items import ItemKind
from handful.reading.header import Asked

# What missing numbers can be filled with.
MEAN = "mean"
# Default encoders, if neither the caller nor a bank names one: both come inside packages and download nothing.
USUAL_ENCODERS: dict[ItemKind, str] = {"image": "efficientnet-lite0", "text": "minilm"}


class Reading(TypedDict, total=False):
    """How catalogue and batch are read and embedded.

    Attributes
    ----------
    features, labels : str
        Names of the columns of vectors and labels, if they cannot be detected. For one column per dimension, `features`
        is the prefix of their names.
    text : str
        Column of the sentences, by default `text`. With `features`, it is what a page shows.
    id_column : str
        Column that identifies an item; by default one with a usual name, such as `id`.
    encoder : str
        A name as in `load_encoder`. By default the one that made the features of the other side; if neither side has
        features, `efficientnet-lite0` for images and `minilm` for sentences.
    device : str
        Where the encoder runs, by default `cpu`.
    missing : {"mean"}
        Fill missing numbers of vectors with the mean of the examples' column. By default they are refused, or their
        rows are left out and listed.
    header_row : int
        Line of the names of columns, of catalogue and batch, see `handful.read`.
    skip_bad : bool
        Whether to leave out any number of rows that cannot be read, see `handful.read`.
    """

    features: str | None
    labels: str | None
    text: str | None
    id_column: str | None
    encoder: str | None
    device: str
    missing: str | None
    header_row: int | None
    skip_bad: bool


def asked_of(reading: Reading) -> Asked:
    """Return what a reader of files needs of it."""
    if unknown := sorted(set(reading) - set(Reading.__annotations__)):
        alike = did_you_mean(unknown[0], Reading.__annotations__)
        listed = ", ".join(Reading.__annotations__)
        raise OptionError(f"there is no argument {unknown[0]!r}{alike}; files are read by {listed}")
    missing = reading.get("missing")
    if missing not in (None, MEAN):
        raise OptionError(f"missing must be {MEAN!r}, got {missing!r}; leave it out to refuse missing numbers")
    for name in ("features", "labels", "text", "id_column"):
        option(name, str | None, reading.get(name))
    given = {name: reading[name] for name in Asked._fields if name in reading}  # type: ignore[literal-required]
    return Asked(**given, gaps=missing is not None)


def load_network(kind: ItemKind, name: str | None, device: str) -> Any:
    """Load the encoder of this name, or the usual one for this kind of items."""
    from handful.extraction.encoders import (
        load_encoder,
    )  # looks for encoders of other packages, which vectors do not need

    return load_encoder(name or USUAL_ENCODERS[kind], device=device)
