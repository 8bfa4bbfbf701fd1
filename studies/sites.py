"""What a batch gains from the labels of its siblings, and from what is known about it in advance.

    python studies/sites.py DATA --group tuning [--banks clinc150-minilm ...]
    python studies/sites.py DATA --group confirmation
    python studies/sites.py --render

DATA is a folder that holds the banks of the group. The rules were chosen on the tuning group; the confirmation group
was run once, at the end. The catalogue has five examples per class. Items of batches are never examples.

**Sites.** A site has 3 to 10 of the classes, in shares drawn from a flat Dirichlet. It is visited 20 times; a visit is
a batch of 5, 10 or 30 items. In `same`, shares stay. In `drift`, log-shares take a random step of 0.3 before each
visit, and with a chance of 0.15 a class is replaced by another. In `fresh`, every visit has classes and shares of its
own, so that there is nothing in common. `pooled` is `pool=site`; `carried` is `pool=site, order=visit`. `sparse_em`,
the simple control (`control.py`), finds the shares of each visit by itself, and `sparse_em, site` those of all visits
to a site at once. Intervals are those of the mean difference over 50 sites.

**Known in advance.** Fresh batches, six for each of 50 draws. `right`: the classes of the batch have the weight 1, all
others 0.01. `shares`: the true shares, at least 0.01 of the largest. `incomplete`: as `right`, but each class of the
batch has the weight 0.01 with a chance of one quarter. `wrong`: the classes of the batch have the weight 0.01, all
others 1. `candidates`: the classes of the batch and no others. The first batch of each draw is also labelled by a
catalogue that has the examples of these classes alone, which is fitted again.

Results are kept in `studies/results/sites/GROUP/BANK.json`; what is there is not measured again without `--again`.
`--render` writes the page from them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bank_data import Ints, bank, orders, rng_of
from control import control, head_scores
from handful.estimators import Answer, BatchClassifier
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from pages import Cells, Page, dots, kept, mean, measure_groups

RESULTS = Path(__file__).parent / "results" / "sites"
GROUPS = {
    "tuning": ("clinc150-minilm", "cub200-efflite0"),
    "confirmation": ("banking77-minilm", "tinyimagenet200-efflite0"),
}
SHOTS, SITES, VISITS, SIZES = 5, 50, 20, (5, 10, 30)
KINDS = ("same", "drift", "fresh")
KNOWN = ("right", "incomplete", "wrong", "candidates")
FEWEST, MOST = 3, 10
STEP, REPLACED = 0.3, 0.15
KNOWN_VISITS, LIGHT, FORGOTTEN = 6, 0.01, 0.25
# Part of the study, kind of shares, and items per batch.
CELLS = [
    *[("sites", kind, size) for kind in KINDS for size in SIZES],
    *[("known", "fresh", size) for size in SIZES],
]
Row = dict[str, Any]
Shares = dict[int, float]


def shares_of_visits(rng: np.random.Generator, n_classes: int, kind: str, visits: int) -> Iterator[Shares]:
    """Draw the shares of the classes at each visit to a site."""

    def drawn() -> tuple[Ints, np.ndarray[Any, np.dtype[np.float64]]]:
        n = int(rng.integers(FEWEST, MOST + 1))
        return rng.choice(n_classes, n, replace=False), rng.dirichlet(np.ones(n))

    classes, shares = drawn()
    for visit in range(visits):
        if kind == "fresh" and visit:
            classes, shares = drawn()
        if kind == "drift" and visit:
            shares = (shares + 1e-4) * np.exp(STEP * rng.normal(size=len(shares)))
            shares /= shares.sum()
            if rng.random() < REPLACED:
                classes = classes.copy()
                others = np.setdiff1d(np.arange(n_classes), classes)
                classes[rng.integers(len(classes))] = rng.choice(others)
        yield dict(zip(classes.tolist(), shares.tolist(), strict=True))


def items(rng: np.random.Generator, left: list[Ints], shares: Shares, size: int) -> Ints:
    """Draw the items of a visit; an item comes twice only if its class has no others."""
    numbers = rng.multinomial(size, list(shares.values()))
    return np.concatenate(
        [rng.choice(left[k], n, replace=n > len(left[k])) for k, n in zip(shares, numbers, strict=True) if n]
    )


class Visits:
    """Visits to some sites, and what a classifier makes of them."""

    def __init__(self, folder: Path, kind: str, size: int, visits: int) -> None:
        rng = rng_of(folder.name, "sites", kind, size)
        left = [order[SHOTS:] for order in orders(folder, 0)]
        self.shares = [list(shares_of_visits(rng, len(left), kind, visits)) for _ in range(SITES)]
        rows = np.concatenate([items(rng, left, shares, size) for site in self.shares for shares in site])
        features, labels = bank(folder)
        self.features, self.truth = features[rows], labels[rows]
        self.visit = np.arange(SITES * visits).repeat(size)
        self.site = self.visit // visits

    def right(self, labels: Ints) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Percent of the items of each site with the right label."""
        right: np.ndarray[Any, np.dtype[np.float64]] = (labels == self.truth).reshape(SITES, -1).mean(1)
        return 100 * right


def examples_of(folder: Path) -> tuple[Any, Any]:
    """Return the examples of the catalogue and their labels."""
    features, labels = bank(folder)
    rows = np.concatenate([order[:SHOTS] for order in orders(folder, 0)])
    return features[rows], labels[rows]


def said(estimate: MeanEstimate) -> list[float]:
    """Mean and half width, as results keep them."""
    return [round(estimate.mean, 2), round(estimate.half_width, 2)]


def sites(folder: Path, classifier: BatchClassifier, kind: str, size: int) -> Row:
    """Compare batches alone with batches pooled and carried over."""
    visits = Visits(folder, kind, size, VISITS)
    x, groups, began = visits.features, visits.visit, time.process_time()
    alone = visits.right(classifier.predict(x, groups=groups))
    seconds = {"alone": round(time.process_time() - began, 1)}
    row: Row = {"alone": round(float(alone.mean()), 2)}
    for name, order in (("pooled", None), ("carried", visits.visit)):
        began = time.process_time()
        found = classifier.infer(x, groups=groups, pool=visits.site, order=order)
        seconds[name] = round(time.process_time() - began, 1)
        assert found.pooling is not None
        row[name] = {
            "ahead": said(MeanEstimate.of(visits.right(found.labels) - alone)),
            "used": int(found.pooling.used.sum()),
            "gain": round(float(np.median(found.pooling.gain)), 3),
            "concentration": found.pooling.concentration,
            "forgetting": found.pooling.forgetting,
        }
        if order is None:
            together = visits.right(found.labels)
    scores = head_scores(classifier, x)
    by_site = visits.right(controlled(scores, visits.site))
    row["control"] = {
        "visit": said(MeanEstimate.of(visits.right(controlled(scores, visits.visit)) - alone)),
        "site": said(MeanEstimate.of(by_site - alone)),
        "pooled_ahead": said(MeanEstimate.of(together - by_site)),
    }
    return {**row, "seconds": seconds}


def controlled(scores: Any, groups: Ints) -> Ints:
    """Label every group as a batch by the simple control; its columns are the classes of the bank, in order."""
    labels = np.empty(len(scores), np.int64)
    for group in np.unique(groups):
        here = groups == group
        labels[here] = control(scores[here])
    return labels


def known(folder: Path, classifier: BatchClassifier, kind: str, size: int) -> Row:
    """Compare batches alone with batches about which something is known, right or wrong."""
    examples, labels = examples_of(folder)
    classes = classifier.classes_.tolist()
    visits = Visits(folder, kind, size, KNOWN_VISITS)
    rng = rng_of(folder.name, "known", size)
    alone = visits.right(classifier.predict(visits.features, groups=visits.visit))
    priors: dict[str, dict[int, dict[int, float]]] = {name: {} for name in ("right", "shares", "incomplete", "wrong")}
    lists: dict[int, list[int]] = {}
    smaller = np.empty_like(visits.truth)
    for group, shares in enumerate(shares for site in visits.shares for shares in site):
        forgotten = {k for k in shares if rng.random() < FORGOTTEN}
        most = max(shares.values())
        priors["right"][group] = {k: 1.0 if k in shares else LIGHT for k in classes}
        priors["shares"][group] = {k: max(shares.get(k, 0) / most, LIGHT) for k in classes}
        priors["incomplete"][group] = {k: 1.0 if k in shares and k not in forgotten else LIGHT for k in classes}
        priors["wrong"][group] = {k: LIGHT if k in shares else 1.0 for k in classes}
        lists[group] = list(shares)
        if group % KNOWN_VISITS == 0:
            mine, rows = np.isin(labels, lists[group]), visits.visit == group
            smaller[rows] = BatchClassifier().fit(examples[mine], labels[mine]).predict(visits.features[rows])
    row: Row = {"alone": round(float(alone.mean()), 2)}
    for name, prior in priors.items():
        found: Answer = classifier.infer(visits.features, groups=visits.visit, prior=prior)
        assert found.prior_weight is not None
        row[name] = {
            "ahead": said(MeanEstimate.of(visits.right(found.labels) - alone)),
            "prior_weight": round(float(found.prior_weight.mean()), 2),
        }
    listed = classifier.predict(visits.features, groups=visits.visit, candidates=lists)
    ahead = (listed == visits.truth).astype(float) - (smaller == visits.truth)
    row["candidates"] = {
        "ahead": said(MeanEstimate.of(visits.right(listed) - alone)),
        "ahead_of_smaller": said(MeanEstimate.of(100 * ahead.reshape(SITES, KNOWN_VISITS, size)[:, 0].mean(1))),
    }
    return row


def matches(row: Row, kind: str, size: int) -> bool:
    """Whether a cell has these shares and as many items."""
    return (row["kind"], row["items"]) == (kind, size)


def page() -> Page:
    """Make the page."""
    found = {group: kept(RESULTS / group, banks) for group, banks in GROUPS.items()}
    banks = list(found["confirmation"].values())
    lines: list[list[object]] = []
    for size in SIZES:
        by_kind = {k: [r for of in banks for r in of["sites"] if matches(r, k, size)] for k in KINDS}
        told = [row for of in banks for row in of["known"] if row["items"] == size]
        if all(by_kind.values()) and told:
            alone = mean(row["alone"] for row in by_kind["same"])
            cells = [mean(row["pooled"]["ahead"][0] for row in by_kind[kind]) for kind in KINDS]
            cells.append(mean(row["carried"]["ahead"][0] for row in by_kind["same"]))
            cells += [mean(row["control"][by][0] for row in by_kind["same"]) for by in ("visit", "site")]
            cells += [mean(row[rule]["ahead"][0] for row in told) for rule in KNOWN]
            lines.append([size, f"{alone:.1f}", *(f"{points:+.1f}" for points in cells)])
    head = ["items", "alone", "pooled, same", "pooled, drift", "pooled, fresh", "carried over, same"]
    head += ["`sparse_em`", "`sparse_em`, site, same"]
    by_site = "; ".join(
        f"{kind} "
        + ", ".join(
            f"{mean(row['control']['site'][0] for of in banks for row in of['sites'] if matches(row, kind, size)):+.1f}"
            for size in SIZES
        )
        for kind in KINDS
    )
    gains = {
        f"{kind}, {size} items": {
            rule: [row[rule]["ahead"][0] for of in banks for row in of["sites"] if matches(row, kind, size)]
            for rule in ("pooled", "carried")
        }
        | {
            "sparse_em, site": [
                row["control"]["site"][0] for of in banks for row in of["sites"] if matches(row, kind, size)
            ]
        }
        for kind in KINDS
        for size in SIZES
    }
    return Page(
        name="sites",
        title="Sites",
        question=(
            "How much do small batches gain from other batches of the same site, or from what is known "
            "about their classes? *Alone* is the percent of right labels when each batch is labelled by itself; all "
            "other columns are points gained over that, means over banking77 and tinyimagenet200. Shares of the "
            "classes at a site stay the *same*, *drift*, or are *fresh* at every visit. Weights are *right*, the "
            "*incomplete* ones lack a quarter of the classes, and the *wrong* ones favour all others; *candidates* "
            "rule out all others. `sparse_em` is the simple control: EM of the shares of each visit, or of all visits "
            "to a *site* at once. [Many batches](../do/known.md) explains how to use them."
        ),
        alt="Points gained by pooling, by carrying over and by the control, by kind of shares and size of the batch",
        figure=lambda: dots(gains, "points gained over batches alone", at=0),
        table=markdown_table([*head, *(f"{rule} weights" for rule in KNOWN[:-1]), KNOWN[-1]], lines),
        shows=(
            "Other batches help where sites keep their classes, most of all small batches, and cost nothing where "
            "visits have nothing in common: then they are not used. Right weights help most. Wrong ones cost little, "
            "because the batch may contradict them. The simple control on all visits to a site as one batch is ahead "
            "of `pool=site` where visits are small and their shares alike, and far behind each visit alone where they "
            f"have nothing in common. Points gained with {', '.join(map(str, SIZES))} items: {by_site}."
        ),
        limits=(
            "Nothing was chosen on these two banks. Sites are made up: 3 to 10 classes in shares from a flat "
            "Dirichlet, 20 visits, 50 sites."
        ),
        made="Five examples per class. The docstring of `studies/sites.py` says how sites and visits are drawn.",
        commands=[
            "python studies/sites.py DATA --group tuning",
            "python studies/sites.py DATA --group confirmation",
            "python studies/sites.py --render",
        ],
        rows=[
            {"group": group, "bank": name, "part": part, **row}
            for group, of in found.items()
            for name, parts in of.items()
            for part, cells in parts.items()
            for row in cells
        ],
    )


def cells(folder: Path) -> Cells:
    """Yield the cells of a bank, all with one catalogue."""
    classifier = BatchClassifier().fit(*examples_of(folder))
    for part, kind, size in CELLS:
        measure = {"sites": sites, "known": known}[part]
        yield part, {"kind": kind, "items": size}, partial(measure, folder, classifier, kind, size)


if __name__ == "__main__":
    measure_groups(__doc__, GROUPS, RESULTS, cells, page)
