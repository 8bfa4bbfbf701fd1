"""Why an item has its label: what it would be alone, what the batch adds, and which examples are nearest.

With `S_nk` the scores of the head and q the answer, the log-odds of the label a against a rival b are

    ln q_na/q_nb  =  (S_na - S_nb)  +  what the batch adds.

The rival is the label that the item would have alone. If that is its label too, it is the second most probable class.
What is known in advance (`prior`) counts as part of what the batch adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax

from handful.estimators.answer import Answer
from handful.estimators.batches import Batches
from handful.estimators.certainty import certainty_of
from handful.estimators.items import ModelItems
from handful.model.answer import JointAnswer
from handful.model.questions import Question, questions_about
from handful.plots import html
from handful.shapes import Float

# Fewer expected items than this are none. [items; convention]
LEAST_SAID = 0.5
# Examples beside an explanation. [examples; convention]
N_NEAREST = 3


class NearExample(NamedTuple):
    """An example of the catalogue near an item.

    Attributes
    ----------
    position : int
        Its position among the examples, in the order in which they were given to `fit` and `partial_fit`.
    label : label
        Its class; None if it has no name.
    distance : float
        Between the transformed rows: for the transform `l2`, from 0, the same direction, to 2, the opposite one.
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
    label, certainty : label, float
        Its most probable class, and the chance that this is right.
    alone, alone_certainty : label, float
        The same if the item were labelled by the examples alone, without the batch.
    rival, rival_certainty : label, float
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
        Whether it counts as unknown, see `Answer`.
    nearest : tuple of NearExample
        The nearest examples, the nearest first. A very large catalogue keeps only some of its examples.

    Examples
    --------
    >>> import textwrap
    >>> from handful.estimators import BatchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.9 * rng.normal(size=(100, 16)), np.array(list("abcdefghijklmnopqrst"))
    >>> batch = centres[[3] * 30 + [7] * 20] + 0.9 * rng.normal(size=(50, 16))
    >>> batch[0] = 0.4 * centres[3] + 0.6 * centres[5]  # between two classes
    >>> print(textwrap.fill(str(BatchClassifier().fit(X, y.repeat(5)).explain(batch, 0)), 88))
    Item 0 is 'd' (0.75). Alone it would be 'f' (0.88). Of the other 49 items of the batch,
    29 are expected to be 'd', none to be 'f'. The nearest examples are 28 ('f'), 29 ('f')
    and 25 ('f').
    """

    item: int
    label: Any
    certainty: float
    alone: Any
    alone_certainty: float
    rival: Any
    rival_certainty: float
    from_item: float
    from_batch: float
    others_of_label: float
    others_of_rival: float
    n_items: int
    unknown: float
    rejected: bool
    nearest: tuple[NearExample, ...]

    def _repr_html_(self) -> str:
        return html.of_explanation(self)

    def __str__(self) -> str:
        label = repr(self.label)
        same = self.alone == self.label
        if self.rejected:
            sentences = [f"Item {self.item} looks like none of the classes ({self.unknown:.2f}); {label} fits it best."]
        else:
            sentences = [f"Item {self.item} is {label} ({self.certainty:.2f})."]
        sentences.append(f"Alone it would be {'the same' if same else repr(self.alone)} ({self.alone_certainty:.2f}).")
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


def questions_of(batches: Batches, place: int, found: Answer | JointAnswer, n: int) -> tuple[Question, ...]:
    """Return the first n questions about a group that was labelled; items whose labels are given are not asked."""
    rows = batches.rows_of[place]
    items = batches.items
    assert isinstance(items, ModelItems)
    points = items.points[rows] - items.catalogue.reference.centre
    known = batches.contexts.given
    given = [] if known is None else np.flatnonzero(known[rows] != -1).tolist()
    # What the examples support limits all labels alike, and does not tell which of them is wrong.
    certainty = certainty_of(found.probabilities.max(1), found.unknown, most=1.0)
    return tuple(questions_about(points, found.probabilities, certainty, n, given))


def explained(
    batches: Batches, place: int, found: Answer | JointAnswer, chosen: Sequence[int], *, n_nearest: int = N_NEAREST
) -> tuple[Explanation, ...]:
    """Explain some items of one group.

    Parameters
    ----------
    batches, place
        Items beside a catalogue, and which of the groups to explain.
    found
        The answer about this group.
    chosen
        Positions in the group.
    n_nearest
        Examples that each explanation has.
    """
    if len(chosen) == 0:
        return ()
    rows = batches.rows_of[place][np.asarray(chosen, dtype=np.int64)]
    items = batches.items
    assert isinstance(items, ModelItems)
    knowledge = replace(batches.contexts.of_group(place, rows), labels=None)
    scores = items.catalogue.scores(items.points[rows], knowledge)
    names = items.classes.tolist()
    alone = softmax(scores, axis=1)
    near = _nearest(items, items.points[rows], [*names, *[None] * items.catalogue.n_unnamed], n_nearest)
    table = found.probabilities
    unknown = found.unknown
    counts = found.expected_counts
    certainties, alone_certainties = (
        certainty_of(p, unknown[chosen], batches.most_certain[rows]) for p in (table[chosen], alone)
    )
    # In a batch with unknown items, expected counts are those of known ones.
    counted = np.ones(len(table)) if np.isclose(counts.sum(), len(table)) else 1 - np.nan_to_num(unknown)
    explanations = []
    for at, item in enumerate(chosen):
        q = table[item]
        s = scores[at]
        label = int(q.argmax())
        own = int(alone[at].argmax())
        others = np.where(np.arange(len(q)) == label, 0, q)
        rival = own if own != label else int(others.argmax())
        against = label != rival and q[rival] > 0
        from_item = float(s[label] - s[rival]) if against else 0.0
        odds = float(np.log(q[label]) - np.log(q[rival])) if against else 0.0
        held = np.maximum(counts - counted[item] * q, 0)
        explanations.append(
            Explanation(
                item=int(item),
                label=names[label],
                certainty=float(certainties[at, label]),
                alone=names[own],
                alone_certainty=float(alone_certainties[at, own]),
                rival=names[rival] if against else None,
                rival_certainty=float(certainties[at, rival]) if against else 0.0,
                from_item=from_item,
                from_batch=odds - from_item,
                others_of_label=float(held[label]),
                others_of_rival=float(held[rival]) if against else 0.0,
                n_items=len(table),
                unknown=float(unknown[item]),
                rejected=bool(found.rejected[item]),
                nearest=near[at],
            )
        )
    return tuple(explanations)


def _nearest(
    items: ModelItems, points: Float[np.ndarray, "item dim"], names: list[Any], most: int
) -> list[tuple[NearExample, ...]]:
    """Return the nearest of the examples that the catalogue keeps."""
    (examples, codes) = items.catalogue.labelled_points
    positions = items.catalogue.examples.positions
    distances = cdist(points, examples)
    return [
        tuple(NearExample(int(positions[row]), names[codes[row]], float(of_item[row])) for row in nearest)
        for of_item, nearest in zip(distances, np.argsort(distances, axis=1, kind="stable")[:, :most], strict=True)
    ]


def _items(count: float) -> str:
    """Write an expected number of items."""
    return "none" if count < LEAST_SAID else f"{count:,.0f}"
