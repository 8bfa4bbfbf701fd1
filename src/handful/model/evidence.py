"""Evidence about unknown items: how far items lie from their classes, and the groups that they belong to.

Each item is replaced by a weighted group: itself and the items with the strongest links to it, of the same label. The
squared distance of the centroid from the class of the item, `|Σ_j a_nj x_j - d - μ|²`, follows from products of single
items and means, which are averaged like scores: no centroid is computed. The class of an item is the mean over its
joint label among the candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from handful.model.arrays import Bools, Floats, Ints, take_columns
from handful.model.knowledge import FixedLabels
from handful.model.limits import LOWEST
from handful.model.links import Anchors
from handful.model.offset import BatchTilts
from handful.model.presence import JointLabels, Presence
from handful.model.scores import Scores
from handful.model.unknown_in_batch import UnknownEvidence
from handful.model.vectors import Vectors


class Linked(NamedTuple):
    """Anchors that items are linked with, and what is known about each of them."""

    anchors: Anchors
    values: Floats  # [batch, anchor, number], as in `linked_values`
    shares: Floats  # [batch, anchor, column], as in `Places`
    rows: Ints  # numbers of the items that are anchors,
    numbers: Ints  # and which anchors these are


class Places(NamedTuple):
    """Where items lie beside the candidate classes of their batch, without its offset."""

    shares: Floats  # [batch, item, column], of the candidate classes in the label of each item
    dots: Floats  # [batch, item, column], <x_n - d, μ_k>
    lengths: Floats  # [batch, column], squared length of each class mean, less noise


def find_places(vectors: Vectors, of_batch: BatchTilts, present: Presence, joint: JointLabels) -> Places:
    """Compare items with the candidate classes."""
    reference = vectors.reference
    own = joint.columns * present.valid[:, None]
    shares = np.asarray(own / np.maximum(own.sum(-1, keepdims=True), np.finfo(own.dtype).tiny))
    means = reference.head.means[present.columns]
    dots = vectors.points @ means.swapaxes(1, 2) - (means @ of_batch.offset[..., None]).swapaxes(1, 2)
    return Places(shares, np.asarray(dots), reference.lengths[present.columns])


def distance_ratio(scores: Scores, vectors: Vectors, of_batch: BatchTilts, places: Places) -> Floats:
    """f: lower quartile of squared distances of items from their classes, over that of left-out examples, [batch]."""
    model = vectors.reference.unknown_model
    unlabelled = ~scores.labelled
    if model is None:
        return np.ones(len(unlabelled))
    away = distances(vectors, of_batch, places)
    # Items that a person labelled come last, and are not counted.
    largest = np.finfo(away.dtype).max
    away = np.sort(np.where(unlabelled, away, largest), axis=-1)
    last = unlabelled.sum(-1, keepdims=True) - 1
    # Unknown items are rarely among the nearest quarter.
    at = vectors.reference.settings.near_part * np.maximum(last, 0)
    lower = np.take_along_axis(away, np.floor(at).astype(np.intp), -1)
    upper = np.take_along_axis(away, np.ceil(at).astype(np.intp), -1)
    quarter = np.where(last < 0, model.quarter, lower + (at - np.floor(at)) * (upper - lower))[:, 0]
    return np.maximum(quarter / model.quarter, 0.0)


def distances(vectors: Vectors, of_batch: BatchTilts, places: Places) -> Floats:
    """Squared distance of each item from its classes, [batch, item]."""
    inside = vectors.without(of_batch.offset)
    away = np.einsum("bnd,bnd->bn", inside, inside)
    return np.asarray(away + (places.shares * (places.lengths[:, None] - 2 * places.dots)).sum(-1))


def own_scores(scores: Scores, of_batch: BatchTilts, present: Presence, places: Places) -> Floats:
    """Score of each item for its own classes, [batch, item]."""
    nats = np.maximum(take_columns(scores.nats, present.columns), scores.top + LOWEST)
    tilts = take_columns(of_batch.of_offset, present.columns)[:, None].astype(places.shares.dtype)
    return np.asarray((places.shares * (nats + tilts)).sum(-1))


def linked_values(scores: Scores, vectors: Vectors, of_batch: BatchTilts, present: Presence, places: Places) -> Floats:
    """Return what is averaged over groups of items, [batch, item, number].

    That is `<x - c, c - d>` and `|x - c|²`, with c the centre of the class means and d the offset; the score of the
    item's own classes; and the products of the item and the means of the candidate classes.
    """
    own = own_scores(scores, of_batch, present, places)
    inside = vectors.points - vectors.reference.centre
    direction = (vectors.reference.centre - of_batch.offset)[..., None]
    squares = np.einsum("bnd,bnd->bn", inside, inside)
    return np.concatenate([inside @ direction, squares[..., None], own[..., None], places.dots], -1)


def gather_evidence(
    scores: Scores,
    vectors: Vectors,
    of_batch: BatchTilts,
    present: Presence,
    places: Places,
    labels: FixedLabels | None,
    linked: Linked | None = None,
) -> UnknownEvidence:
    """`t` of the group of each item, compared with the classes of the item; items of the same batch are linked."""
    reference = vectors.reference
    model = reference.unknown_model
    assert model is not None
    if linked is None and scores.n_items == 1 and not scores.labelled.any():
        t = model.statistic(distances(vectors, of_batch, places), own_scores(scores, of_batch, present, places))
        one = np.ones_like(t)
        return UnknownEvidence(t, one, one, scores.labelled, scores.restriction)
    mine = linked_values(scores, vectors, of_batch, present, places)
    if linked is None:
        rows = vectors.anchor_rows
        linked = Linked(vectors.anchors, mine[:, rows], places.shares[:, rows], rows, np.arange(len(rows)))
        compared = vectors.compared
    else:
        compared = linked.anchors.compare(vectors.points, linked.rows, linked.numbers)
    links = linked.anchors.link(compared, places.shares @ linked.shares.swapaxes(1, 2))
    sizes = links.sizes
    means = links.means(linked.values, mine)
    along, squares, nats = np.moveaxis(means[..., : -places.dots.shape[-1]], -1, 0)
    dots = means[..., -places.dots.shape[-1] :]
    away = links.squares + 2 * along + ((reference.centre - of_batch.offset) ** 2).sum(-1)[:, None]
    away = away + (places.shares * (places.lengths[:, None] - 2 * dots)).sum(-1)
    # A centroid has less noise than an item: that of its own items, as far as there are several.
    around = np.maximum(squares - links.squares, 0.0)
    away = away + reference.spread - (reference.spread / sizes + around) / sizes
    t = model.statistic(away, nats)
    weights = 1 / links.alike
    labelled = scores.labelled
    if labels is not None and labelled.any():
        t = t.copy()
        sizes = np.where(labelled, 1, sizes)
        t[labelled], counted = _statistic_of_labelled(vectors, of_batch, labels)
        weights[labelled] *= counted
    return UnknownEvidence(t, sizes, weights, labelled, scores.restriction)


def _statistic_of_labelled(vectors: Vectors, of_batch: BatchTilts, labels: FixedLabels) -> tuple[Floats, Floats]:
    """`t` of the items that a person labelled, as if they were no examples, and whether it counts.

    With s examples of the class, the mean without x is `μ - (x - μ)/(s - 1)`. It does not count if that cannot be
    known, and for a class without a name.
    """
    reference = vectors.reference
    head = reference.head
    model = reference.unknown_model
    assert model is not None
    labelled: Bools = labels.given
    codes = labels.code[labelled]
    points = vectors.points[labelled].astype(np.float64)
    others = head.mass[codes].astype(np.float64) - 1
    alone = (others < 0.5) | (codes >= reference.n_named)
    others = np.where(others < 0.5, 1, others)
    moved = np.broadcast_to(of_batch.offset[:, None], vectors.points.shape)[labelled]
    away = (points - head.means[codes]) * (1 + 1 / others)[:, None] - moved
    scores = ((points - moved) * head.weights[codes]).sum(-1) + head.offsets[codes] - model.gain
    t = model.statistic((away**2).sum(-1) - reference.spread / others, scores)
    return np.where(alone, 0, t), np.where(alone, 0.0, 1.0)
