"""The model from end to end: label batches by their scores, and by where their items lie.

`decide` is the algorithm: it finds out what each batch is like. `label_items` then labels any items of the batch, those
that decided or others, and `summarize` says the rest, from sums over items. A batch in memory, a stack of groups, a
stream and the scores of another model take the same steps; numbers in brackets are those of the formulas in
docs/understand/model.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from handful.model.arrays import Bools, Floats, Ints
from handful.model.evidence import Places, distance_ratio, find_places, gather_evidence
from handful.model.knowledge import Knowledge
from handful.model.labels import Decision, Move, label_alone, label_alone_after_move
from handful.model.means import MovedMeans
from handful.model.presence import AloneLabels, JointLabels, Presence, find_sets, joint_labels
from handful.model.reference import Reference
from handful.model.scores import Scores
from handful.model.settings import Settings
from handful.model.tilts import Tilts, estimate_tilts
from handful.model.unknown_in_batch import UnknownPosterior
from handful.model.unnamed import nats_of_unnamed
from handful.model.vectors import Vectors


@dataclass(frozen=True, eq=False)
class BatchItems:
    """Items of batches of one size: their scores, where they lie, and what is known about them.

    `vectors` is None if only their scores are known: then there is no offset, nothing is unknown, and no class mean
    moves. If only the `near` classes are wanted, the others of each batch are counted together.
    """

    scores: Scores
    vectors: Vectors | None
    knowledge: Knowledge
    near: bool = False

    @classmethod
    def of(
        cls,
        points: Floats,
        reference: Reference,
        knowledge: Knowledge,
        contents: Floats | None = None,
        *,
        near: bool = False,
    ) -> BatchItems:
        """Compare points [batch, item, dim] with the classes of a catalogue; `contents` are those of `Vectors`."""
        scores = Scores.of_vectors(points, reference, knowledge)
        return cls(scores, Vectors(points, reference, contents), knowledge, near)

    def rows(self, rows: Ints | slice) -> BatchItems:
        """Return some of the items of a single batch."""
        vectors = None if self.vectors is None else self.vectors.rows(rows)
        return BatchItems(self.scores.rows(rows), vectors, self.knowledge.rows(rows), self.near)


class Decided(NamedTuple):
    """A decision, and what it says about the items that decided."""

    decision: Decision
    alone: AloneLabels  # of these items
    responsibilities: Floats | None  # [batch, item, column], how far each moved the class means; None if nothing moved


def decide(items: BatchItems, settings: Settings) -> Decided:
    """Find out what each batch is like from its items, or from a part of them."""
    scores = items.scores
    vectors = items.vectors
    knowledge = items.knowledge
    n_classes = scores.n_possible
    tilts = estimate_tilts(scores, vectors, knowledge.prior, settings)  # (3), (22), (23)
    tilts = tilts.lowered(nats_of_unnamed(scores, vectors, tilts, settings))
    alone = label_alone(scores, tilts)  # (4)
    if items.near:
        alone = alone.of_near()
    present = find_sets(alone, scores.shots, n_classes, settings)  # (5), (6), (8), (9)
    if vectors is None:
        present = first_items_alone(present, scores.n_items, settings)
        return Decided(Decision(n_classes, tilts, present, np.ones(len(n_classes)), None, None), alone, None)

    joint = joint_labels(alone, present, n_classes, settings)  # (7)
    places = find_places(vectors, tilts.of_batch, present, joint)
    distance = distance_ratio(scores, vectors, tilts.of_batch, places)  # f of (17)
    unknown = judge_items(scores, vectors, tilts, present, places, knowledge, settings)  # (12) to (15)
    if scores.n_items == 1:  # it is left out of the mean that it moved
        return Decided(Decision(n_classes, tilts, present, distance, None, unknown), alone, None)
    responsibilities = find_responsibilities(joint, alone, present, scores.labelled)  # (10)
    move = move_means(vectors, tilts, present, responsibilities, settings)  # (10)
    alone = label_alone_after_move(alone, scores, vectors, tilts, move, responsibilities)  # (4), (11)
    present = find_sets(alone, scores.shots, n_classes, settings)
    return Decided(Decision(n_classes, tilts, present, distance, move, unknown), alone, responsibilities)


def first_items_alone(present: Presence, n_items: int, settings: Settings) -> Presence:
    """Multiply the weight of joint labels by `1 - h/m` if only scores are known.

    The first item of a class tells nothing about itself: h of m items are no better labelled with the others.
    """
    first = settings.alone_per_class * np.maximum(present.n_present, 1.0) / n_items
    joint_weight = (1 - present.alone_weight) * np.maximum(1 - first, 0.0)
    return present._replace(alone_weight=1 - joint_weight)


def judge_items(
    scores: Scores,
    vectors: Vectors,
    tilts: Tilts,
    present: Presence,
    places: Places,
    knowledge: Knowledge,
    settings: Settings,
) -> UnknownPosterior | None:
    """Find out which items are unknown; None if the catalogue cannot tell."""
    model = vectors.reference.unknown_model
    if model is None:
        return None
    evidence = gather_evidence(scores, vectors, tilts.of_batch, present, places, knowledge.labels)
    return UnknownPosterior.of(model, evidence, knowledge.share, settings)


def find_responsibilities(joint: JointLabels, alone: AloneLabels, present: Presence, labelled: Bools) -> Floats:
    """How far each item moves the mean of each candidate class, [batch, item, column]: its label, joint and alone.

    What a person labelled is an example already, and moves nothing.
    """
    by_itself = present.alone_weight[:, None, None].astype(joint.columns.dtype)
    label = (1 - by_itself) * joint.columns + by_itself * alone.of_columns(present.columns)
    moves = ~labelled[..., None] * present.valid[:, None]
    return np.asarray(label * moves.astype(label.dtype))


def move_means(vectors: Vectors, tilts: Tilts, present: Presence, responsibilities: Floats, settings: Settings) -> Move:
    """Move the means of the candidate classes with their items."""
    reference = vectors.reference
    columns = present.columns
    moved = MovedMeans.of(
        vectors.without(tilts.of_batch.offset),
        responsibilities,
        reference.slopes[columns],
        reference.head.means[columns],
        reference.head.mass[columns],
        vectors.spread,
        settings,
    )
    return Move(moved, columns)
