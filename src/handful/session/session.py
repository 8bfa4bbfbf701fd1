"""Session: a batch and a person; it asks, takes answers, labels the batch again, and says when enough was said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, Unpack

import numpy as np

from handful.arguments import takes, whole
from handful.catalogue.events import ANSWERS, Event, EventItem, EventKind
from handful.catalogue.file import Arrival, CatalogueFile, ItemContent
from handful.catalogue.said import Said
from handful.errors import LabelError, OptionError
from handful.estimators import Answer, Known
from handful.estimators.answer import compared_items
from handful.estimators.context import checked
from handful.estimators.given import new_class_names, no_such_class
from handful.machine.extras import import_extra
from handful.reading.class_names import new_name, plain_label
from handful.session.clusters import directions_of
from handful.session.evidence import evidence_of
from handful.session.from_nothing import FromNothing
from handful.session.kinds import Kind, kinds_of
from handful.session.labels import LabelNames
from handful.session.oddest import Oddness, odd_looks
from handful.session.requests import SHEET_SIZE, Request
from handful.session.said import BatchSaid
from handful.session.state import Labeller, SessionOptions, State
from handful.session.stopping import SURE_TO_STOP, Calibration, Estimate, Look
from handful.shapes import Bool, Int

# The batch of a catalogue in memory.
BATCH = "batch"
# Labellings that are kept, so that taking an answer back is immediate. [labellings; work]
MOST_KEPT = 8
# Events that are decisions of a person.
DECISIONS = frozenset({*ANSWERS, "renamed", "removed"})


class Fit(NamedTuple):
    """What labels the batch, and its classes; fitted when these changes of names had happened."""

    labeller: Labeller
    classes: Any
    labels: LabelNames
    renames: tuple[str, ...] = ()

    @classmethod
    def of(cls, labeller: Labeller, classes: Any, renames: Sequence[str] = ()) -> Self:
        """Return it with the names of its classes."""
        return cls(labeller, classes, LabelNames(classes), tuple(renames))


class Session:
    """A batch under review, without a page: it asks, takes answers, and says when a person may stop.

    Every answer teaches: the whole batch is labelled again with it. And every answer is evidence about how far the
    certainties of the other labels can be trusted. Answers are events of a catalogue, here one in memory; the state
    depends on them and on nothing else, so the same answers always lead to the same labels.

    Parameters
    ----------
    X : [row, feature]
        The batch, as in `BatchClassifier.infer`.
    catalogue : BatchClassifier, path-like, (examples, labels) or None
        A fitted classifier, the file of a catalogue, or labelled examples. None, the default: there are no examples,
        and the session asks for names.
    groups : [row], [row, column] or None
        As in `infer`: every group is labelled as a separate batch.
    sheet_size : int
        Items that are shown at once; 24 suit photographs, 12 sentences.
    sure : float
        The chance that at most 5% of all labels are wrong when a person may stop; a class with one or two items may
        still be missed then.
    calibration : Calibration or None
        What earlier batches taught, `session.calibration` after the last of them; by default what the catalogue keeps.
    prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
        What is known about the batch in advance, see `Known`. Without a catalogue, there are `candidates` alone, a list
        of names that may occur: they are offered, and rule nothing out.

    Attributes
    ----------
    file : CatalogueFile
        The catalogue, whose events are the answers.
    first : Answer
        The labels before anything was said.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal(size=(20, 16))
    >>> names = np.array(["fox", "owl", "elk", *(f"bird {k}" for k in range(17))])
    >>> examples = places[1:] + 0.8 * rng.normal(size=(19, 16))
    >>> truth = names[[0] * 9 + [1] * 10 + [2] * 9]
    >>> batch = places[[0] * 9 + [1] * 10 + [2] * 9] + 0.8 * rng.normal(size=(28, 16))
    >>> session = Session(batch, (examples, names[1:]))
    >>> print(session.ask())
    What is item 2? bird 14, bird 6, bird 11, another class, or none of these?
    >>> session.answer(2, "fox", new=True).n_decisions
    1

    A person looks at all requests, until everything has been seen:

    >>> while (request := session.ask()) is not None:
    ...     items = np.array(request.items)
    ...     right = truth[items] == request.labels
    ...     if right.any():
    ...         _ = session.accept(items[right], wrong=items[~right])
    ...     for item in items[~right]:
    ...         _ = session.answer(item, truth[item])
    >>> session.is_done, session.n_decisions < 12, bool((session.result.labels == truth).all())
    (True, True, True)

    Without a catalogue, the session asks for the names of groups that look alike:

    >>> of = np.repeat([0, 1, 2, 3], [14, 10, 8, 6])
    >>> truth = names[of]
    >>> batch = places[of] + 0.4 * rng.normal(size=(38, 16))
    >>> session = Session(batch)
    >>> request = session.ask()
    >>> print(request)
    What are these 14 items? 0, 5, 6, 7, 12, 1, 9, 8, 2, 13, 11, 3, 10, 4
    >>> session.answer(request.items, "fox", new=True)
    Session(14 of 38 items seen in 1 decisions, 37% expected to be right)
    >>> session.result.labels[[0, 20]].tolist(), int(session.not_named.sum())
    (['fox', None], 24)
    >>> while not session.may_stop:
    ...     items = np.array(session.ask().items)
    ...     for name in dict.fromkeys(truth[items].tolist()):
    ...         _ = session.answer(items[truth[items] == name], name, new=True)
    >>> session.n_decisions, session.names, bool((session.result.labels == truth).all())
    (4, ['fox', 'bird 0', 'owl', 'elk'], True)
    """

    @takes(Known)
    def __init__(
        self,
        X: Any,
        catalogue: Any = None,
        *,
        groups: Any = None,
        sheet_size: int = SHEET_SIZE,
        sure: float = SURE_TO_STOP,
        calibration: Calibration | None = None,
        **known: Unpack[Known],
    ) -> None:
        from handful.session.labelling import MemoryLabeller, classifier_of, from_nothing  # with scikit-learn

        given: dict[Any, Any] = {}
        if catalogue is None:
            if groups is not None or checked(known).keys() - {"candidates"}:
                raise OptionError(
                    "a session without a catalogue takes the batch, and candidates as names to offer; give groups and "
                    "what else is known about the batch with a catalogue"
                )
            labeller: FromNothing | MemoryLabeller = from_nothing(X)
        else:
            labeller = MemoryLabeller(classifier_of(catalogue), X, groups, known)
            given = labeller.given
        file = CatalogueFile.open()
        rows = np.ascontiguousarray(labeller.features)
        file.arrive(BATCH, [Arrival(str(at), ItemContent(row.tobytes(), "vector")) for at, row in enumerate(rows)])
        offered = known.get("candidates") if catalogue is None else None
        options = SessionOptions(sheet_size, sure, Calibration() if calibration is None else calibration)
        items = sorted(file.said.places[BATCH])
        self._begin(file, BATCH, items, labeller, options, offered, from_nothing=catalogue is None)
        self._say_before(given)

    @classmethod
    def of_batch(
        cls,
        file: CatalogueFile,
        batch: str,
        labeller: Labeller,
        options: SessionOptions,
        *,
        items: Sequence[int] | None = None,
        from_nothing: bool = False,
        offered: Any = None,
        person: str = "",
        refit: Callable[[], Labeller] | None = None,
    ) -> Self:
        """Go on with a batch of a catalogue.

        Parameters
        ----------
        file, batch
            The catalogue, and the name of the batch.
        labeller
            Returns the `Answer` about the items.
        options
            What is the same in all states.
        items
            The numbers of the items, in the order in which `labeller` has them; by default all that are there, in
            increasing order.
        from_nothing
            Whether there are no examples beside the answers about this batch.
        offered
            Names that are offered, where there are no examples.
        person
            Who answers.
        refit
            Returns `labeller` again, fitted to the examples as they are called now; None if their classes have no
            events, and keep their names.

        Returns
        -------
        Session
            The session, as the events of the catalogue have it.
        """
        session = cls.__new__(cls)
        there = sorted(file.said.places.get(batch, {})) if items is None else items
        about: Any = {"from_nothing": from_nothing, "person": person, "refit": refit}
        session._begin(file, batch, there, labeller, options, offered, **about)
        return session

    def _begin(
        self,
        file: CatalogueFile,
        batch: str,
        items: Sequence[int],
        labeller: Labeller,
        options: SessionOptions,
        offered: Any,
        *,
        from_nothing: bool,
        person: str = "",
        refit: Callable[[], Labeller] | None = None,
    ) -> None:
        if not 0 < options.sure < 1:
            raise OptionError(f"sure must be a probability between 0 and 1, got {options.sure!r}")
        whole("sheet_size", options.sheet_size, least=1, error=OptionError)
        self.file = file
        self.batch = batch
        self.options = options
        self.refit = refit
        self.person = person
        self.from_nothing = from_nothing
        self.offered = _offered(offered)
        self._items = np.array(items, np.int64)
        self._positions = {item: position for position, item in enumerate(self._items.tolist())}
        self._labellings: list[tuple[BatchSaid, Answer]] = []
        self.first = labeller(BatchSaid())
        classes = np.zeros(0, object) if self.from_nothing else self.first.classes
        self._fit = Fit.of(labeller, classes, file.said.renames)
        self._oddness = Oddness(directions_of(compared_items(self.first).vectors))
        self._show(*self._state_of(file.said))

    def _say_before(self, given: Mapping[int, Any]) -> None:
        """Keep what was known about items before the session; it is not a decision of it."""
        by_label: dict[Any, list[int]] = {}
        for item, label in given.items():
            by_label.setdefault(label, []).append(item)
        for label, items in by_label.items():
            kind: EventKind = "none" if label is None else "named"
            about = {} if label is None else {"label": self._fit.labels.name(label)}
            self.file.append(kind, about, [EventItem(int(self._items[item])) for item in items])
        self.refresh()

    def refresh(self) -> Self:
        """Take what was said since by others who have the same catalogue open.

        Returns
        -------
        Session
            The session itself.
        """
        self.file.refresh()
        if self.file.revision != self._revision:
            self._show(*self._state_of(self.file.said))
        return self

    def _show(self, state: State, fit: Fit) -> None:
        """Show a state, which is that of the last revision."""
        if fit is not self._fit:
            self._labellings = []
        self._state = state
        self._fit = fit
        self._revision = self.file.revision

    @property
    def labeller(self) -> Labeller:
        """What labels the batch."""
        return self._fit.labeller

    @property
    def classes(self) -> Any:
        """The classes that have examples elsewhere; none without a catalogue."""
        return self._fit.classes

    def _labelled(self, said: BatchSaid, fit: Fit) -> Answer:
        """Label the batch with what was said, or take an earlier labelling with the same."""
        said = replace(said, skipped=frozenset())  # items that were left open change no label
        if fit is not self._fit:
            return fit.labeller(said)
        place = next((at for at, (before, _) in enumerate(self._labellings) if before == said), None)
        found = (said, fit.labeller(said)) if place is None else self._labellings.pop(place)
        self._labellings = [*self._labellings, found][-MOST_KEPT:]
        return found[1]

    def _fit_of(self, said: Said) -> Fit:
        """Return what labels the batch, fitted again if classes of its examples have other names now."""
        if self.refit is None or said.renames == self._fit.renames:
            return self._fit
        labeller = self.refit()
        return Fit.of(labeller, labeller(BatchSaid()).classes, said.renames)

    def _state_of(self, said: Said) -> tuple[State, Fit]:
        """Return the state that follows from what was said; raise what labelling refuses."""
        fit = self._fit_of(said)
        of_batch = BatchSaid.of(said, self._positions, fit.labels.label)
        events = self.events
        evidence = evidence_of(events)
        odd = odd_looks(events, said, self._positions.keys())
        answer = self._labelled(of_batch, fit)
        return State(self.options, self._items, of_batch, answer, evidence, odd, self._oddness), fit

    def _say(self, kind: EventKind, about: Mapping[str, Any], items: Sequence[EventItem] = ()) -> Self:
        """Append an event, and label the batch again; if that is refused, nothing has changed."""
        states = []
        self.file.append(
            kind,
            {**about, "batch": self.batch},
            items,
            revision=self._revision,
            person=self.person,
            settles=lambda: states.append(self._state_of(self.file.said)),
        )
        self._show(*states[-1])
        return self

    def __repr__(self) -> str:
        seen = f"{int(self.seen.sum()):,} of {len(self.seen):,} items seen in {self.n_decisions:,} decisions"
        return f"Session({seen}, {self.expected_right.value:.0%} expected to be right)"

    # -- what a person does -------------------------------------------------------------------------------------------

    def ask(self) -> Request | None:
        """Return what to look at next, and why.

        Returns
        -------
        Request or None
            One item, or a sheet of items with one label; None when everything has been seen.
        """
        return self._state.request

    def answer(self, items: Any, label: Any, *, new: bool = False, wrong: Any = ()) -> Self:
        """Say what items are, and label the batch again.

        Parameters
        ----------
        items : int or list of int
            Positions; several items are one decision.
        label : label or None
            Their class; None if they belong to none of the classes.
        new : bool
            Whether the catalogue does not have the class yet; without it, such a name is refused, with the nearest one.
        wrong : int or list of int
            Other items of the sheet, which do not have the label that is asked about; they are asked about next.

        Returns
        -------
        Session
            The session itself.
        """
        positions = self._positions_of(items)
        if label is None:
            return self._answer("none", {}, positions, wrong)
        return self._answer("named", {"label": self._fit.labels.name(self._checked(label, new))}, positions, wrong)

    def accept(self, items: Any, *, wrong: Any = ()) -> Self:
        """Say that items have the labels that they are shown with, which may differ; this is one decision.

        Parameters
        ----------
        items : int or list of int
            Positions; none if all labels of a sheet are wrong.
        wrong : int or list of int
            Other items of the sheet, whose labels are wrong; they are asked about next.

        Returns
        -------
        Session
            The session itself.
        """
        positions = () if _is_empty(items) and not _is_empty(wrong) else self._positions_of(items)
        without = [item for item in positions if self._state.not_named[item]]
        if without:
            raise OptionError(f"item {without[0]} has no label yet that could be right; give it one with answer")
        return self._answer("accepted", {}, positions, wrong)

    def _answer(self, kind: EventKind, about: Mapping[str, Any], positions: Sequence[int], wrong: Any) -> Self:
        """Say what items are; the event says whether they were shown because they are odd."""
        others = () if _is_empty(wrong) else self._positions_of(wrong)
        both = sorted(set(positions) & set(others))
        if both:
            raise OptionError(f"item {both[0]} cannot be right and wrong; leave it out of one of the two")
        asked = self._state.request
        if asked is not None and asked.oddest and {*positions, *others} <= set(asked.items):
            about = {**about, "oddest": True}
        return self._say(kind, about, self._state.shown(positions, others))

    def skip(self, items: Any) -> Self:
        """Leave items open: they were seen, and count as neither right nor wrong; an earlier answer is taken back.

        Parameters
        ----------
        items : int or list of int
            Positions.

        Returns
        -------
        Session
            The session itself.
        """
        return self._say("open", {}, self._state.shown(self._positions_of(items)))

    def discard(self, items: Any) -> Self:
        """Leave items that are unfit to be labelled out of everything; they have no label.

        Parameters
        ----------
        items : int or list of int
            Positions.

        Returns
        -------
        Session
            The session itself.
        """
        return self._say("bad", {}, self._state.shown(self._positions_of(items)))

    def merge(self, label: Any, into: Any, *, new: bool = False) -> Self:
        """Say that two names are one class: all items with the first get the second, in every batch of the catalogue.

        Parameters
        ----------
        label, into : label
            The name that is given up, and the one that stays.
        new : bool
            Whether nobody has said the second one yet; the first is then renamed.

        Returns
        -------
        Session
            The session itself.
        """
        before = self._own_name(label)
        after = self._checked(into, new)
        if before == after:
            raise OptionError(f"{before!r} is one class already; give two names")
        names = self._fit.labels
        return self._say("renamed", {"label": names.name(before), "into": names.name(after)})

    def remove(self, label: Any) -> Self:
        """Say that a class is none: its items have no answer any more, in every batch of the catalogue.

        Parameters
        ----------
        label : label
            The name that is given up.

        Returns
        -------
        Session
            The session itself.
        """
        return self._say("removed", {"label": self._fit.labels.name(self._own_name(label))})

    def undo(self) -> Self:
        """Take the last step back.

        Returns
        -------
        Session
            The session itself.
        """
        if not self.events:
            raise OptionError("there is nothing to undo")
        return self.take_back(self.events[-1].event)

    def take_back(self, event: str) -> Self:
        """Take one answer back, whichever it is; what was said after it stays.

        Parameters
        ----------
        event : str
            The name of one of `events`.

        Returns
        -------
        Session
            The session itself.
        """
        if event not in {one.event for one in self.events}:
            raise OptionError("this is not an answer of the session, or it was taken back")
        return self._say("taken_back", {"event": event})

    def review(self, *, images: Any = None, texts: Any = None) -> Self:
        """Open the page of `handful review` about the session, and wait until it is finished.

        What a person says there are answers of the session. It needs the extra `review`. In a notebook, interrupt the
        cell to stop; what was said by then is kept.

        Parameters
        ----------
        images, texts : list, optional
            What the page shows of each row: paths, arrays or Pillow images; or sentences.

        Returns
        -------
        Session
            The session itself: `result` has the labels, `said.given` what the person said.
        """
        import_extra("handful.review.memory", "review").review(self, images=images, texts=texts)
        return self

    # -- what follows -------------------------------------------------------------------------------------------------

    @property
    def result(self) -> Answer:
        """The labels of the whole batch, with everything said so far."""
        return self._state.answer

    @property
    def expected_right(self) -> Estimate:
        """Share of all labels that are right, with a 90% interval; slips of a person count, too."""
        return self._state.expected_right

    @property
    def may_stop(self) -> bool:
        """Whether labels are good, and the oddest items held no kind that nobody had seen.

        Labels are good if at most 5% of all are wrong, with a chance of at least `sure`. Odd items are those that are
        least like anything seen; `n_odd` of them were of kinds that had been seen.
        """
        return self._state.may_stop

    @property
    def labels_are_good(self) -> bool:
        """Whether at most 5% of all labels are wrong, with a chance of at least `sure`; kinds may still be missed."""
        return self._state.labels_are_good

    @property
    def exceptions(self) -> list[int]:
        """Items whose label was said to be wrong, and which were not answered since; they are asked about next."""
        return list(self._state.exceptions)

    @property
    def n_odd(self) -> int:
        """How many of the items least like anything seen were looked at since a kind was seen for the first time."""
        return self._state.odd_looks.n_odd

    @property
    def answers_left(self) -> int:
        """About how many more decisions until `may_stop`."""
        return self._state.answers_left

    @property
    def n_decisions(self) -> int:
        """Decisions so far: a sheet is one, each of its exceptions one more."""
        return len(self.events)

    @property
    def seen(self) -> Bool[np.ndarray, "item"]:
        """Items that a person looked at."""
        seen = np.zeros(len(self._state.risk), dtype=bool)
        seen[sorted(self._state.said.seen)] = True
        return seen

    @property
    def not_named(self) -> Bool[np.ndarray, "item"]:
        """Items that are like nothing named so far; with a catalogue there are none."""
        return self._state.not_named

    @property
    def names(self) -> list[Any]:
        """Names that may be offered: those said so far, classes of the catalogue, and `candidates` without one."""
        said = self._state.said.named
        return [*said, *(name for name in (*self.classes.tolist(), *self.offered) if name not in said)]

    @property
    def kinds(self) -> list[Kind]:
        """The classes of the batch: how many items each has, and how many of them a person saw, and who."""
        state = self._state
        people = {event.event: event.person for event in self.file.history.events}
        answers = self.file.said.answers
        by = {position: people[answers[item].event] for item, position in self._positions.items() if item in answers}
        return kinds_of(
            (state.labels[position], position in state.said.given, by.get(position))
            for position in range(len(state.risk))
            if position not in state.said.discarded
        )

    @property
    def examples(self) -> tuple[Int[np.ndarray, "some"], list[Any]]:
        """Items with a name that a person gave, as positions, and their labels: what makes a catalogue."""
        named = {item: label for item, label in self._state.said.given.items() if label is not None}
        return np.array(list(named), np.int64), list(named.values())

    @property
    def is_done(self) -> bool:
        """Whether everything has been seen."""
        return bool(self.seen.all())

    @property
    def revision(self) -> int:
        """The revision of the catalogue that the session shows; an answer is taken if nothing was said since."""
        return self._revision

    @property
    def items(self) -> Int[np.ndarray, "item"]:
        """The number of each item in the catalogue."""
        return self._items

    def positions(self, items: Iterable[int]) -> list[int]:
        """Return the positions of those of these items of the catalogue that are in the batch."""
        return [self._positions[item] for item in items if item in self._positions]

    @property
    def events(self) -> list[Event]:
        """What a person said in sessions about the batch, in order, without what was taken back."""
        return [event for event in self.file.history.counted() if event.kind in DECISIONS and self._is_mine(event)]

    def _is_mine(self, event: Event) -> bool:
        return event.about.get("batch") == self.batch

    @property
    def said(self) -> BatchSaid:
        """What was said last about each item."""
        return self._state.said

    @property
    def looks(self) -> tuple[Look, ...]:
        """What the answers were evidence of: labels that a person looked at, and whether they were right."""
        return self._state.evidence.looks

    @property
    def calibration(self) -> Calibration:
        """What the answers taught about shown certainties, for the next batch of this catalogue."""
        return self.options.first_calibration.after(self.looks)

    @property
    def _known(self) -> set[Any]:
        return {*self.classes.tolist(), *self._state.said.named}

    def _own_name(self, label: Any) -> Any:
        """Return a name that events gave, so that one can change it."""
        named = plain_label(label.item() if isinstance(label, np.generic) else label)
        if self.refit is None and named in self.classes.tolist():
            raise OptionError(f"{named!r} is a class of a fitted catalogue, and keeps its name; change its examples")
        if named not in self._known:
            raise no_such_class("a class", named, list(self._known))
        return named

    def _positions_of(self, items: Any) -> tuple[int, ...]:
        """Check positions of items, each once."""
        n_items = len(self._state.risk)
        listed = list(items) if isinstance(items, Iterable) and not isinstance(items, (str, bytes)) else [items]
        found = tuple(whole("an item", item, least=0, error=OptionError) for item in listed)
        if not found or len(set(found)) < len(found):
            raise OptionError(f"an answer must be about one item or more, each once, got {items!r}")
        if max(found) >= n_items:
            raise OptionError(f"the batch has items 0 to {n_items - 1}, got {max(found)}")
        return found

    def _checked(self, label: Any, new: bool) -> Any:
        """Return a label as the catalogue writes it; refuse names that it does not have, unless they are new."""
        named = new_name(label, self._known)
        if named in self._known:
            return named
        if not new:
            raise no_such_class("an item", named, list(self._known))
        first = next(iter(self._known), named)
        if isinstance(named, str) != isinstance(first, str) or isinstance(named, bool) != isinstance(first, bool):
            raise LabelError(
                f"the classes are labels such as {first!r}, and {named!r} is of another kind; give a label of that kind"
            )
        return named


def _is_empty(items: Any) -> bool:
    """Whether this is a list, or the like, without any item."""
    return hasattr(items, "__len__") and len(items) == 0


def _offered(names: Any) -> tuple[Any, ...]:
    """Return names that may be offered, each once."""
    return tuple(dict.fromkeys(map(new_name, new_class_names(names))))
