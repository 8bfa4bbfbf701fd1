"""CLINC150: 150 intents of sentences to a voice assistant, as sentence embeddings."""

from __future__ import annotations

from importlib import import_module, resources
from typing import Any

import numpy as np

from handful.banks import FeatureBank, Provenance

PROVENANCE = Provenance(
    dataset="CLINC150 (Larson et al., EMNLP 2019), test and validation sentences of its 150 in-scope intents",
    licence="CC BY 3.0; see handful/datasets/CLINC150.md",
    encoder="all-MiniLM-L6-v2 (Apache-2.0)",
    preprocessing="attention-masked mean of the last hidden states, at most 128 tokens, not normalised",
    notes="stored as 8-bit integers with one scale per row, so features are those of the encoder to about 1%",
)
# Options of methods are chosen on every second intent, in the order of the alphabet, and tested on the others.
N_CLASSES = 150
# Sentences of each intent that are examples in the frame, and the intents of those that have none. [sentences; example]
EXAMPLES = 5
IN_FRAME = ("exchange_rate", "lost_luggage", "recipe")
SPLITS = {"test": range(0, N_CLASSES, 2), "validation": range(1, N_CLASSES, 2)}


def load_clinc150() -> FeatureBank:
    """Load 50 sentences of each of 150 intents, 384 numbers per sentence.

    Every second intent is in the split `validation`, the others are in `test`: nobody has published splits by intent.

    Returns
    -------
    FeatureBank
        The bank, in single precision.

    Examples
    --------
    >>> bank = load_clinc150()
    >>> bank
    FeatureBank(7500 rows, 384 dimensions of float32, 150 classes)
    >>> bank.class_names[:3]
    ('accept_reservations', 'account_blocked', 'alarm')
    """
    file = resources.files("handful.datasets").joinpath("clinc150.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        features = stored["codes"] * stored["scales"][:, None]
        return FeatureBank.from_arrays(
            features, stored["labels"], stored["class_names"].tolist(), provenance=PROVENANCE, splits=SPLITS
        )


def load_clinc150_sentences() -> list[str]:
    """Load the sentences behind the rows of `load_clinc150`, in the same order.

    Returns
    -------
    list of str
        One sentence per row.

    Examples
    --------
    >>> load_clinc150_sentences()[0]
    'in spanish, meet me tomorrow is said how'
    """
    file = resources.files("handful.datasets").joinpath("clinc150.txt")
    return file.read_text(encoding="utf-8").splitlines()


def load_clinc150_frame() -> Any:
    """Load a frame to label: five sentences of each of 150 intents, and all others of three of them without an intent.

    Returns
    -------
    DataFrame
        Of pandas, with the columns `message`, `vector` and `intent`.

    Examples
    --------
    >>> frame = load_clinc150_frame()
    >>> len(frame), int(frame["intent"].isna().sum()), frame["intent"].nunique()
    (885, 135, 150)
    """
    bank = load_clinc150()
    names = np.array(bank.class_names, dtype=object)[bank.labels]
    rows = {name: np.flatnonzero(names == name) for name in bank.class_names}
    examples = np.concatenate([of_class[:EXAMPLES] for of_class in rows.values()])
    batch = np.concatenate([rows[name][EXAMPLES:] for name in IN_FRAME])
    some = np.concatenate([examples, batch])
    messages = np.array(load_clinc150_sentences(), dtype=object)[some]
    vectors = np.empty(len(some), dtype=object)
    vectors[:] = list(bank.features[some])
    intents = np.concatenate([names[examples], np.full(len(batch), None)])
    pandas = import_module("pandas")
    return pandas.DataFrame({"message": messages, "vector": vectors, "intent": intents})
