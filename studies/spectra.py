"""Which compounds: names of mass spectra by the nearest spectrum of a library, by class means, and jointly.

    python studies/spectra.py DATA [--batches 100] [--only Athens]
    python studies/spectra.py --render

DATA is a folder that holds `massbank-two-labs`: the library of one laboratory, 1,152 compounds with 3 to 6 spectra
each, and spectra of two others. A run has all spectra that one of these has of 10 to 30 compounds; `some unknown`: and
of a quarter as many that the library lacks. Those of Athens are the runs of `real_uses.py`.

A compound is a candidate of a spectrum if the library has a precursor of it within 0.01 Da, or 0.5, or any
(`any`). A spectrum without a candidate is unknown by every rule.

- `cosine`: the compound of the nearest spectrum; every spectrum with a candidate has a name.
- `modified`: the same with the modified cosine, where peaks may also match after a shift by the difference of the
  precursors, paired greedily, the largest product first. Vectors have bins of 1 Da, so the shift is a whole number, and
  without one it is the cosine: it differs where any precursor will do.
- `cosine, 0.7`, `modified, 0.7`: unknown below 0.7.
- `cosine, equal`, `modified, equal`: unknown below the threshold, chosen in hindsight over all runs of a cell, that
  names most spectra while the share of right ones among those named is that of `jointly`, or more.
- `means`: the nearest class mean.
- `sparse_em`: the simple control (`control.py`), a linear head and EM of the compounds' shares, among the candidates.
- `jointly, named`: `BatchClassifier` with the candidates of each spectrum; all that have one have a name.
- `jointly`: the same, unknown if rejected.
- `jointly, equal`: unknown below a chance to be right, chosen in hindsight as above, so that those named are right as
  often as by `cosine, 0.7`.

These are not the figures of matchms. It compares peaks, and the data have vectors alone; with exact masses the nearest
spectrum is better than here. Figures are percent: right names of known compounds, unknown ones called unknown, known
ones called unknown, and right ones among those named. Intervals are those of paired differences over runs. Results
are kept in `studies/results/spectra`; `--render` writes the page from them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from control import CONTROL, control, head_scores
from handful.estimators import BatchClassifier
from handful_fewshot.reports.summary import MeanEstimate
from handful_fewshot.reports.tables import markdown_table
from pages import Page, dots, file_of, keep, kept, mean, measure_or_render
from real_uses import CELLS, COMPOUNDS, array, run_of

RESULTS = Path(__file__).parent / "results" / "spectra"
LABORATORIES = ("BAFG", "Athens")  # as the data number them
WINDOWS = {"0.01": 0.01, "0.5": 0.5, "any": np.inf}
UNKNOWN, USUAL = -1, 0.7
RULED_OUT = -1e9  # score of a compound that is no candidate: its chance is zero
POOLED = ("thresholds", "candidates", "precision", "right of several")  # over all spectra of a kind of run
Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Spectra(NamedTuple):
    """Vectors, compounds and precursors of spectra."""

    vectors: Floats
    labels: Ints
    masses: Floats


class Named(NamedTuple):
    """Compound and score of each spectrum; without a candidate UNKNOWN, and a score of minus infinity."""

    labels: Ints
    scores: Floats

    def above(self, threshold: float) -> Named:
        """Leave unknown what has a lower score."""
        return Named(np.where(self.scores < threshold, UNKNOWN, self.labels), self.scores)

    def of(self, rows: Ints) -> Named:
        """Return some of them."""
        return Named(self.labels[rows], self.scores[rows])


def loaded(data: Path) -> tuple[Spectra, Spectra, Ints]:
    """Read the library, the spectra of both laboratories, and the laboratory of each."""
    folder = data / "massbank-two-labs"
    library, items = (
        Spectra(*(array(folder / f"{part}{what}.npy") for what in ("", "_labels", "_precursor")))
        for part in ("reference", "query")
    )
    return library, items, array(folder / "query_lab.npy")


def allowed_of(library: Spectra, masses: Floats, window: float) -> Bools:
    """Return the candidates of each spectrum, [spectrum, compound]."""
    found = np.zeros((len(masses), library.labels.max() + 1), bool)
    for row, mass in enumerate(masses):
        found[row, library.labels[np.abs(library.masses - mass) < window]] = True
    return found


def best(scores: Floats, labels: Ints, allowed: Bools) -> Named:
    """Return the label of the highest score that each spectrum allows."""
    scores = np.where(allowed[:, labels], scores, -np.inf)
    top = scores.max(1)
    return Named(np.where(np.isfinite(top), labels[scores.argmax(1)], UNKNOWN), top)


def nearest_mean(library: Spectra, vectors: Floats, allowed: Bools) -> Named:
    """Return the class whose mean is nearest."""
    classes = np.unique(library.labels)
    means = np.stack([library.vectors[library.labels == k].mean(0, dtype=np.float64) for k in classes])
    return best(vectors @ means.T - (means**2).sum(1) / 2, classes, allowed)


def nearest_modified(library: Spectra, items: Spectra) -> Named:
    """Return the compound of the nearest spectrum by the modified cosine, without a window."""
    rows, columns = library.vectors.nonzero()
    values, dim = library.vectors[rows, columns], library.vectors.shape[1]
    labels, scores = np.empty(len(items.labels), np.int64), np.empty(len(items.labels))
    for number, (vector, mass) in enumerate(zip(items.vectors, items.masses, strict=True)):
        shifts = np.rint(mass - library.masses).astype(np.int64)
        at = columns + shifts[rows]
        inside = (at >= 0) & (at < dim) & (shifts[rows] != 0)
        moved = np.bincount(rows, np.where(inside, values * vector[at.clip(0, dim - 1)], 0), len(library.labels))
        # Pairs of peaks are some of those behind both sums, so that no score is above this.
        most = library.vectors @ vector + moved
        top, of = -np.inf, 0
        for row in np.argsort(-most, kind="stable"):
            if most[row] <= top:
                break
            score = modified_cosine(vector, library.vectors[row], int(shifts[row]))
            if score > top:
                top, of = score, row
        labels[number], scores[number] = library.labels[of], top
    return Named(labels, scores)


def modified_cosine(one: Floats, other: Floats, shift: int) -> float:
    """Return the sum of products of peaks at the same place, or `shift` higher in `one`; no peak is paired twice."""
    mine = one.nonzero()[0].tolist()
    pairs = [(float(one[i] * other[i]), i, i) for i in mine if other[i]]
    if shift:
        pairs += [(float(one[i] * other[j]), i, j) for i in mine if 0 <= (j := i - shift) < len(other) and other[j]]
    total, taken, given = 0.0, set[int](), set[int]()
    for product, i, j in sorted(pairs, reverse=True):
        if i not in taken and j not in given:
            total += product
            taken.add(i)
            given.add(j)
    return total


def jointly(classifier: BatchClassifier, vectors: Floats, allowed: Bools) -> tuple[Named, Named]:
    """Label a run, all spectra with a candidate, and those that are not rejected; scores are chances to be right.

    Spectra without a candidate are left out of the batch, as `handful classify` leaves them out.
    """
    some = allowed.any(1)
    known: dict[str, Any] = {}
    if not allowed.all():
        known["candidates"] = [np.flatnonzero(one).tolist() for one in allowed[some]]
    chance = np.full(len(vectors), -np.inf)
    named = np.full(len(vectors), UNKNOWN)
    rejected = np.ones(len(vectors), dtype=bool)
    if some.any():
        with warnings.catch_warnings(action="ignore"):
            found = classifier.infer(vectors[some], **known)
        chance[some] = found.certainty
        named[some] = found.labels
        rejected[some] = found.rejected
    return Named(named, chance), Named(np.where(rejected, UNKNOWN, named), chance)


def controlled(classifier: BatchClassifier, vectors: Floats, allowed: Bools) -> Named:
    """Label a run by the simple control; its scores are not used."""
    some = allowed.any(1)
    named = np.full(len(vectors), UNKNOWN)
    if some.any():
        named[some] = control(np.where(allowed[some], head_scores(classifier, vectors[some]), RULED_OUT))
    return Named(named, np.where(some, 1.0, -np.inf))


def precision(names: Ints, truth: Ints) -> float:
    """Share of right ones among the spectra that have a name; 1 if none has."""
    named = names != UNKNOWN
    return float((names == truth)[named].mean()) if named.any() else 1.0


def threshold(found: Named, truth: Ints, wanted: float) -> float:
    """Return the lowest threshold with this precision; infinite if none has it."""
    order = np.argsort(-found.scores, kind="stable")
    scores, named = found.scores[order], (found.labels != UNKNOWN)[order]
    right = np.cumsum((found.labels == truth)[order] & named) / np.maximum(np.cumsum(named), 1)
    # A threshold lets in all spectra of its score.
    ends = np.append(scores[:-1] != scores[1:], True) & np.isfinite(scores) & (right >= wanted - 1e-12)
    return float(scores[ends].min()) if ends.any() else np.inf


def figures(names: Ints, truth: Ints) -> dict[str, float]:
    """Percent of known compounds that are right, and rejected, and of unknown ones found, if there are any."""
    known, named = truth < COMPOUNDS, names != UNKNOWN
    return percent({"right": (names == truth)[known], "rejected": ~named[known], "found": ~named[~known]})


def percent(parts: Mapping[str, Bools]) -> dict[str, float]:
    """Percent of each, with two decimals; what has no entries is left out."""
    return {name: round(100 * float(of.mean()), 2) for name, of in parts.items() if len(of)}


def cell(runs: Sequence[Ints], truth: Ints, choices: Ints, rules: Mapping[str, Sequence[Named]]) -> dict[str, Any]:
    """Return figures over all runs, and of each; these are rows of `truth` and of `choices`, numbers of candidates."""
    true, n = (np.concatenate([of[rows] for rows in runs]) for of in (truth, choices))
    known, every, pooled = true < COMPOUNDS, dict[str, Sequence[Named]](), dict[str, Named]()

    def add(rule: str, found: Sequence[Named]) -> None:
        every[rule] = found
        pooled[rule] = Named(*(np.concatenate(part) for part in zip(*found, strict=True)))

    for rule, found in rules.items():
        add(rule, found)
    nearest = [rule for rule in rules if rule in ("cosine", "modified")]
    for rule in nearest:
        add(f"{rule}, {USUAL}", [one.above(USUAL) for one in rules[rule]])
    wanted = {f"{rule}, equal": (rule, "jointly") for rule in nearest}
    wanted["jointly, equal"] = ("jointly, named", f"cosine, {USUAL}")
    thresholds = {}
    for rule, (of, like) in wanted.items():
        at = threshold(pooled[of], true, precision(pooled[like].labels, true))
        add(rule, [one.above(at) for one in rules[of]])
        thresholds[rule] = round(at, 4) if np.isfinite(at) else None
    return {
        "thresholds": thresholds,
        "candidates": percent({"one": n[known] == 1, "none": n[known] == 0, "none, of unknown ones": n[~known] == 0}),
        "precision": {rule: round(100 * precision(found.labels, true), 2) for rule, found in pooled.items()},
        "right of several": percent({rule: (of.labels == true)[known & (n > 1)] for rule, of in pooled.items()}),
        "runs": [
            {rule: figures(found[number].labels, truth[run]) for rule, found in every.items()}
            for number, run in enumerate(runs)
        ],
    }


def measured(data: Path, laboratory: str, classifier: BatchClassifier, n: int) -> dict[str, Any]:
    """Measure the runs of a laboratory."""
    library, both, origin = loaded(data)
    here = origin == LABORATORIES.index(laboratory)
    items, place = Spectra(*(part[here] for part in both)), np.cumsum(here) - 1
    cosines, modified = items.vectors @ library.vectors.T, nearest_modified(library, items)
    cells: dict[str, Any] = {}
    for window, width in WINDOWS.items():
        allowed = allowed_of(library, items.masses, width)
        by = {
            "cosine": best(cosines, library.labels, allowed),
            "means": nearest_mean(library, items.vectors, allowed),
            **({} if np.isfinite(width) else {"modified": modified}),
        }
        for unknown in (False, True):
            seeds = [[CELLS.index("spectra"), unknown, number] for number in range(n)]
            runs = [place[run_of(both.labels, here, unknown, np.random.default_rng(seed))] for seed in seeds]
            rules = {rule: [found.of(rows) for rows in runs] for rule, found in by.items()}
            joint = [jointly(classifier, items.vectors[rows], allowed[rows]) for rows in runs]
            rules[CONTROL] = [controlled(classifier, items.vectors[rows], allowed[rows]) for rows in runs]
            rules["jointly, named"], rules["jointly"] = map(list, zip(*joint, strict=True))
            what = f"{window}, {'some unknown' if unknown else 'all known'}"
            cells[what] = cell(runs, items.labels, allowed.sum(1), rules)
            print(laboratory, what, flush=True)
    return cells


# Each joint rule, and the one it is compared with.
AGAINST = {"jointly, named": "cosine", "jointly, equal": f"cosine, {USUAL}", "jointly": "cosine, equal"}
# Rules as the page calls them: those that name every spectrum with a candidate, and those that leave some unnamed.
NAMING = {"cosine": "cosine", "means": "class means", CONTROL: "`sparse_em`", "jointly, named": "**jointly**"}
CHOOSING = {
    "cosine, 0.7": "cosine ≥ 0.7",
    "jointly, equal": "**jointly, as precise**",
    "jointly": "**jointly, `--unknown`**",
}


def gains(of: Mapping[str, Any], rule: str) -> Floats:
    """Return how many more known compounds are right than by the rule it is compared with, run by run."""
    return np.array([row[rule]["right"] - row[AGAINST[rule]]["right"] for row in of["runs"]])


def over_control(kinds: Iterable[Mapping[str, Any]]) -> str:
    """Return what joint names gain on the control, in points of right names, for each kind of run."""
    each = ([row["jointly, named"]["right"] - row[CONTROL]["right"] for row in of["runs"]] for of in kinds)
    return ", ".join(MeanEstimate.of(np.array(points)).text(sign="+") for points in each)


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the means: of runs with all known, where all are named; and of runs with some unknown, right and found."""
    lines = []
    for laboratory, cells in found.items():
        for window in WINDOWS:
            line = [laboratory, window]
            for rules, what, parts in (
                (NAMING, "all known", ("right",)),
                (CHOOSING, "some unknown", ("right", "found")),
            ):
                of = cells[f"{window}, {what}"]
                for rule in rules:
                    line.append("/".join(f"{mean(row[rule][part] for row in of['runs']):.0f}" for part in parts))
                    if rule in AGAINST and rule != "jointly":
                        line[-1] += f" ({MeanEstimate.of(gains(of, rule)).text(sign='+')})"
            lines.append(line)
    return markdown_table(["runs of", "within, Da", *NAMING.values(), *CHOOSING.values()], lines)


def span(values: Iterable[float]) -> str:
    """Return the lowest and the highest of some figures."""
    low, *_, high = sorted(values)
    return f"{low:.0f}" if round(low) == round(high) else f"{low:.0f} to {high:.0f}"


def page() -> Page:
    """Make the page from what was kept."""
    found = kept(RESULTS, LABORATORIES)
    every = {f"{laboratory}, {what}": of for laboratory, cells in found.items() for what, of in cells.items()}
    by = {window: [of for what, of in every.items() if f", {window}," in what] for window in WINDOWS}
    several = [of["right of several"]["jointly, named"] - of["right of several"]["cosine"] for of in by["0.01"]]
    added = {window: span(gains(of, "jointly, named").mean() for of in kinds) for window, kinds in by.items()}
    over = "; ".join(f"{window} Da {over_control(kinds)}" for window, kinds in by.items())
    lost = [mean(row["cosine, 0.7"]["rejected"] for row in of["runs"]) for of in by["0.01"] + by["0.5"]]
    shifted = [mean(row["cosine"]["right"] - row["modified"]["right"] for row in of["runs"]) for of in by["any"]]
    within = {what: of for what, of in every.items() if "any" not in what}
    unknown_found = span(
        mean(row["jointly"]["found"] for row in of["runs"]) for what, of in within.items() if "some" in what
    )
    left = {
        laboratory: span(
            mean(row["jointly"]["rejected"] for row in of["runs"])
            for what, of in every.items()
            if laboratory in what and "all known" in what
        )
        for laboratory in LABORATORIES
    }
    shown = {
        what: {
            "all named: jointly, minus cosine": gains(of, "jointly, named").tolist(),
            "equally precise: jointly, minus cosine ≥ 0.7": gains(of, "jointly, equal").tolist(),
        }
        for what, of in every.items()
    }
    return Page(
        name="spectra",
        title="Mass spectra",
        question=(
            "Which compounds are in a run, with a library of 1,152 compounds from another laboratory? Usually each "
            "spectrum has the compound of the nearest one by the cosine, or none below 0.7. A run of *BAFG* or "
            "*Athens* has 10 to 30 compounds; *some unknown*: and a quarter as many that the library lacks. Candidates "
            "have a precursor within 0.01 Da, 0.5 Da, or *any*. `sparse_em` is the simple control, a linear classifier "
            "and the shares of the compounds. First four rules, in runs with all compounds known: "
            "percent of spectra with the right name. Last three, in runs with some unknown: percent of spectra of "
            "known compounds with the right name/of unknown ones left without. *As precise*: at a threshold where "
            "names are right as often as with cosine ≥ 0.7, or more. In brackets, points gained on the cosine, and on "
            "cosine ≥ 0.7, with 95% intervals over 100 runs."
        ),
        alt="Points gained by joint names, in twelve kinds of runs",
        figure=lambda: dots(shown, "percent of spectra of known compounds, gained", at=0),
        table=table(found),
        shows=(
            f"Within 0.01 Da there is little to gain: {span(of['candidates']['one'] for of in by['0.01'])}% of the "
            "spectra of known compounds have one candidate, most of unknown compounds have none, and where there are "
            f"several, the batch adds {span(several)} points to the cosine. It adds {added['0.5']} at 0.5 Da, and "
            f"{added['any']} without a window. Within a window, 0.7 finds nearly all unknown compounds, but leaves "
            f"{span(lost)}% of the known ones without a name. Equally precise joint names, by a threshold on "
            "`certainty`, are right more often in all kinds of runs. Without a window hardly any unknown compound is "
            f"found that way. `--unknown` finds {unknown_found}% of the unknown spectra within a window. In runs "
            f"without any, it leaves {left['Athens']}% of the spectra of Athens without a name, but {left['BAFG']}% "
            "of those of BAFG, half of which look unlike the library. The modified cosine, without a window, has "
            f"{span(shifted)} points less than the cosine. Gained on `sparse_em` by joint names, in runs of BAFG and "
            f"of Athens, each without and with unknown compounds: {over}."
        ),
        limits=(
            "This is the cosine of bins of 1 Da, into which handful reads spectra; a cosine of peaks at exact "
            "masses, as "
            "in matchms, may well be ahead of both, above all without a window. Thresholds that make two rules equally "
            "precise are chosen in hindsight. There is one library, and two laboratories."
        ),
        made=(
            "Vectors of `massbank-two-labs`: MassBank, spectra of Eawag (the library), BAFG and the University of "
            "Athens. [Name compounds](../do/spectra.md) explains the first command. The docstring of "
            "`studies/spectra.py` defines runs and rules."
        ),
        commands=[
            "handful classify library.msp run.mgf --candidates precursor:0.5 --out named.mgf",
            "python studies/spectra.py DATA",
            "python studies/spectra.py --render",
        ],
        rows=[{"kind": what, "run": n, **row} for what, of in every.items() for n, row in enumerate(of["runs"])],
        more={"kinds": [{"kind": what, **{key: of[key] for key in POOLED}} for what, of in every.items()]},
    )


@cache
def fitted(data: Path) -> BatchClassifier:
    """Fit the library."""
    library, _, _ = loaded(data)
    with warnings.catch_warnings(action="ignore"):
        return BatchClassifier().fit(library.vectors, library.labels)


def measure(data: Path, laboratory: str, n: int) -> None:
    """Measure the runs of a laboratory and keep them."""
    keep(file_of(RESULTS, laboratory), measured(data, laboratory, fitted(data), n), levels=3)


if __name__ == "__main__":
    measure_or_render(__doc__, LABORATORIES, measure, page)
