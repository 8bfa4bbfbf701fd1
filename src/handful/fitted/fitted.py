"""FittedModel: class means, counts and a head, made once from labelled examples.

A class is its number of examples s_k and their mean w_k. Counts and sums add: examples and classes are added and
removed without reading the others again. A batch is compared with the head (`handful.model.head`),
which is fitted when it is first needed, and so is what the examples tell about items of no class
(`handful.model.unknown_of_catalogue`).

The head needs examples. The catalogue keeps all of them while they are few (2²³ numbers, 32 MB in single precision),
and the head is trained on them. Else it keeps the first ones of each class, a 64th of the room at most, and these for
some classes only; the head then consists of the class means, with a slope from the examples kept. A hash of its label
decides whether a class is kept, whatever the order in which they come.

A class may have a name: a vector of the same space, for example of its name or description from a text encoder. With a
name it needs no examples (`handful.model.names`). A catalogue of names alone has no scale of its own: that comes
from the items (`handful.model.scores`).

One long file: it is one immutable value, and each way to change it is a method of a few lines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from handful import plots
from handful.banks import FeatureBank
from handful.errors import BankError, LabelError, OptionError, TaskError
from handful.fitted.labels import distinct, places_of, same_kind
from handful.fitted.parts import ClassMeans, ClassNames, Examples, joined, merged
from handful.fitted.record import Record
from handful.fitted.report import ModelReport, confused_pairs, report_on
from handful.fitted.rows import ROW_TRANSFORMS, transform_rows
from handful.model.answer import JointAnswer
from handful.model.head import LinearHead, fit_head, update_head
from handful.model.knowledge import Knowledge
from handful.model.labelling import label_batch, label_by_names
from handful.model.links import find_copies
from handful.model.names import NameVectors
from handful.model.reference import Reference
from handful.model.scores import Scores
from handful.model.settings import DEFAULT, Settings
from handful.model.unknown_of_catalogue import UnknownModel, fit_unknown_model, unknown_reason
from handful.plots import html
from handful.progress import Reporter, bars
from handful.reading.class_names import SimilarNames, similar_names
from handful.shapes import Float, Int

# Numbers that the kept examples may have. [numbers; work]
KEPT_NUMBERS = 2**23
# Rows of a bank that are read at once. [rows; work]
BLOCK_ROWS = 16_384
# Numbers that a block of examples may have while it is summed. [numbers; work]
SUMMED_NUMBERS = 2**24
# Rows that are transformed at a time: a cache holds them. [rows; work]
POINTS_AT_A_TIME = 1_024


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Class means, counts and a head; frozen, so threads and processes can share it.

    Make one with `FittedModel.of`. Methods that add or remove return a new catalogue.

    Attributes
    ----------
    class_means : ClassMeans
        Labels of the classes in increasing order, their numbers of examples, and the means of these about the origin.
    origin : Float[np.ndarray, "dim"]
        Mean of the first examples. Distances do not depend on it, rounding does.
    transform : {"l2", "raw"}
        Applied to every row, of the catalogue and of a batch, before it is compared.
    examples : Examples
        Those that the head and the report are made from: all of them, or a sample.
    n_examples : int
        Number of examples given so far.
    names : ClassNames or None
        Vectors of the names of some classes.
    record : Record
        What made the vectors of the examples, and their other columns.
    n_unnamed : int
        Number of classes without a name, which come last: a person said that their examples are none of the others.
    settings : Settings
        Numbers of the model. Studies change them to find out what depends on one; files do not keep them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(20, 16))
    >>> X, y = centres.repeat(5, axis=0) + 0.7 * rng.normal(size=(100, 16)), np.arange(20).repeat(5)
    >>> catalogue = FittedModel.of(X[:95], y[:95])
    >>> catalogue.n_classes, catalogue.with_examples(X[95:], y[95:]).n_classes
    (19, 20)
    >>> print(catalogue.report())
    19 classes, 95 examples.
    Nothing looks wrong.
    """

    class_means: ClassMeans
    origin: Float[np.ndarray, "dim"]
    transform: str
    examples: Examples
    n_examples: int
    names: ClassNames | None = None
    record: Record = field(default_factory=Record)
    n_unnamed: int = 0
    settings: Settings = DEFAULT

    @classmethod
    def of(cls, features: Float[np.ndarray, "row dim"], labels: npt.NDArray[Any], transform: str = "l2") -> FittedModel:
        """Make one from labelled examples, at least one of every class."""
        return cls.streamed([features], [np.asarray(labels)], transform)

    @classmethod
    def streamed(
        cls, blocks: Iterable[Float[np.ndarray, "row dim"]], labels: Iterable[npt.NDArray[Any]], transform: str = "l2"
    ) -> FittedModel:
        """Make one from blocks of rows, each read once, and their labels."""
        if transform not in ROW_TRANSFORMS:
            raise OptionError(
                f"transform must be one of {', '.join(ROW_TRANSFORMS)}, which transform each row alone, "
                f"got {transform!r}"
            )
        made: FittedModel | None = None
        for block, names in zip(blocks, labels, strict=True):
            points = transform_rows(transform, np.asarray(block), first=0 if made is None else made.n_examples)
            if made is None:
                made = cls._empty(points, names, transform)
            made = made._with_points(points, names)
        if made is None:
            raise LabelError("a catalogue needs at least one example, got none")
        return made

    @classmethod
    def of_names(
        cls, vectors: Float[np.ndarray, "row dim"], labels: npt.NDArray[Any], transform: str = "l2"
    ) -> FittedModel:
        """Make one from vectors of names; several rows of one label are averaged."""
        labels = np.asarray(labels)
        if len(labels) == 0:
            raise LabelError("a catalogue needs at least one name, got none")
        points = transform_rows(transform, np.asarray(vectors))
        return cls._empty(points, labels, transform)._with_name_points(points, labels)

    @classmethod
    def _empty(cls, points: Float[np.ndarray, "row dim"], labels: npt.NDArray[Any], transform: str) -> FittedModel:
        """Make one without classes, with its origin at the mean of these rows."""
        origin = points.mean(0, dtype=np.float64).astype(points.dtype)
        nothing = Examples(labels[:0], points[:0], np.empty(0, np.int64))
        return cls(ClassMeans(labels[:0], points[:0, 0], points[:0]), origin, transform, nothing, 0)

    @classmethod
    def of_bank(cls, bank: FeatureBank, transform: str = "l2") -> FittedModel:
        """Make one from the rows of a bank; classes are numbers, in the order of the bank's names."""
        empty = np.flatnonzero(np.bincount(bank.labels, minlength=bank.n_classes) == 0)
        if len(empty) > 0:
            raise TaskError(
                f"every class needs at least one example in the catalogue, but {bank.class_names[empty[0]]!r} has "
                "none; add an example, or restrict the bank with .classes(...)"
            )
        size = min(BLOCK_ROWS, max(1, SUMMED_NUMBERS // bank.dim))
        blocks = (block.astype(np.float32, copy=False) for block in bank.blocks(size))
        labels = bank.labels.astype(np.int64)
        return cls.streamed(blocks, (labels[start : start + size] for start in range(0, bank.n_rows, size)), transform)

    # -- what a batch is compared with -------------------------------------------------------------------------------

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Labels of the classes, in increasing order."""
        return self.class_means.classes

    @property
    def shots(self) -> Float[np.ndarray, "class"]:
        """Number of examples of each class."""
        return self.class_means.shots

    @property
    def means(self) -> Float[np.ndarray, "class dim"]:
        """Their means, about the origin."""
        return self.class_means.means

    @property
    def similar(self) -> list[SimilarNames]:
        """Classes with names that look alike."""
        return similar_names(self.classes.tolist(), self.shots.tolist())

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.class_means.classes)

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.origin)

    def points(self, features: Float[np.ndarray, "item dim"]) -> Float[np.ndarray, "item dim"]:
        """Return transformed rows, about the origin of the examples if there are any."""
        rows = self._rows(features)
        origin = np.zeros_like(self.origin) if self.only_names else self.origin
        points = np.empty_like(rows, order="C")
        for at in range(0, len(rows), POINTS_AT_A_TIME):
            some = slice(at, at + POINTS_AT_A_TIME)
            np.subtract(transform_rows(self.transform, rows[some], first=at), origin, out=points[some])
        return points

    def label_points(self, points: Float[np.ndarray, "item dim"], knowledge: Knowledge) -> JointAnswer:
        """Label one batch of rows that `points` returned; `knowledge` is about the classes that have a name."""
        if self.only_names:
            return label_by_names(points, self.head.means, knowledge, self.settings)
        return label_batch(points, self.reference, knowledge.with_unnamed(self.n_unnamed))

    def scores(self, points: Float[np.ndarray, "item dim"], knowledge: Knowledge) -> Float[np.ndarray, "item class"]:
        """Return the scores of rows that `points` returned, -inf where a class cannot occur, of classes with a name."""
        if self.only_names:
            with np.errstate(divide="ignore"):
                found = label_by_names(points, self.head.means, knowledge, self.settings)
                return np.log(found.probabilities.astype(np.float64))
        scores = Scores.of_vectors(points[None], self.reference, knowledge.with_unnamed(self.n_unnamed))
        return np.asarray(scores.nats[0][:, : self.reference.n_named], np.float64)

    @cached_property
    def reference(self) -> Reference:
        """What batches are compared with: the head, and what is known about items of no class."""
        return Reference(self.head, self.unknown_model, self.n_unnamed, self.settings)

    @cached_property
    def head(self) -> LinearHead:
        """Linear scores: trained on all examples, or of class means if not all of them are kept."""
        names = self._named_points()
        (points, codes) = self.labelled_points
        if names is not None and self.only_names:
            return LinearHead.of_names(names.points)
        means = self.means
        shots = self.shots
        if len(codes) < int(self.shots.sum(dtype=np.float64)):
            means, shots = (means, shots) if names is None else names.blended(means, shots, self.settings)
            return LinearHead.of_means(means, shots, points, codes, self.settings)
        if self.equal_classes:
            return self._head_with_copies()
        with bars("fit the catalogue"):
            begin = partial(Reporter().stage, "fit the catalogue", unit="fits")
            return fit_head(points, codes, self.n_classes, self._square_norm, names, begin, self.settings)

    @cached_property
    def equal_classes(self) -> list[tuple[int, int]]:
        """Classes with the same examples as an earlier class: their positions, and that of the first one."""
        points, codes = self.labelled_points
        if not len(points):  # names of classes alone
            return []
        copy_of, _ = find_copies(points)
        if (codes[copy_of] == codes).all():  # no example occurs in two classes
            return []
        first: dict[frozenset[int], int] = {}
        order = np.argsort(codes, kind="stable")
        members = np.split(copy_of[order], np.bincount(codes, minlength=self.n_classes).cumsum()[:-1])
        same = [first.setdefault(frozenset(of.tolist()), k) for k, of in enumerate(members) if len(of)]
        places = [k for k, of in enumerate(members) if len(of)]
        return [(k, earlier) for k, earlier in zip(places, same, strict=True) if earlier != k]

    @property
    def equal_summary(self) -> str:
        """Say which classes have the same examples; empty if none do."""
        names = self.classes.tolist()
        return " ".join(equal_sentence(names[earlier], names[copy]) for copy, earlier in self.equal_classes)

    @property
    def _without_copies(self) -> FittedModel:
        """The catalogue without classes that have the same examples as an earlier one."""
        return self.without(self.classes[[copy for copy, _ in self.equal_classes]])

    def _head_with_copies(self) -> LinearHead:
        """Return the head without copies of classes; a copy has the scores of the class that it equals."""
        fewer = self._without_copies
        head = fewer.head
        of_fewer = places_of(self.classes, fewer.classes)
        for copy, earlier in self.equal_classes:
            of_fewer[copy] = of_fewer[earlier]
        rows = np.flatnonzero(np.isin(self.examples.positions, fewer.examples.positions))
        left_out = head.left_out._replace(
            rows=rows[head.left_out.rows], rival=places_of(fewer.classes, self.classes)[head.left_out.rival]
        )
        tables = {name: getattr(head, name)[of_fewer] for name in ("weights", "offsets", "means", "mass")}
        return replace(head, **tables, left_out=left_out, n_fitted=len(self.examples.labels))

    @cached_property
    def unknown_model(self) -> UnknownModel | None:
        """What the examples tell about items of no class; None if they cannot tell."""
        if self.only_names:
            return None
        if self.equal_classes:
            return self._without_copies.unknown_model
        return fit_unknown_model(self.head, *self.labelled_points, self.settings)

    @property
    def unknown_reason(self) -> str | None:
        """Why items of no class cannot be judged, as a sentence; None if they can."""
        if self.only_names:
            return "Unknown items cannot be judged by the names of classes alone; add examples of the classes."
        return unknown_reason(self.head, self.settings) if self.unknown_model is None else None

    @property
    def _square_norm(self) -> float:
        """Mean squared norm of the examples."""
        return float((self.examples.points**2).sum(1).mean(dtype=np.float64))

    @property
    def labelled_points(self) -> tuple[Float[np.ndarray, "row dim"], Int[np.ndarray, "row"]]:
        """The examples that are kept, about the origin, and their classes as positions in `classes`."""
        return self.examples.points - self.origin, places_of(self.examples.labels, self.classes)

    def _named_points(self) -> NameVectors | None:
        """Return the names, about the origin if there are examples, and their classes."""
        if self.names is None:
            return None
        points = self.names.points if self.only_names else self.names.points - self.origin
        return NameVectors(points, places_of(self.names.classes, self.classes))

    def with_unnamed(self, n_unnamed: int) -> FittedModel:
        """Return the same catalogue, and what was fitted to it, whose last classes have no name."""
        return self._changed(n_unnamed=n_unnamed)

    def with_fitted(self, head: LinearHead, unknown_model: UnknownModel | None) -> FittedModel:
        """Return the same catalogue with what was fitted to it before, for instance read from a file."""
        same = replace(self)
        vars(same)["head"] = head
        vars(same)["unknown_model"] = unknown_model
        return same

    def with_settings(self, settings: Settings) -> FittedModel:
        """Return the same catalogue, and what was fitted to it, which labels with other numbers."""
        return self._changed(settings=settings)

    def with_record(self, record: Record) -> FittedModel:
        """Return the same catalogue, and what was fitted to it, with another record."""
        return self._changed(record=record)

    def _changed(self, **fields: Any) -> FittedModel:
        """Return the same catalogue, and what was fitted to it, with other values of fields that a fit does not use."""
        same = replace(self, **fields)
        vars(same).update({name: vars(self)[name] for name in ("head", "unknown_model") if name in vars(self)})
        return same

    def updated_from(self, before: FittedModel, *, for_a_batch: bool = False) -> FittedModel:
        """Return the same catalogue with a head fitted from that of the catalogue before examples were added.

        Only classes with new examples are trained (`handful.model.head.update_head`), a small part of the work. Where
        much has changed, or the head is not of that kind, all of it is fitted. If the examples are answers about items
        of a batch, `for_a_batch`, what was learned about items of no class stays, and nobody waits for a whole fit.
        """
        n_known = len(before.examples.labels)
        whole = len(self.examples.labels) == int(self.shots.sum(dtype=np.float64))
        same = np.array_equal(self.examples.positions[:n_known], before.examples.positions)
        if self.names is not None or not whole or not same or before.only_names:
            return self
        points, codes = self.labelled_points
        classes = places_of(before.classes, self.classes)
        head = update_head(
            before.head,
            classes,
            points,
            codes,
            self.n_classes,
            n_known,
            self._square_norm,
            however_many=for_a_batch,
            settings=self.settings,
        )
        if head is None:
            return self
        model = before.unknown_model if for_a_batch else fit_unknown_model(head, points, codes, self.settings)
        return self.with_fitted(head, model)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of all that an answer depends on; the head is fitted for it."""
        head = self.head
        numbers = (head.spread, head.temperature, head.wrong_share, head.confidence, self.unknown_model)
        about = (self.transform, numbers, self.classes.dtype.str, self.classes.tolist())
        digest = hashlib.sha256(repr(about).encode())
        tables = [self.origin, self.shots, self.means]
        tables += [head.weights, head.offsets, head.means, head.mass]
        for table in tables if self.names is None else [*tables, self.names.points]:
            digest.update(repr((table.dtype, table.shape)).encode())
            digest.update(np.ascontiguousarray(table).data)
        return digest.hexdigest()

    def report(self) -> ModelReport:
        """Say what looks wrong with the catalogue itself, which should be fixed first."""
        return report_on(self.class_means, self.examples, self.head.left_out, self.similar)

    def plot(self, ax: Any = None) -> Any:
        """Draw which classes are confused, and how reliable the probabilities of held-out examples are.

        Needs the extra `plots`. The second picture has the largest probability of held-out examples beside the share of
        them that is right, with 95% intervals; on the dotted line both agree.

        Parameters
        ----------
        ax : two matplotlib Axes or None
            Where to draw; by default on a new figure.

        Returns
        -------
        array of two Axes
            The axes.
        """
        left_out = self.head.left_out
        return plots.plot_catalogue(self, confused_pairs(left_out, self.labelled_points[1][left_out.rows]), ax)

    def _repr_html_(self) -> str:
        return html.of_catalogue(self)

    @property
    def only_names(self) -> bool:
        """Whether there are no examples."""
        return not bool((self.shots > 0).any())

    # -- more and less -----------------------------------------------------------------------------------------------

    def with_examples(self, features: Float[np.ndarray, "row dim"], labels: npt.NDArray[Any]) -> FittedModel:
        """Return the catalogue with these examples added, of known or new classes."""
        labels = same_kind(np.asarray(labels), self.classes)
        return self._with_points(transform_rows(self.transform, self._rows(features)), labels)

    def other_length(self, dim: int, whose: str) -> BankError:
        """Return the error for vectors that are not as long as those of the catalogue."""
        return BankError(
            f"vectors of the catalogue have {self.dim} numbers, {whose} {dim}; both must come from the same encoder"
        )

    def with_names(self, vectors: Float[np.ndarray, "row dim"], labels: npt.NDArray[Any]) -> FittedModel:
        """Return the catalogue with names of known or new classes.

        Rows are transformed as examples are. Several of one label are averaged, and the mean is transformed again. The
        name that a class had before is replaced.
        """
        return self._with_name_points(transform_rows(self.transform, self._rows(vectors)), labels)

    def _with_name_points(self, points: Float[np.ndarray, "row dim"], labels: npt.NDArray[Any]) -> FittedModel:
        """Add transformed names."""
        classes, codes = distinct(same_kind(np.asarray(labels), self.classes))
        means = _sums_by_class(points, codes, len(classes)) / np.bincount(codes)[:, None]
        added = ClassNames(classes, transform_rows(self.transform, means.astype(points.dtype)))
        new = classes[places_of(classes, self.classes) < 0]
        shots = np.zeros(len(new), self.origin.dtype)
        none = np.zeros((len(new), self.dim), self.origin.dtype)
        return replace(
            self,
            class_means=self.class_means.plus(ClassMeans(new, shots, none)),
            names=added if self.names is None else merged(self.names, added),
        )

    def without(self, labels: npt.NDArray[Any]) -> FittedModel:
        """Return the catalogue without the classes of these labels."""
        whole = self.class_means
        places = places_of(same_kind(np.asarray(labels), whole.classes), whole.classes)
        kept = np.ones(len(whole.classes), dtype=bool)
        kept[places[places >= 0]] = False
        if not kept.any():
            raise LabelError("no class would be left; keep at least one, or fit again")
        left = self.examples.rows(kept[places_of(self.examples.labels, whole.classes)])
        names = self.names
        if names is not None:
            names = names.rows(kept[places_of(names.classes, whole.classes)])
            names = names if len(names.classes) else None
        return replace(self, class_means=whole.rows(kept), examples=left, names=names)

    def relabelled(self, labels: npt.NDArray[Any]) -> FittedModel:
        """Return the catalogue with another label for each class; classes with equal labels become one.

        What was fitted is kept where no two classes become one.
        """
        whole = self.class_means
        (classes, codes) = distinct(labels)
        shots = np.bincount(codes, whole.shots, len(classes)).astype(whole.shots.dtype)
        means = _sums_by_class(whole.means * whole.shots[:, None], codes, len(classes))
        names = self.names
        if names is not None:
            own, first = np.unique(codes[places_of(names.classes, whole.classes)], return_index=True)
            names = ClassNames(classes[own], names.points[first])
        relabelled = labels[places_of(self.examples.labels, whole.classes)]
        changed = replace(
            self,
            class_means=ClassMeans(classes, shots, means / np.maximum(shots, 1)[:, None]),
            examples=replace(self.examples, labels=relabelled),
            names=names,
        )
        if len(classes) < len(labels) or "head" not in vars(self):
            return changed
        order = np.argsort(codes)
        head = self.head
        tables = {name: getattr(head, name)[order] for name in ("weights", "offsets", "means", "mass")}
        left_out = head.left_out._replace(rival=codes[head.left_out.rival])
        return replace(changed, class_means=replace(whole.rows(order), classes=classes)).with_fitted(
            replace(head, **tables, left_out=left_out), self.unknown_model
        )

    def unknown(self, labels: npt.NDArray[Any]) -> list[Any]:
        """Return the labels that are not classes of the catalogue."""
        given, _ = distinct(same_kind(np.asarray(labels), self.classes))
        return list(given[places_of(given, self.classes) < 0].tolist())

    def _with_points(self, points: Float[np.ndarray, "row dim"], labels: npt.NDArray[Any]) -> FittedModel:
        """Add transformed examples."""
        positions = np.arange(self.n_examples, self.n_examples + len(labels))
        return replace(
            self,
            class_means=self.class_means.plus(self._summed(points, labels)),
            examples=self._kept(joined(self.examples, Examples(labels, points, positions))),
            n_examples=self.n_examples + len(labels),
        )

    def _summed(self, points: Float[np.ndarray, "row dim"], labels: npt.NDArray[Any]) -> ClassMeans:
        """Return number and mean of the examples of each class, about the origin."""
        classes, codes = distinct(labels)
        sums = np.zeros((len(classes), self.dim), points.dtype)
        shots = np.bincount(codes).astype(points.dtype)
        size = max(1, SUMMED_NUMBERS // self.dim)
        for start in range(0, len(points), size):
            rows = slice(start, start + size)
            sums += _sums_by_class(points[rows] - self.origin, codes[rows], len(classes))
        return ClassMeans(classes, shots, sums / shots[:, None])

    def _rows(self, features: Any) -> Float[np.ndarray, "row dim"]:
        return np.asarray(features, dtype=self.origin.dtype)

    def _kept(self, examples: Examples) -> Examples:
        return examples.sample(max(2, KEPT_NUMBERS // self.dim))


def equal_sentence(first: Any, second: Any) -> str:
    """Say that two classes have the same examples."""
    return (
        f"{first!r} and {second!r} have the same examples, so which of the two an item gets means nothing; merge them, "
        "or correct their examples."
    )


def _sums_by_class(
    points: Float[np.ndarray, "row dim"], codes: Int[np.ndarray, "row"], n_classes: int
) -> Float[np.ndarray, "class dim"]:
    """`Σ_n x_n` of each class: rows are brought together, and each run of them is added up."""
    order = np.argsort(codes, kind="stable")
    there, first = np.unique(codes[order], return_index=True)
    sums = np.zeros((n_classes, points.shape[1]), points.dtype)
    if len(points):
        sums[there] = np.add.reduceat(points[order], first, axis=0)
    return sums
