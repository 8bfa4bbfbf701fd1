"""New groups: unknown items that belong together, proposed as classes.

Items join while the mean log-odds of their pairs, that both have the same class, exceed zero; the closest groups join
first. A group of `SMALLEST` different items or more is a proposal; a single item is not a class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from handful.shapes import Float, Int

SMALLEST = 3


class NewGroup(NamedTuple):
    """Items that look like one class that the catalogue does not have."""

    items: Int[Tensor, "item"]  # positions, the most typical first
    cohesion: float  # mean chance that two of them share a class
    worth: float  # expected number of unknown items times cohesion
    nearest: int  # the known class that describes them best


def new_groups(
    log_odds: Float[Tensor, "item item"],
    points: Float[Tensor, "item dim"],
    chances: Float[Tensor, "item"],
    scores: Float[Tensor, "item class"],
    which: Int[Tensor, "item"],
) -> list[NewGroup]:
    """Return the groups among unknown items, those of most worth first.

    Parameters
    ----------
    log_odds
        Of every pair, that both have the same class.
    points, chances, scores
        Their points, chances to be unknown, and scores of the known classes.
    which
        Equal for copies of an item.
    """
    found = []
    for members in agglomerated(log_odds):
        if len(set(which[members].tolist())) < SMALLEST:
            continue
        inside = points[members]
        order = (inside - inside.mean(0)).square().sum(1).argsort(stable=True)
        members = members[order]
        together = torch.sigmoid(log_odds[members][:, members]).double()
        n = len(members)
        cohesion = float((together.sum() - together.diagonal().sum()) / (n * (n - 1)))
        worth = float(chances[members].sum()) * cohesion
        found.append(NewGroup(members, cohesion, worth, int(scores[members].mean(0).argmax())))
    return sorted(found, key=lambda group: -group.worth)


def agglomerated(log_odds: Float[Tensor, "item item"]) -> list[Int[Tensor, "member"]]:
    """Join the two groups with the largest mean log-odds of a pair, as long as that is above zero."""
    # In NumPy: a step is a few operations on short rows, and torch takes several times as long to start one.
    between = log_odds.double().cpu().numpy().copy()
    np.fill_diagonal(between, -np.inf)
    n_items = len(between)
    sizes, members = np.ones(n_items), [[item] for item in range(n_items)]
    partner = between.argmax(1) if n_items else np.empty(0, np.int64)
    best = between[np.arange(n_items), partner]
    while n_items > 1:
        a = int(best.argmax())
        b = int(partner[a])
        if best[a] <= 0:
            break
        row = (sizes[a] * between[a] + sizes[b] * between[b]) / (sizes[a] + sizes[b])
        row[a] = row[b] = -np.inf
        between[a], between[:, a] = row, row
        between[b], between[:, b] = -np.inf, -np.inf
        sizes[a] += sizes[b]
        members[a] += members[b]
        members[b] = []
        # Only rows whose nearest group was one of the two need to be searched again; others may now be nearer to a.
        again = np.flatnonzero((partner == a) | (partner == b))
        partner[again] = between[again].argmax(1)
        best[again] = between[again, partner[again]]
        nearer = row > best
        best[nearer], partner[nearer] = row[nearer], a
        partner[a] = row.argmax()
        best[a], best[b] = row[partner[a]], -np.inf
    return [torch.tensor(group, device=log_odds.device) for group in members if group]
