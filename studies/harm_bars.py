"""What the default has to show, and whether it does: every requirement computed from the rows that `harm.py` measured.

Below *by an interval* means that the whole 95 % interval of the paired difference is below zero; *level* is the
opposite. *Alone* is the best of nearest prototype and the head, each item alone, in the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Found = dict[str, list[Row]]  # rows of one group by condition

STRESS = ("shots", "requests", "laboratories", "shifted", "wrong_labels", "confusable", "stray", "sizes", "unknown")
FEWEST_CASES = 30  # of a bin of presence
WHERE = ("data", "shots", "most_shots", "batch", "size", "change", "wrong", "unknown", "present", "open")


@dataclass(frozen=True)
class Bar:
    """A requirement, the figure measured with its cell, and whether it is reached; None where nothing is required."""

    requirement: str
    measured: str
    reached: bool | None


def difference(row: Row, against: str) -> tuple[float, float]:
    """Points by which `roll_call` is ahead, and the half width; `alone` is the best rule for single items."""
    points, half = row["ahead"][row["alone"] if against == "alone" else against]
    return points, half


def said(points: float, half: float) -> str:
    """Points with their interval, where there is one."""
    return f"{points:+.1f} ± {half:.1f}" if half < float("inf") else f"{points:+.1f}, no interval"


def short(data: str) -> str:
    """Name of the data without the encoder, and without the collection that several companies' requests come from."""
    return data.split("-")[1 if data.startswith("hint3") else 0]


def place(row: Row) -> str:
    """Which cell a row is."""
    parts = []
    for key in (key for key in WHERE if key in row):
        value = row[key]
        named = {
            "data": short(str(value)),
            "shots": "1 shot" if value == 1 else f"{value} shots",
            "most_shots": f"at most {value or 'all'} shots",
            "batch": f"batches of {value}",
            "size": "1 item" if value == 1 else f"{value} items",
            "change": str(value),
            "present": f"{value} present",
            "open": f"{'with' if value else 'without'} items of no class",
        }
        shares = {"wrong": "mislabelled", "unknown": "unknown"}
        parts.append(f"{100 * value:.0f} % {shares[key]}" if key in shares else named[key])
    return ", ".join(parts)


def never_below(requirement: str, rows: Sequence[Row], against: str) -> Bar:
    """No cell below by an interval; shows the cell whose interval ends lowest."""
    worst = min(rows, key=lambda row: sum(difference(row, against)))
    below = [row for row in rows if sum(difference(row, against)) < 0]
    lowest = f"lowest {said(*difference(worst, against))} ({place(worst)})"
    return Bar(requirement, f"below in {len(below)} of {len(rows)} cells; {lowest}", not below)


def at_least(requirement: str, rows: Sequence[Row], against: str, points: float) -> Bar:
    """Every cell's difference at least so large; shows the smallest."""
    worst = min(rows, key=lambda row: difference(row, against)[0])
    missed = sum(difference(row, against)[0] < points for row in rows)
    lowest = f"lowest {said(*difference(worst, against))} ({place(worst)})"
    return Bar(requirement, f"missed in {missed} of {len(rows)} cells; {lowest}", not missed)


def on_the_mean(requirement: str, rows: Sequence[Row], against: str, points: float, strictly: bool = False) -> Bar:
    """Mean difference of cells at least so large, or larger; every bank counts as much."""
    values = [difference(row, against)[0] for row in rows]
    mean = sum(values) / len(values)
    return Bar(requirement, f"{mean:+.2f} over {len(values)} cells", mean > points if strictly else mean >= points)


def figure(requirement: str, rows: Sequence[Row], value: Callable[[Row], float], most: float) -> Bar:
    """Every cell's figure at most so large; shows the largest."""
    worst = max(rows, key=value)
    missed = sum(value(row) > most for row in rows)
    largest = f"largest {value(worst):.2f} ({place(worst)})"
    return Bar(requirement, f"missed in {missed} of {len(rows)} cells; {largest}", not missed)


def calibration_error(row: Row) -> float:
    """Return the expected calibration error, in points."""
    return float(row["calibration_error"]["roll_call"])


def loss_more(row: Row) -> float:
    """Log loss minus that of EMQ on nearest prototypes."""
    return float(row["log_loss"]["roll_call"] - row["log_loss"]["prototype_emq"])


def presence_gap(row: Row) -> float:
    """Largest distance of mean presence from the truth, in points, of bins with 30 cases or more."""
    gaps = [abs(b["said"] - b["there"]) for b in row["presence"] if b["cases"] >= FEWEST_CASES]
    return max(gaps, default=0.0)


def warned(rows: Iterable[Row], against: str) -> dict[str, tuple[int, int]]:
    """Batches and how many were warned, harmed ones and others."""
    counts = [row["warnings"][against] for row in rows if "warnings" in row]
    return {kind: (sum(c[kind][0] for c in counts), sum(c[kind][1] for c in counts)) for kind in ("harmed", "others")}


def bars(found: Found) -> list[Bar]:
    """Judge every requirement whose conditions were measured."""
    judged: list[Bar] = []
    if clean := found.get("clean"):
        judged += _clean(clean)
    if rows := found.get("shots"):
        judged.append(never_below("unequal shots: no cell below alone by an interval", rows, "alone"))
    for condition, what in (
        ("requests", "real requests"),
        ("laboratories", "two laboratories"),
        ("shifted", "batch after a change"),
    ):
        if rows := found.get(condition):
            judged.append(never_below(f"{what}: no cell below alone by an interval", rows, "alone"))
            if condition != "shifted":
                judged.append(on_the_mean(f"{what}: above alone on the mean", rows, "alone", 0.0, strictly=True))
    for condition, what in (("wrong_labels", "mislabelled examples"), ("confusable", "confusable classes")):
        if rows := found.get(condition):
            judged.append(at_least(f"{what}: at most 1 point below alone", rows, "alone", -1.0))
            judged.append(on_the_mean(f"{what}: above alone on the mean", rows, "alone", 0.0, strictly=True))
    if rows := found.get("stray"):
        right = {rule: sum(row["accuracy"][rule] for row in rows) / len(rows) for rule in rows[0]["accuracy"]}
        others = f"nearest prototype {right['prototype']:.1f}, head {right['head']:.1f}"
        said_right = f"{right['roll_call']:.1f} % over {len(rows)} banks ({others})"
        judged.append(
            Bar("the single item of another class: right in at least 60 %", said_right, right["roll_call"] >= 60)
        )
    if rows := found.get("sizes"):
        judged.append(never_below("1 to 5,000 items: no cell below alone by an interval", rows, "alone"))
    if all(found.get(condition) for condition in STRESS):
        judged += _warnings([row for condition in STRESS for row in found[condition]])
    return judged


def _clean(clean: Sequence[Row]) -> list[Bar]:
    main = [row for row in clean if row["shots"] in (5, 10) and row["present"] in (5, 20)]
    once = [row for row in clean if row["shots"] == 1 and row["present"] in (5, 20)]
    at = "clean, 5 and 10 shots, 5 and 20 present"
    judged = [never_below(f"{at}: no cell below alone by an interval", main, "alone")]
    one_or_all = [row for row in clean if row["shots"] == 1 or row["present"] == "all"]
    judged.append(
        never_below("clean, one shot or all present: no cell below alone by an interval", one_or_all, "alone")
    )
    for rule, what in (("head_emq", "logistic regression + EMQ"), ("prototype_emq", "EMQ on nearest prototypes")):
        judged.append(never_below(f"{at}: no cell below {what} by an interval", main, rule))
    for which, rows in ((at, main), ("clean, one shot, 5 and 20 present", once)):
        judged.append(figure(f"{which}: calibration error at most 4 points", rows, calibration_error, 4.0))
        judged.append(figure(f"{which}: log loss less than EMQ on nearest prototypes", rows, loss_more, -1e-9))
        what = f"{which}: presence within 10 points in every bin of {FEWEST_CASES} cases"
        judged.append(figure(what, rows, presence_gap, 10.0))
    return judged


def _warnings(rows: Sequence[Row]) -> list[Bar]:
    judged = []
    for against, which in (("cell", "the best rule of the cell"), ("batch", "the best rule of each batch")):
        count = warned(rows, against)
        for kind, what in (("harmed", "at least 70 % warned"), ("others", "at most 10 % warned")):
            n, with_warning = count[kind]
            share = 100 * with_warning / n if n else float("nan")
            batches = "batches harmed by more than 5 points" if kind == "harmed" else "all other batches"
            reached = n == 0 or (share >= 70 if kind == "harmed" else share <= 10)
            name = f"stress conditions, against {which} alone: {batches}, {what}"
            judged.append(Bar(name, f"{with_warning} of {n} ({share:.1f} %)" if n else "no such batch", reached))
    return judged
