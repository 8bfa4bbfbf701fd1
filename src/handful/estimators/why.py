"""Why an item has its label: what it would be alone, what the batch adds, and which examples are nearest.

With `S_nk` the scores of the head and q the answer, the log-odds of the label a against a rival b are

    ln q_na/q_nb  =  (S_na - S_nb)  +  what the batch adds.

The rival is the label that the item would have alone. If that is its label too, it is the second most probable class.
What is known in advance (`prior`) counts as part of what the batch adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from handful.catalogue import Catalogue
from handful.catalogue.labels import places_of
from handful.engine.model import Context
from handful.engine.prior import Prior
from handful.estimators.answer_tables import as_array
from handful.estimators.inference import Inference
from handful.rows import transform_rows
from handful.shapes import Float

# Fewer expected items than this are none.
LEAST_SAID = 0.5


class NearExample(NamedTuple):
    """An example of the catalogue near an item.

    Attributes
    ----------
    position : int
        Its position among the examples, in the order in which they were given to `fit`, `partial_fit` and
        `add_classes`.
    label : label
        Its class.
    distance : float
        Between the transformed rows: for the transform `l2`, from 0, the same direction, to 2, the opposite one.

    Examples
    --------
    >>> from handful.estimators import PaddleClassifier
    >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["up", "up", "right", "right"]
    >>> PaddleClassifier().fit(X, y).explain([[0.0, 2.0], [3.0, 0.0]], 1).nearest[0]
    NearExample(position=2, label='right', distance=0.0)
    """

    position: int
    label: Any
    distance: float


@dataclass(frozen=True)
class Explanation:
    """Why an item has its label; `str` says it in plain sentences.

    Attributes
    ----------
    item : int
        Position in the batch.
    label, probability : label, float
        Its most probable class.
    alone, alone_probability : label, float
        The same if the item were labelled by the examples alone, without the batch.
    rival, rival_probability : label, float
        `alone` if that is another class, else the second most probable class. None and zero if no other is possible.
    from_item, from_batch : float
        The log-odds of the label against the rival, in nats: what the item says, and what the batch adds.
    others_of_label, others_of_rival : float
        Expected number of other items in each of the two classes.
    n_items : int
        Size of the batch.
    unknown : float
        Chance that the item belongs to none of the classes; NaN if the catalogue cannot tell.
    rejected : bool
        Whether it counts as unknown, see `Inference`.
    nearest : tuple of NearExample
        The nearest examples, the nearest first. A very large catalogue keeps only some of its examples.

    Examples
    --------
    >>> import textwrap
    >>> from handful.estimators import PaddleClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.9 * rng.normal(size=(100, 16)), np.array(list("abcdefghijklmnopqrst"))
    >>> batch = centres[[3] * 30 + [7] * 20] + 0.9 * rng.normal(size=(50, 16))
    >>> batch[0] = 0.4 * centres[3] + 0.6 * centres[5]  # between two classes
    >>> print(textwrap.fill(str(PaddleClassifier().fit(X, y.repeat(5)).explain(batch, 0)), 88))
    Item 0 is 'd' (0.78). Alone it would be 'f' (0.89). Of the other 49 items of the batch,
    29 are expected to be 'd', none to be 'f'. The nearest examples are 28 ('f'), 29 ('f')
    and 25 ('f').
    """

    item: int
    label: Any
    probability: float
    alone: Any
    alone_probability: float
    rival: Any
    rival_probability: float
    from_item: float
    from_batch: float
    others_of_label: float
    others_of_rival: float
    n_items: int
    unknown: float
    rejected: bool
    nearest: tuple[NearExample, ...]

    def __str__(self) -> str:
        label, same = repr(self.label), self.alone == self.label
        if self.rejected:
            sentences = [f"Item {self.item} looks like none of the classes ({self.unknown:.2f}); {label} fits it best."]
        else:
            sentences = [f"Item {self.item} is {label} ({self.probability:.2f})."]
        sentences.append(
            f"Alone it would be {'the same' if same else repr(self.alone)} ({self.alone_probability:.2f})."
        )
        if self.rival is not None:
            sentences.append(
                f"Of the other {self.n_items - 1:,} items of the batch, {_items(self.others_of_label)} are expected to "
                f"be {label}, {_items(self.others_of_rival)} to be {self.rival!r}."
            )
        if self.nearest:
            *first, last = [f"{near.position} ({near.label!r})" for near in self.nearest]
            are = f"examples are {', '.join(first)} and" if first else "example is"
            sentences.append(f"The nearest {are} {last}.")
        return " ".join(sentences)


def explained(
    catalogue: Catalogue,
    found: Inference,
    features: Float[Tensor, "item dim"],
    items: Sequence[int],
    *,
    prior: Prior | None = None,
    n_nearest: int = 3,
) -> tuple[Explanation, ...]:
    """Explain some items of an answer.

    Parameters
    ----------
    catalogue, found
        What the batch was compared with, and the answer.
    features : Float[Tensor, "item dim"]
        All items of the batch, as they were given.
    items
        Positions in the batch.
    prior
        As given when the batch was labelled.
    n_nearest
        Examples that each explanation has.
    """
    chosen = features[torch.as_tensor(list(items), dtype=torch.int64, device=features.device)]
    scores = catalogue.scores(chosen, Context.of(prior))
    alone, near = softmax(scores, axis=1), _nearest(catalogue, chosen, found.classes.tolist(), n_nearest)
    table, unknown, counts = as_array(found.probabilities), as_array(found.unknown), found.expected_counts
    # In a batch with unknown items, expected counts are those of known ones.
    known = np.ones(len(table)) if np.isclose(counts.sum(), len(table)) else 1 - unknown
    names = found.classes.tolist()
    said = []
    for place, item in enumerate(items):
        q, s = table[item], scores[place]
        label, own = int(q.argmax()), int(alone[place].argmax())
        others = np.where(np.arange(len(q)) == label, 0, q)
        rival = own if own != label else int(others.argmax())
        against = label != rival and q[rival] > 0
        from_item = float(s[label] - s[rival]) if against else 0.0
        odds = float(np.log(q[label]) - np.log(q[rival])) if against else 0.0
        held = np.maximum(counts - known[item] * q, 0)
        said.append(
            Explanation(
                item=int(item),
                label=names[label],
                probability=float(q[label]),
                alone=names[own],
                alone_probability=float(alone[place, own]),
                rival=names[rival] if against else None,
                rival_probability=float(q[rival]) if against else 0.0,
                from_item=from_item,
                from_batch=odds - from_item,
                others_of_label=float(held[label]),
                others_of_rival=float(held[rival]) if against else 0.0,
                n_items=len(table),
                unknown=float(unknown[item]),
                rejected=bool(found.rejected[item]),
                nearest=near[place],
            )
        )
    return tuple(said)


def _nearest(
    catalogue: Catalogue, chosen: Float[Tensor, "item dim"], names: list[Any], most: int
) -> list[tuple[NearExample, ...]]:
    """Return the nearest of the examples that the catalogue keeps."""
    examples = catalogue.examples
    points = transform_rows(catalogue.transform, chosen.to(catalogue.origin))
    codes = places_of(examples.labels, catalogue.classes)
    distances = torch.cdist(points.double(), examples.points.double())
    found = distances.topk(min(most, distances.shape[1]), largest=False)
    return [
        tuple(
            NearExample(int(examples.positions[row]), names[codes[row]], distance)
            for row, distance in zip(rows, of_rows, strict=True)
        )
        for rows, of_rows in zip(found.indices.tolist(), found.values.tolist(), strict=True)
    ]


def _items(count: float) -> str:
    """Write an expected number of items."""
    return "none" if count < LEAST_SAID else f"{count:,.0f}"
