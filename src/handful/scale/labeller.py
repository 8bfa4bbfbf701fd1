"""How tables are labelled: the model, the columns, and what is known; and the two tables that come out.

A labeller is a value: it can be pickled, and every process opens its model once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypedDict

import numpy as np

from handful.errors import OptionError
from handful.estimators.diagnostics import diagnosed_groups
from handful.estimators.prior_weights import weights_of
from handful.estimators.unknown_share import shares_of
from handful.machine.extras import import_pyarrow
from handful.machine.threads import one_thread
from handful.model.content import content_keys
from handful.scale.found import LISTED, FoundItems, KnownOfAll, OfGroups, label_groups
from handful.scale.groups import RowGroups, group_columns
from handful.scale.models import Model, ModelAt
from handful.scale.vectors import RowVectors, feature_columns, read_vectors
from handful.shapes import Int
from handful.version import __version__

# Where the metadata of a table says which model, version and settings made it.
LINEAGE = b"handful.lineage"
# New columns of the table of items, and of the table of groups after the columns of the group.
OF_ITEMS = ("label", "certainty", "unknown", "reason")
MODEL = "model"
# Column that says which of the two tables a row is of.
TABLE = "table"
OF_GROUPS = (
    *("items", "bad_rows", "joint_weight", "unknown_items", "unknown_above", "diagnostics"),
    *("class", "expected_count", "presence"),
)


class LabelOptions(TypedDict, total=False):
    """How tables are labelled, beside model and groups; `label_table` says what each means."""

    features: str | Sequence[str] | None
    prior: Any
    candidates: Any
    expect_unknown: Any
    keep_features: bool
    lineage: bool
    prefix: str


class LabelledTables(NamedTuple):
    """The two tables of `label_table`.

    Attributes
    ----------
    items, groups : pyarrow.Table
        As `label_table` has them.
    """

    items: Any
    groups: Any

    @property
    def both(self) -> Any:
        """Both as one table, for engines whose functions return one: a column `table` says `items` or `groups`.

        Columns that only one of them has are null in the rows of the other.
        """
        pa, _ = import_pyarrow()
        names = [pa.repeat(name, len(table)) for name, table in zip(self._fields, self, strict=True)]
        told = [table.append_column(TABLE, name) for table, name in zip(self, names, strict=True)]
        return pa.concat_tables(told, promote_options="default")


@dataclass(frozen=True, eq=False)
class TableLabeller:
    """Labels Arrow tables of complete groups, see `label_table`.

    Attributes
    ----------
    model : ModelAt
        The model.
    group_by : tuple of str
        Columns of the group; none if all rows are one.
    features : str, tuple of str or None
        The column or columns of vectors, as asked for.
    known : KnownOfAll
        What is known about every group.
    keep_features, lineage : bool
        Whether items keep their vectors, and whether the tables have a column of the model's hash.
    prefix : str
        Of the new columns.
    """

    model: ModelAt
    group_by: tuple[str, ...]
    features: str | tuple[str, ...] | None = None
    known: KnownOfAll = field(default_factory=KnownOfAll)
    keep_features: bool = False
    lineage: bool = False
    prefix: str = ""

    @classmethod
    def of(
        cls,
        model: Model,
        group_by: str | Sequence[str] | None = None,
        *,
        features: str | Sequence[str] | None = None,
        prior: Any = None,
        candidates: Any = None,
        expect_unknown: Any = None,
        keep_features: bool = False,
        lineage: bool = False,
        prefix: str = "",
    ) -> TableLabeller:
        """Open the model, and turn what is known into numbers."""
        at = ModelAt.of(model)
        weights = weights_of(prior, candidates, at.fitted.classes, None)
        shares = shares_of(expect_unknown, None)
        share = None if shares is None else (float(shares[0, 0]), float(shares[0, 1]))
        known = KnownOfAll(None if weights is None else weights[0], share)
        columns = features if features is None or isinstance(features, str) else tuple(features)
        return cls(at, group_columns(group_by), columns, known, keep_features, lineage, prefix)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What a label depends on beside the model and the rows, as values of JSON."""
        weights = self.known.weights
        return {
            "group_by": list(self.group_by),
            "features": list(self.features) if isinstance(self.features, tuple) else self.features,
            "weights": None if weights is None else hashlib.sha256(weights.tobytes()).hexdigest(),
            "unknown_share": None if self.known.share is None else list(self.known.share),
            "keep_features": self.keep_features,
            "lineage": self.lineage,
            "prefix": self.prefix,
        }

    def made_by(self) -> dict[str, Any]:
        """Return what made a table: hash of the model, version of handful, settings."""
        return {"model": self.model.content, "version": __version__, "settings": self.settings}

    @one_thread()  # so that sums have a fixed order
    def label(self, table: Any) -> LabelledTables:
        """Label every group of a table."""
        fitted = self.model.fitted
        groups = RowGroups.of(table, self.group_by)
        vectors, reasons = self.vectors(table)
        fit = groups.of_row >= 0
        fit[list(reasons)] = False
        good = np.flatnonzero(fit)
        # By content within a group: then the order of the rows does not change a digit.
        order = good[np.lexsort((content_keys(vectors[good]), groups.of_row[good]))]
        sizes = np.bincount(groups.of_row[order], minlength=len(groups))
        found, of_groups = label_groups(fitted, vectors[order], sizes, self.known)
        items = FoundItems.empty(len(table))
        for values, some in zip(items, found, strict=True):
            values[order] = some
        n_bad = np.bincount(groups.of_row[groups.of_row >= 0], minlength=len(groups)) - sizes
        keys = {name: table.column(name).combine_chunks().take(groups.first) for name in self.group_by}
        return LabelledTables(
            self.items_table(table, items, reasons | groups.reasons),
            self.groups_table(keys, of_groups, n_bad),
        )

    def vectors(self, table: Any) -> RowVectors:
        """Return the vectors of a table, whose columns are checked."""
        columns = feature_columns(table.schema, self.features, self.model.fitted)
        self._check_names(table.schema)
        return read_vectors(table, columns, self.model.fitted)

    def items_table(self, table: Any, items: FoundItems, reasons: Mapping[int, str]) -> Any:
        """Return the rows as they were, without their vectors, and what was found about them."""
        pa, _ = import_pyarrow()
        why = np.full(len(table), None, object)
        why[list(reasons)] = list(reasons.values())
        lost = np.zeros(len(table), bool)
        lost[list(reasons)] = True
        new = {
            "label": self._classes.take(pa.array(items.codes, mask=lost)),
            "certainty": pa.array(items.certainty.astype(np.float32), mask=lost),
            "unknown": pa.array(items.unknown.astype(np.float32), mask=lost | np.isnan(items.unknown)),
            "reason": pa.array(why, pa.string()),
        }
        kept = table.select(self._kept(table.schema))
        for name, values in new.items():
            kept = kept.append_column(self.prefix + name, values)
        return self._with_lineage(kept)

    def groups_table(self, keys: Mapping[str, Any], found: OfGroups, n_bad: Int[np.ndarray, "group"]) -> Any:
        """Return a row for each group and class that may be in it; one without a class if no row could be labelled.

        `keys` are the columns of the group, a value for each group.
        """
        pa, _ = import_pyarrow()
        nothing = np.zeros(int((found.n_items == 0).sum()), LISTED)
        nothing["group"] = np.flatnonzero(found.n_items == 0)
        nothing["class"] = -1
        rows = np.concatenate([*found.listed, nothing])
        rows = rows[np.argsort(rows["group"], kind="stable")]
        of = rows["group"]
        lost = rows["class"] < 0
        fitted = self.model.fitted
        share = None if self.known.share is None else np.array(self.known.share)
        diagnosed = diagnosed_groups(
            fitted.head,
            found.n_items,
            found.confidence,
            found.n_zero,
            unknown_share=share,
            unknown_reason=fitted.unknown_reason,
        )
        new = {
            "items": pa.array(found.n_items[of]),
            "bad_rows": pa.array(n_bad[of]),
            "joint_weight": pa.array(found.joint_weight[of].astype(np.float32), mask=lost),
            "unknown_items": pa.array(found.n_unknown[of]),
            "unknown_above": pa.array(found.limit[of].astype(np.float32), mask=lost),
            "diagnostics": pa.array(np.where(lost, None, diagnosed[of]), pa.string()),
            "class": self._classes.take(pa.array(rows["class"], mask=lost)),
            "expected_count": pa.array(np.ascontiguousarray(rows["expected_count"]), mask=lost),
            "presence": pa.array(np.ascontiguousarray(rows["presence"]), mask=lost),
        }
        columns = {name: values.take(pa.array(of)) for name, values in keys.items()}
        return self._with_lineage(pa.table(columns | {self.prefix + name: values for name, values in new.items()}))

    @cached_property
    def _classes(self) -> Any:
        """Labels of the classes, as an Arrow array."""
        pa, _ = import_pyarrow()
        try:
            return pa.array(self.model.fitted.classes.tolist())
        except (pa.ArrowException, TypeError) as error:
            raise OptionError(f"labels of the classes must be numbers, text or dates for Arrow ({error})") from error

    def _with_lineage(self, table: Any) -> Any:
        """Say in the metadata, and in a column if that was asked for, what made a table."""
        pa, _ = import_pyarrow()
        if self.lineage:
            table = table.append_column(self.prefix + MODEL, pa.array([self.model.content] * len(table), pa.string()))
        noted = {LINEAGE: json.dumps(self.made_by(), sort_keys=True)}
        return table.replace_schema_metadata({**(table.schema.metadata or {}), **noted})

    def _kept(self, schema: Any) -> list[str]:
        """Return the columns of the items that the table has already."""
        columns = feature_columns(schema, self.features, self.model.fitted)
        left_out = () if self.keep_features else columns
        return [name for name in schema.names if name not in left_out or name in self.group_by]

    def _check_names(self, schema: Any) -> None:
        """Refuse names of new columns that a table has already."""
        more = (MODEL,) if self.lineage else ()
        for there, new in ((self._kept(schema), OF_ITEMS), (self.group_by, OF_GROUPS)):
            taken = [self.prefix + name for name in (*new, *more) if self.prefix + name in there]
            if taken:
                raise OptionError(
                    f"the table has a column {taken[0]!r} already; give the new columns another prefix, for example "
                    "prefix='handful_'"
                )
