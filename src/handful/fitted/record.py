"""Record: where the examples of a catalogue came from, what made their vectors, and how a few of them look.

An example is known by its position: how many examples the catalogue had been given before it. Positions stay the same
when other examples are added or removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

PreviewKind: TypeAlias = Literal["", "image", "text"]
# Examples of which the text or a small picture is kept; a picture takes about 4 kB. [examples; work]
MOST_SHOWN = 2400


class Source(NamedTuple):
    """Where an example came from; what is not known is empty.

    Attributes
    ----------
    item, file : str
        Its name, a path or a row, and the folder, table or batch that has it, relative to the folder of the catalogue.
    content : str
        Hash of its content.
    person, date, session : str
        Who said what it is, on which day (YYYY-MM-DD), and in which review.

    Examples
    --------
    >>> print(Source("7.jpg", "monday", person="Ada", date="2026-11-17"))
    7.jpg of monday, said by Ada, 2026-11-17
    """

    item: str = ""
    file: str = ""
    content: str = ""
    person: str = ""
    date: str = ""
    session: str = ""

    def __str__(self) -> str:
        where = f"{self.item} of {self.file}" if self.item and self.file else self.item or self.file
        by = f"said by {self.person}" if self.person else ""
        return ", ".join(filter(None, (where, by, self.date, self.session)))


@dataclass(frozen=True, eq=False)
class Record:
    """What is known about the examples of a catalogue beside their vectors and labels.

    Attributes
    ----------
    encoder : str
        What made the vectors, with the hash of its weights; empty if that is not known.
    kind : "image", "text" or ""
        What the examples were; empty if only vectors were given.
    feature_names : tuple of str or None
        Names of the features.
    sources : mapping of int to Source
        Where examples came from, by position.
    previews : mapping of int to str or bytes
        Text, or a small picture (JPEG), of some examples, by position.
    columns : mapping of str to mapping
        Other columns of the examples, by name and position: the genus of a species, the precursor of a spectrum.

    Examples
    --------
    >>> Record(sources={0: Source("7.jpg"), 1: Source("8.jpg")}).of([1]).sources
    {1: Source(item='8.jpg', file='', content='', person='', date='', session='')}
    """

    encoder: str = ""
    kind: PreviewKind = ""
    feature_names: tuple[str, ...] | None = None
    sources: Mapping[int, Source] = field(default_factory=dict)
    previews: Mapping[int, str | bytes] = field(default_factory=dict)
    columns: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)

    def of(self, positions: Collection[int]) -> Record:
        """Keep what is known about the examples at these positions."""
        kept = set(positions)
        return replace(
            self,
            sources=_kept(self.sources, kept),
            previews=_kept(self.previews, kept),
            columns={name: _kept(values, kept) for name, values in self.columns.items()},
        )

    def and_(self, other: Record, first: int) -> Record:
        """Add what is known about further examples, whose positions start at `first`."""
        names = dict.fromkeys((*self.columns, *other.columns))
        return replace(
            self,
            encoder=self.encoder or other.encoder,
            kind=self.kind or other.kind,
            sources={**self.sources, **_moved(other.sources, first)},
            previews={**self.previews, **_moved(other.previews, first)},
            columns={
                name: {**self.columns.get(name, {}), **_moved(other.columns.get(name, {}), first)} for name in names
            },
        )


def shown_rows(labels: npt.NDArray[Any]) -> list[int]:
    """Return the rows of the examples that are shown: all, or the first ones of every class.

    Examples
    --------
    >>> len(shown_rows(np.arange(2400))), len(shown_rows(np.arange(100).repeat(50)))
    (2400, 2400)
    """
    if len(labels) <= MOST_SHOWN:
        return list(range(len(labels)))
    classes, codes = np.unique(labels, return_inverse=True)
    most = max(1, MOST_SHOWN // len(classes))
    seen = np.zeros(len(classes), np.int64)
    rows = list[int]()
    for row, code in enumerate(codes.tolist()):
        if seen[code] < most:
            rows.append(row)
        seen[code] += 1
    return rows


# -- as tensors and JSON --------------------------------------------------------------------------------------------


def record_parts(record: Record, positions: Sequence[int]) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the tensors of a record about the examples at these positions, and everything else as JSON.

    A column is the list of its distinct values, and a tensor with the place of each example's value, -1 for none.
    """
    kept = record.of(positions)
    columns = {name: [getattr(kept.sources.get(at), name, "") for at in positions] for name in Source._fields}
    others = {name: [values.get(at) for at in positions] for name, values in kept.columns.items()}
    tensors = dict[str, npt.NDArray[Any]]()
    about = {"encoder": record.encoder, "kind": record.kind}
    names = None if record.feature_names is None else list(record.feature_names)
    coded: dict[str, dict[str, list[Any]]] = {"sources": {}, "columns": {}}
    for group, table in (("sources", columns), ("columns", others)):
        for name, values in table.items():
            distinct = list(dict.fromkeys(value for value in values if value not in (None, "")))
            places = {value: place for place, value in enumerate(distinct)}
            coded[group][name] = distinct
            tensors[f"{group}.{name}"] = np.array([places.get(value, -1) for value in values], np.int64)
    seen = [at for at in positions if at in kept.previews]
    contents = [kept.previews[at] for at in seen]
    raw = [content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content for content in contents]
    tensors["previews.positions"] = np.array(seen, np.int64)
    tensors["previews.ends"] = np.cumsum([len(one) for one in raw], dtype=np.int64)
    tensors["previews.bytes"] = np.frombuffer(b"".join(raw), np.uint8)
    return tensors, {**about, "feature_names": names, **coded}


def record_of(
    tensors: Mapping[str, npt.NDArray[Any]], about: Mapping[str, Any], positions: Sequence[int], dim: int
) -> Record:
    """Undo `record_parts`; a ValueError says what does not fit together."""
    encoder = about["encoder"] if "encoder" in about else about["backbone"]  # its name until version 0.5
    kind = about["kind"]
    names = about["feature_names"]
    if not isinstance(encoder, str) or kind not in get_args(PreviewKind):
        raise ValueError(f"examples of kind {kind!r}, made by {encoder!r}")
    if names is not None and (len(names) != dim or not all(isinstance(name, str) for name in names)):
        raise ValueError(f"it has no name for each of the {dim} features")
    columns = {
        group: {name: _decoded(tensors[f"{group}.{name}"], values, len(positions)) for name, values in coded.items()}
        for group, coded in ((group, about[group]) for group in ("sources", "columns"))
    }
    if set(columns["sources"]) != set(Source._fields):
        raise ValueError(f"columns of sources: {sorted(columns['sources'])}")
    told = [columns["sources"][name] for name in Source._fields]
    if not all(value is None or isinstance(value, str) for column in told for value in column):
        raise ValueError("sources that are not text")
    sources = {
        at: Source(*(value or "" for value in values))
        for at, *values in zip(positions, *told, strict=True)
        if any(value is not None for value in values)
    }
    others = {
        name: {at: value for at, value in zip(positions, values, strict=True) if value is not None}
        for name, values in columns["columns"].items()
    }
    previews = _previews(tensors, kind, set(positions))
    return Record(encoder, kind, None if names is None else tuple(names), sources, previews, others)


def _decoded(places: npt.NDArray[Any], values: Any, n_examples: int) -> list[Any]:
    if not isinstance(values, list) or not all(isinstance(value, (str, int, float)) for value in values):
        raise ValueError("values of a column that are neither text nor numbers")
    if places.shape != (n_examples,) or places.dtype != np.int64 or not bool((places < len(values)).all()):
        raise ValueError("a column does not fit the examples")
    return [None if place < 0 else values[place] for place in places.tolist()]


def _previews(tensors: Mapping[str, npt.NDArray[Any]], kind: str, positions: Collection[int]) -> dict[int, str | bytes]:
    at, ends, content = (tensors[f"previews.{name}"] for name in ("positions", "ends", "bytes"))
    if at.dtype != np.int64 or ends.dtype != np.int64 or at.ndim != 1 or at.shape != ends.shape:
        raise ValueError("pictures or texts of examples do not fit together")
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    whole = int(ends[-1]) if len(ends) else 0
    if content.dtype != np.uint8 or content.shape != (whole,) or bool((ends < starts).any()):
        raise ValueError("pictures or texts of examples do not fit together")
    if not set(at.tolist()) <= set(positions):
        raise ValueError("pictures or texts of examples that do not exist")
    data = content.tobytes()
    parts = zip(at.tolist(), starts.tolist(), ends.tolist(), strict=True)
    found = {place: data[start:end] for place, start, end in parts}
    return {place: part.decode() for place, part in found.items()} if kind == "text" else dict(found)


def _kept(values: Mapping[int, Any], positions: Collection[int]) -> dict[int, Any]:
    return {at: value for at, value in values.items() if at in positions}


def _moved(values: Mapping[int, Any], by: int) -> dict[int, Any]:
    return {at + by: value for at, value in values.items()}
