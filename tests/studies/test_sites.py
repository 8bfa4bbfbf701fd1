"""The study of sites: what is drawn, what is asked for, and the page."""

import itertools

import numpy as np
import pytest

import sites
from pages import keep


def row(kind="same", items=5, pooled=(3.0, 1.0), carried=(3.0, 1.0)):
    """Make a cell of sites."""
    used = {"used": 50, "gain": 1.0, "concentration": 8.0}
    return {
        "kind": kind,
        "items": items,
        "alone": 80.0,
        "pooled": {"ahead": list(pooled), **used, "forgetting": None},
        "carried": {"ahead": list(carried), **used, "forgetting": 0.9},
        "control": {"visit": [-1.0, 0.5], "site": [2.0, 1.0], "pooled_ahead": [1.0, 0.5]},
    }


def known(items=30, wrong=(-1.0, 0.5), right=(5.0, 1.0), smaller=(0.1, 0.3)):
    """Make a cell of what is known."""
    rules = {"right": right, "shares": right, "incomplete": right, "wrong": wrong}
    cells = {name: {"ahead": list(ahead), "prior_weight": 0.5} for name, ahead in rules.items()}
    candidates = {"ahead": [5.0, 1.0], "ahead_of_smaller": list(smaller)}
    return {"kind": "fresh", "items": items, "alone": 80.0, **cells, "candidates": candidates}


def found(**more):
    whole = {"sites": [row(items=n) for n in (5, 10, 30)], "known": [known(n) for n in (5, 10, 30)]}
    return {"a": {**whole, **more}}


def test_shares_stay_drift_or_are_drawn_afresh():
    same, drift, fresh = (list(sites.shares_of_visits(np.random.default_rng(0), 40, kind, 20)) for kind in sites.KINDS)
    assert all(shares == same[0] for shares in same)
    assert all(sum(shares.values()) == pytest.approx(1) for shares in drift + fresh)
    assert len({len(shares) for shares in drift}) == 1  # a class is replaced, not added
    common = [len(set(one) & set(other)) / len(one) for one, other in itertools.pairwise(drift)]
    assert np.mean(common) > 0.8
    assert drift[0] != drift[1]
    assert np.mean([len(set(one) & set(other)) for one, other in itertools.pairwise(fresh)]) < 3
    assert all(sites.FEWEST <= len(shares) <= sites.MOST for shares in fresh)


def test_items_are_of_the_shares_and_come_once():
    left = [np.arange(100 * k, 100 * k + 50) for k in range(5)]
    rows = sites.items(np.random.default_rng(0), left, {1: 0.75, 3: 0.25}, 40)
    assert len(rows) == len(set(rows.tolist())) == 40
    assert set((rows // 100).tolist()) == {1, 3}


def test_results_are_kept_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(sites, "RESULTS", tmp_path)
    of = found(sites=[row(kind, n) for kind in sites.KINDS for n in sites.SIZES])["a"]
    keep(tmp_path / "confirmation" / "banking77-minilm.json", of)
    shown = sites.page()
    assert "| 5 | 80.0 | +3.0 |" in shown.table
    assert len(shown.rows) == len(sites.CELLS)
