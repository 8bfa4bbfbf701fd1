"""Answers about a portion of the data set: complete groups, labelled in memory, and one file on disk.

A file of a portion holds three tables. Items (their row in the data set, and the answer about it) are in the order of
rows, groups in the order of their first rows, classes of groups in the order of their groups. A new figure about each
item is one entry of `ITEM_FIGURES`, one about each group one of `GROUP_FIGURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from handful.catalogue import Catalogue
from handful.engine.model import JointAnswer
from handful.estimators.batches import CatalogueItems, by_group
from handful.large import LargeSolution
from handful.machine.safetensors_format import read_part, write_tensors
from handful.shapes import Float, Int

# A class is listed in the table of a group if its chance of being present is at least this.
LEAST_LISTED = 0.02
# Rows of the data set whose answers are read at once when the output is written.
SEGMENT_ROWS = 2**18

Figures = dict[str, Tensor]

# The answer about each item, and about each group.
ITEM_FIGURES: Mapping[str, Callable[[JointAnswer], np.ndarray]] = MappingProxyType(
    {
        "code": lambda found: found.probabilities.argmax(-1).astype(np.int32),
        "probability": lambda found: found.probabilities.max(-1).astype(np.float32),
        "unknown": lambda found: found.unknown.astype(np.float32),
    }
)
GROUP_FIGURES: Mapping[str, Callable[[JointAnswer], np.ndarray]] = MappingProxyType(
    {
        "joint_weight": lambda found: np.array([found.joint_weight], np.float32),
        "unknown_items": lambda found: np.array([found.rejected.sum()], np.int32),
    }
)
TABLES = ("item", "group", "class")


class Portion:
    """Collects answers about complete groups, in any order, and writes them in the order of rows."""

    def __init__(self) -> None:
        self._items: list[Figures] = []
        self._groups: list[Figures] = []
        self._classes: list[Figures] = []

    def label(
        self,
        catalogue: Catalogue,
        features: Float[np.ndarray, "item dim"],
        group_of: Int[np.ndarray, "item"],
        rows: Int[np.ndarray, "item"],
    ) -> None:
        """Label groups in memory; `rows` are the items' rows in the data set, `group_of` counts groups from zero."""
        for _, mine, found in by_group(CatalogueItems(catalogue, features), group_of):
            self._add(
                {name: torch.from_numpy(figure(found)) for name, figure in ITEM_FIGURES.items()},
                torch.from_numpy(rows[mine]),
                {name: torch.from_numpy(figure(found)) for name, figure in GROUP_FIGURES.items()},
                torch.tensor([int(rows[mine].min())]),
                torch.tensor([len(mine)]),
                torch.from_numpy(found.expected_counts[None]),
                torch.from_numpy(found.presence[None]),
            )

    def take(self, found: LargeSolution, rows: Int[np.ndarray, "item"]) -> None:
        """Take the answers about one group that was labelled by `handful.large`; `rows` are in increasing order."""
        parts = list(found.answers())
        joined = {name: torch.from_numpy(np.concatenate([part[name] for part in parts])) for name in parts[0]}
        self._add(
            {
                "code": joined["label"].int(),
                "probability": joined["probability"].float(),
                "unknown": joined["unknown"].float(),
            },
            torch.from_numpy(rows),
            {
                "joint_weight": torch.tensor([found.joint_weight]),
                "unknown_items": torch.tensor([int(found.rejected().sum())]).int(),
            },
            torch.from_numpy(rows[:1]),
            torch.tensor([len(rows)]),
            torch.from_numpy(found.expected_counts[None]),
            torch.from_numpy(found.presence[None]),
        )

    def _add(
        self,
        items: Figures,
        rows: Int[Tensor, "item"],
        groups: Figures,
        first: Int[Tensor, "task"],
        sizes: Int[Tensor, "task"],
        expected_counts: Float[Tensor, "task class"],
        presence: Float[Tensor, "task class"],
    ) -> None:
        """Take the answers about some groups; the class with most items is always listed."""
        listed = presence >= LEAST_LISTED
        listed.scatter_(-1, expected_counts.argmax(-1, keepdim=True), True)
        group, code = listed.nonzero(as_tuple=True)
        self._items.append({"row": rows, **items})
        self._groups.append({"row": first, "items": sizes, **groups})
        self._classes.append(
            {
                "row": first[group],
                "code": code.int(),
                "expected_count": expected_counts[group, code].float(),
                "presence": presence[group, code].float(),
            }
        )

    def write(self, path: Path, what: str) -> None:
        """Write the file of the portion, complete or not at all, sealed as `what`."""
        tensors: Figures = {}
        bounds = []
        for table, parts in zip(TABLES, (self._items, self._groups, self._classes), strict=True):
            if not parts:  # a bucket may be empty
                bounds.append(np.empty(0, np.int64))
                continue
            joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
            # Classes of a group are in increasing order already, and a stable sort keeps them so.
            order = joined["row"].argsort(stable=True)
            tensors |= {f"{table}.{name}": column[order] for name, column in joined.items()}
            bounds.append(tensors[f"{table}.row"].numpy() // SEGMENT_ROWS)
        segments = np.unique(bounds[0])  # the first row of a group is one of its items
        edges = [np.searchsorted(where, segments, side=side) for where in bounds for side in ("left", "right")]
        tensors["segments"] = torch.from_numpy(np.stack([segments, *edges], 1).astype(np.int64))
        write_tensors(path, tensors, what=what)


class Answered:
    """Answers of all portions, in files whose seals were checked, read a segment of rows at a time."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._of: dict[int, list[tuple[Path, list[int]]]] = {}
        for file in files:
            index = read_part(file, lambda name: slice(None) if name == "segments" else None)["segments"]
            for segment, *edges in index.tolist():
                self._of.setdefault(segment, []).append((file, edges))

    def segment(self, number: int) -> dict[str, dict[str, np.ndarray]]:
        """Return the tables `item`, `group` and `class` of a segment, columns by name, each in the order of rows."""
        parts: list[dict[str, np.ndarray]] = []
        for file, edges in self._of.get(number, ()):
            slices = {table: slice(*edges[2 * place : 2 * place + 2]) for place, table in enumerate(TABLES)}
            parts.append(read_part(file, lambda name, of=slices: of.get(name.partition(".")[0])))  # type: ignore[misc]
        tables: dict[str, dict[str, np.ndarray]] = {}
        for table in TABLES:
            names = [name for name in parts[0] if name.startswith(f"{table}.")]
            joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
            order = joined[f"{table}.row"].argsort(kind="stable")
            tables[table] = {name.partition(".")[2]: column[order] for name, column in joined.items()}
        return tables
