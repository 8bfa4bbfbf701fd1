"""Labelled batches made from a table of probabilities."""

from dataclasses import replace
from typing import Any

import numpy as np

from handful.classification import About, Batch
from handful.estimators import Answer
from handful.estimators.answer import best_two, group_at
from handful.estimators.certainty import certainty_of
from handful.reading.contents import Contents


def answer_of(table: Any, names: Any, sites: Any = None, **changes: Any) -> Answer:
    """Return an answer in which unknown items were not judged; with sites, one batch for each."""
    table = np.asarray(table)
    codes, best = best_two(table)
    groups, group_of = (None, None) if sites is None else np.unique(np.array(sites, dtype=object), return_inverse=True)
    n_groups = 1 if groups is None else len(groups)
    of_item = np.zeros(len(table), int) if group_of is None else group_of
    counts = np.array([table[of_item == place].sum(0) for place in range(n_groups)])
    absent = np.array([np.prod(1 - table[of_item == place], axis=0) for place in range(n_groups)])
    classes = np.empty(len(names), dtype=object)
    classes[:] = names
    unknown = changes.get("unknown", np.full(len(table), np.nan))
    found = Answer(
        classes=classes,
        codes=codes,
        _certainties=certainty_of(best, unknown, 1.0),
        _table=table,
        expected_counts=counts,
        presence=1 - absent,
        joint_weight=np.full(n_groups, 0.9),
        prior_weight=None,
        unknown=unknown,
        rejected=np.zeros(len(table), bool),
        _none_of_these=np.zeros(len(table), bool),
        unknown_interval=np.tile([0.0, 1.0], (n_groups, 1)),
        unknown_reason=None,
        proposals=((),) * n_groups,
        diagnostics=((),) * n_groups,
        groups=np.array(["all"]) if groups is None else groups,
        _group_of=of_item,
    )
    return replace(found if sites is not None else group_at(found, 0), **changes)


def classified(
    table: Any, names: Any, contents: Contents | None = None, skipped: Any = (), items: Any = None, sites: Any = None,
    about: Any = None, **changes: Any
) -> Answer:  # fmt: skip
    """Return the answer about a batch; `about` changes the answer, `changes` what it is about."""
    answer = answer_of(table, names, sites, **(about or {}))
    called = tuple(items or (f"item {i}" for i in range(len(answer.codes))))
    known = About(
        batch=Batch(range(len(called)), called, contents, tuple(skipped)),
        group_by=() if sites is None else ("site",),
        **{"n_examples": 20, "encoder": "minilm, weights 12ab"} | changes,
    )
    return replace(answer, about=known)
