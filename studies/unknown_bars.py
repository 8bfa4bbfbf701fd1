"""What the default has to show about items of no class, and whether it does: computed from what `unknown.py` measured.

AUROC, accuracy, shares, precision and recall are in percent. *Below by an interval* means that the whole 95 % interval
of the paired difference is below zero; *level* is the opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harm_bars import Bar, Found, Row, said, short
from unknown_scores import TRIAL

# AUROC of a trial before there was a method: calibrated distances, averaged over three neighbours, with a third of 60
# items unknown.
TRIALS = {
    "clinc150": 90.3,
    "banking77": 84.4,
    "hwu64": 85.1,
    "caltech101": 89.7,
    "cub200": 74.9,
    "tinyimagenet200": 70.5,
    "omniglot659": 89.8,
}
# AUROC of the plain distance in the same trial, requests in batches of 75.
PLAIN = {"curekart": 85.8, "sofmattress": 87.2}
# The best of distance and calibrated distance, averaged or not, in the same trial.
BEST = {"clinc-oos-minilm": 96.8, "caltech-background-efflite0": 96.0, "lung-two-atlases": 60.2}
COLUMNS = ("distance", "calibrated", "distance_averaged", "calibrated_averaged")
PROPOSED = ("clinc150", "banking77", "caltech101", "omniglot659")
STRANGE = ("removed", "ten", "scattered", "proposals", "requests", "real")
TELLING = 70.0  # accuracy of single items with which features are said to tell classes apart


def where(row: Row) -> str:
    """Which cell a row is."""
    named = {
        "clinc-oos-minilm": "out of scope",
        "caltech-background-efflite0": "background",
        "lung-two-atlases": "lung",
    }
    parts = [named.get(row["data"], short(row["data"]))]
    if "batch" in row:
        parts.append("all requests" if row["batch"] == "all" else f"batches of {row['batch']}")
        parts += [] if strange(row) else ["nothing unknown"]
    elif "present" in row:
        parts.append(f"{row['present']} present")
        if row["strange"]:
            parts.append(f"{row['share'][0]:.0f} % unknown")
        else:
            parts.append(f"{row['size']} items")
    return ", ".join(parts)


def strange(row: Row) -> bool:
    """Whether there are unknown items in the cell."""
    return float(row["share"][0]) > 0


def worst(requirement: str, rows: Sequence[Row], value: Callable[[Row], float], most: float, unit: str = " %") -> Bar:
    """Every cell's value is at most that large; shows the largest."""
    largest = max(rows, key=value)
    missed = sum(value(row) > most for row in rows)
    found = f"missed in {missed} of {len(rows)} cells; largest {value(largest):.2f}{unit} ({where(largest)})"
    return Bar(requirement, found, not missed)


def fewest(requirement: str, rows: Sequence[Row], value: Callable[[Row], float], least: float, digits: int = 1) -> Bar:
    """Every cell's value is at least that large; shows all of them if there are few, else the smallest."""
    missed = sum(value(row) < least for row in rows)
    shown = sorted(rows, key=value)[: 7 if len(rows) <= 7 else 1]
    values = "; ".join(f"{value(row):.{digits}f} ({where(row)})" for row in shown)
    return Bar(requirement, f"missed in {missed} of {len(rows)} cells; {values}", not missed)


def not_below(requirement: str, rows: Sequence[Row], key: str) -> Bar:
    """No cell below by an interval; shows the cell whose interval ends lowest."""
    lowest = min(rows, key=lambda row: sum(row[key]))
    below = [row for row in rows if sum(row[key]) < 0]
    found = f"below in {len(below)} of {len(rows)} cells; lowest {said(*lowest[key])} ({where(lowest)})"
    return Bar(requirement, found, not below)


def mean_of(rows: Sequence[Row], value: Callable[[Row], float]) -> float:
    """Mean over cells."""
    return sum(value(row) for row in rows) / len(rows)


def thirds(found: Found) -> list[Row]:
    """Cells like those of the trial: three unknown classes with 30 % of 60 items."""
    return [row for row in found.get("removed", []) if row["strange"] == 18]


def above_the_trial(rows: Sequence[Row], which: str) -> Bar:
    """Mean AUROC over banks against that of the trial."""
    ours = mean_of(rows, lambda row: row["auroc_ours"][0])
    trial = mean_of(rows, lambda row: TRIALS[short(row["data"])])
    same = mean_of(rows, lambda row: row[f"auroc_{TRIAL}"][0])
    text = f"removed classes, 30 %: mean AUROC over {which} at least 2 points above the trial"
    return Bar(text, f"{ours:.1f}; trial {trial:.1f} (on these batches {same:.1f})", ours >= trial + 2)


def best_on_the_same(row: Row) -> str:
    """Which column of the trial's table is the best on these batches."""
    return max(COLUMNS, key=lambda name: float(row[f"auroc_{name}"][0]))


def bars(found: Found) -> list[Bar]:
    """Judge every requirement whose conditions were measured."""
    judged: list[Bar] = []
    if rows := found.get("nothing"):
        what = "nothing unknown, 75 items"
        gap = f"{what}: accuracy within 0.3 points of the closed default in every cell"
        judged.append(worst(gap, rows, lambda row: abs(row["gain_closed"][0]), 0.3, " points"))
        judged.append(worst(f"{what}: at most 2 % of items rejected", rows, lambda row: row["called"][0], 2.0))
    if rows := found.get("large"):
        what = "nothing unknown, 300 to 3,000 items: at most 2 % of items rejected"
        judged.append(worst(what, rows, lambda row: row["called"][0], 2.0))
    if rows := found.get("removed"):
        judged += _removed(found, rows)
    if rows := found.get("ten"):
        judged += _ten(rows)
    if rows := found.get("requests"):
        judged += _requests([row for row in rows if strange(row)])
    if rows := found.get("real"):
        judged += _real(rows)
    if rows := [row for condition in STRANGE for row in found.get(condition, []) if strange(row)]:
        error, covered = (mean_of(rows, lambda row, key=key: row[key][0]) for key in ("error", "covered"))  # type: ignore[misc]
        lowest, highest = (f(row["covered"][0] for row in rows) for f in (min, max))
        over = f"over {len(rows)} cells"
        judged.append(
            Bar("share of unknown items: error at most 8 points on the mean", f"{error:.1f} {over}", error <= 8)
        )
        interval = f"{covered:.1f} % {over}, {lowest:.0f} to {highest:.0f} %"
        judged.append(Bar("its interval has the true share in 85 to 99 % of batches", interval, 85 <= covered <= 99))
    if rows := [row for row in found.get("proposals", []) if short(row["data"]) in PROPOSED]:
        what = "three unknown classes of 12 items: two found, 80 % pure, in at least 70 % of batches"
        judged.append(fewest(what, rows, lambda row: row["two"][0], 70.0))
        what = "proposals added: at least 80 % of the items of the classes found have their label, same batch"
        judged.append(fewest(what, rows, lambda row: row["added"].get("labelled_same", [0])[0], 80.0))
        what = "proposals added: the same for other items of the classes found"
        judged.append(fewest(what, rows, lambda row: row["added"].get("labelled_fresh", [0])[0], 80.0))
    return judged


def _removed(found: Found, rows: Sequence[Row]) -> list[Bar]:
    at_trial = thirds(found)
    what = "removed classes: accuracy on known items at least that of the closed default"
    gain = mean_of(rows, lambda row: row["gain_closed"][0])
    return [
        above_the_trial(at_trial, f"these {len(at_trial)} banks"),
        fewest(
            "removed classes, 30 %: AUROC on no bank more than 1 point below the trial",
            at_trial,
            lambda row: row["auroc_ours"][0] - TRIALS[short(row["data"])],
            -1.0,
        ),
        not_below(
            "removed classes: AUROC in no cell below that of the trial on the same batches by an interval",
            rows,
            f"ahead_{TRIAL}",
        ),
        not_below(f"{what}, no cell below by an interval", rows, "gain_closed"),
        Bar(f"{what}, on the mean", f"{gain:+.2f} over {len(rows)} cells", gain >= 0),
    ]


def _ten(rows: Sequence[Row]) -> list[Bar]:
    telling = [row for row in rows if row["accuracy_alone"][0] >= TELLING]
    judged = []
    if telling:
        what = (
            "three of ten present classes unknown: precision of present classes at least 80 %, on banks where at least "
            f"{TELLING:.0f} % of single items are labelled rightly"
        )
        judged.append(fewest(what, telling, lambda row: row["precision"][0], 80.0))
    what = "the same: recall at most 3 points below the closed default"
    return [*judged, fewest(what, rows, lambda row: row["recall_gain"][0], -3.0)]


def _requests(rows: Sequence[Row]) -> list[Bar]:
    what = "requests: accuracy on those that fit an intent at least that of each item alone"
    batches = [row for row in rows if row["batch"] == 75]
    published = "requests, batches of 75: AUROC at least that of the plain distance in the trial"
    return [
        fewest(what, rows, lambda row: row["gain_alone"][0], 0.0, 2),
        worst("requests: share within 10 points of the truth", rows, lambda row: row["error"][0], 10.0, " points"),
        fewest(published, batches, lambda row: row["auroc_ours"][0] - PLAIN[short(row["data"])], 0.0),
        fewest("requests: the same on the same batches", rows, lambda row: row["ahead_distance"][0], 0.0),
    ]


def _real(rows: Sequence[Row]) -> list[Bar]:
    def ahead(row: Row) -> float:
        return float(row[f"ahead_{best_on_the_same(row)}"][0])

    published = [row["auroc_ours"][0] - BEST[row["data"]] for row in rows]
    values = "; ".join(f"{row['auroc_ours'][0]:.1f} against {BEST[row['data']]:.1f} ({where(row)})" for row in rows)
    levels = [gap + row["auroc_ours"][1] >= 0 for gap, row in zip(published, rows, strict=True)]
    level = [sum(row[f"ahead_{best_on_the_same(row)}"]) >= 0 for row in rows]
    same = "; ".join(
        f"{said(*row[f'ahead_{best_on_the_same(row)}'])} on {best_on_the_same(row).replace('_', ', ')} ({where(row)})"
        for row in rows
    )
    mean = sum(published) / len(published)
    judged = [
        Bar(
            "real unknown items: AUROC on each not below the best column of the trial by an interval",
            values,
            all(levels),
        ),
        Bar("the same against the best of these columns on the same batches", same, all(level)),
        Bar("the same on the mean: above the best columns of the trial", f"{mean:+.1f} points", mean > 0),
        Bar(
            "the same on the mean, on the same batches", f"{mean_of(rows, ahead):+.1f} points", mean_of(rows, ahead) > 0
        ),
    ]
    for row in rows:
        if row["data"] == "lung-two-atlases":
            value = row["auroc_ours"]
            judged.append(Bar("cells of another laboratory: AUROC above 75", said(*value).lstrip("+"), value[0] > 75))
    return judged
