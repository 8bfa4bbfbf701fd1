"""Session: a batch and a person; it asks, takes answers, labels the batch again, and says when enough was said."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self, Unpack

import numpy as np

from handful.arguments import takes, whole
from handful.errors import LabelError, OptionError
from handful.estimators import Answer, Known
from handful.estimators.context import checked
from handful.estimators.given import new_class_names, no_such_class
from handful.machine.extras import import_extra
from handful.reading.class_names import new_name, plain_label
from handful.session.from_nothing import FromNothing
from handful.session.labelling import Labeller, MemoryLabeller, classifier_of
from handful.session.requests import SHEET_SIZE, Request
from handful.session.state import SessionOptions, State
from handful.session.steps import STEP_KINDS, Said, Step
from handful.session.stopping import SURE_TO_STOP, Calibration, Estimate, Look
from handful.shapes import Bool, Int


class Session:
    """A batch under review, without a page: it asks, takes answers, and says when a person may stop.

    Every answer teaches: the whole batch is labelled again with it. And every answer is evidence about how far the
    certainties of the other labels can be trusted. The state depends on the list of answers (`steps`) and on nothing
    else, so the same answers always lead to the same labels.

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
        The chance that at most 5 % of all labels are wrong when a person may stop; a class with one or two items may
        still be missed then.
    calibration : Calibration or None
        What earlier batches taught, `session.calibration` after the last of them; by default what the catalogue keeps.
    prior, candidates, given, new_classes, sequence, pool, order, coarse, expect_unknown : object
        What is known about the batch in advance, see `Known`. Without a catalogue, there are `candidates` alone, a list
        of names that may occur: they are offered, and rule nothing out.

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
    ...     right = truth[items] == request.label
    ...     if right.any():
    ...         _ = session.answer(items[right], request.label)
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
        if catalogue is None:
            if groups is not None or checked(known).keys() - {"candidates"}:
                raise OptionError(
                    "a session without a catalogue takes the batch, and candidates as names to offer; give groups and "
                    "what else is known about the batch with a catalogue"
                )
            offered = known.get("candidates")
            self._begin(FromNothing(X), Said(), sheet_size, sure, calibration, from_nothing=True, offered=offered)
            return
        labeller = MemoryLabeller(classifier_of(catalogue), X, groups, known)
        if calibration is None:
            calibration = Calibration(tuple(getattr(labeller.catalogue.record, "calibration", ())))
        self._begin(labeller, labeller.said, sheet_size, sure, calibration)

    @classmethod
    def of(
        cls,
        labeller: Labeller,
        *,
        said: Said | None = None,
        from_nothing: bool = False,
        candidates: Any = None,
        sheet_size: int = SHEET_SIZE,
        sure: float = SURE_TO_STOP,
        calibration: Calibration | None = None,
    ) -> Self:
        """Begin a session about a batch that something else labels, for instance files.

        Parameters
        ----------
        labeller : callable
            Returns the `Answer` about the whole batch with everything that was `Said`.
        said : Said or None
            What was said before the session; it cannot be undone.
        from_nothing : bool
            Whether there is no catalogue; the labeller is then `FromNothing`, or one like it.
        candidates : list of labels or None
            Names that are offered, where there is no catalogue.
        sheet_size, sure, calibration : object
            As in `Session`.

        Returns
        -------
        Session
            The session.
        """
        session = cls.__new__(cls)
        first = Said() if said is None else said
        session._begin(labeller, first, sheet_size, sure, calibration, from_nothing=from_nothing, offered=candidates)
        return session

    def _begin(
        self,
        labeller: Labeller,
        said: Said,
        sheet_size: int,
        sure: float,
        calibration: Calibration | None,
        *,
        from_nothing: bool = False,
        offered: Any = None,
    ) -> None:
        if not 0 < sure < 1:
            raise OptionError(f"sure must be a chance between 0 and 1, got {sure!r}")
        self.options = SessionOptions(
            whole("sheet_size", sheet_size, least=1, error=OptionError),
            float(sure),
            Calibration() if calibration is None else calibration,
        )
        self.labeller = labeller
        self.from_nothing = from_nothing
        self.offered = _offered(offered)
        first = labeller(said)
        self.classes = np.zeros(0, object) if from_nothing else first.classes
        self._states = [State(labeller, self.options, (), said, first, ())]

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

    def answer(self, items: Any, label: Any, *, new: bool = False) -> Self:
        """Say what items are, and label the batch again.

        Parameters
        ----------
        items : int or list of int
            Positions; several items are one decision.
        label : label or None
            Their class; None if they belong to none of the classes.
        new : bool
            Whether the catalogue does not have the class yet; without it, such a name is refused, with the nearest one.

        Returns
        -------
        Session
            The session itself.
        """
        named = None if label is None else self._checked(label, new)
        return self.take(Step("answer", self._items(items), named, new and named not in self._known))

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
        return self.take(Step("skip", self._items(items)))

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
        return self.take(Step("discard", self._items(items)))

    def merge(self, label: Any, into: Any, *, new: bool = False) -> Self:
        """Say that two names are one class: all items with the first get the second.

        Parameters
        ----------
        label, into : label
            The name that is given up, and the one that stays; both were said in this session.
        new : bool
            Whether nobody has said the second one yet; the first is then renamed.

        Returns
        -------
        Session
            The session itself.
        """
        before = self._said_name(label)
        after = self._checked(into, new)
        if before == after:
            raise OptionError(f"{before!r} is one class already; give two names")
        return self.take(Step("merge", (), (before, after), new and after not in self._known))

    def split(self, label: Any) -> Self:
        """Say that one class is two: some of its items lose their label, and are asked about.

        All items of the class are put into two groups by how they look. Those of the group with fewer answers are not
        named any more.

        Parameters
        ----------
        label : label
            A name that was said in this session.

        Returns
        -------
        Session
            The session itself.
        """
        return self.take(Step("split", (), self._said_name(label)))

    def undo(self) -> Self:
        """Take the last step back.

        Returns
        -------
        Session
            The session itself.
        """
        if len(self._states) == 1:
            raise OptionError("there is nothing to undo")
        self._states.pop()
        return self

    def take(self, step: Step) -> Self:
        """Take one step, for instance of `steps` of an earlier session; if it is refused, nothing has changed.

        Parameters
        ----------
        step : Step
            The step.

        Returns
        -------
        Session
            The session itself.
        """
        if step.kind not in STEP_KINDS:
            raise OptionError(f"there is no step {step.kind!r}; it must be one of {', '.join(sorted(STEP_KINDS))}")
        if step.kind in ("merge", "split") and not self.from_nothing:
            raise OptionError("classes of a catalogue cannot be merged or split in a session; change the catalogue")
        self._states.append(self._state.after(step._replace(label=plain_label(step.label))))
        return self

    def review(self, *, images: Any = None, texts: Any = None, folder: Any = None) -> Self:
        """Open the page of `handful review` about the session, and wait until it is finished.

        What a person says there are steps of the session. It needs the extra `review`. In a notebook, interrupt the
        cell to stop; with a folder, the next call goes on.

        Parameters
        ----------
        images, texts : list, optional
            What the page shows of each row: paths, arrays or Pillow images; or sentences.
        folder : path-like, optional
            Where the answers are kept; by default they are kept no longer than the call takes.

        Returns
        -------
        Session
            The session itself: `result` has the labels, `said.given` what the person said.
        """
        import_extra("handful.review.memory", "review").review(self, images=images, texts=texts, folder=folder)
        return self

    # -- what follows -------------------------------------------------------------------------------------------------

    @property
    def result(self) -> Answer:
        """The labels of the whole batch, with everything said so far."""
        return self._state.answer

    @property
    def expected_right(self) -> Estimate:
        """Share of all labels that are right, with a 90 % interval; slips of a person count, too."""
        state = self._state
        some = state.unseen.of(state.open & ~state.known_wrong)
        return state.posterior.right(some, state.n_labels, state.mistakes)

    @property
    def may_stop(self) -> bool:
        """Whether at most 5 % of all labels are wrong, with a chance of at least `sure`.

        That is about labels: a class with one or two items may still be missed, or without a catalogue have no name.
        """
        return self._state.may_stop(self._state.open)

    @property
    def answers_left(self) -> int:
        """About how many more decisions until `may_stop`."""
        state = self._state
        if state.may_stop(state.open):
            return 0
        # Fewer labels are open after every sheet, so the first one after which a person may stop is found by halving.
        too_few = 0
        enough = len(state.sheets)
        while too_few + 1 < enough:
            middle = (too_few + enough) // 2
            is_open = state.open.copy()
            for sheet in state.sheets[:middle]:
                is_open[sheet.items] = False
            if state.may_stop(is_open):
                enough = middle
            else:
                too_few = middle
        return math.ceil(sum(sheet.expected_decisions for sheet in state.sheets[:enough]))

    @property
    def n_decisions(self) -> int:
        """Decisions so far: a sheet is one, each of its exceptions one more."""
        return len(self.steps)

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
    def examples(self) -> tuple[Int[np.ndarray, "some"], list[Any]]:
        """Items with a name that a person gave, as positions, and their labels: what makes a catalogue."""
        named = {item: label for item, label in self._state.said.given.items() if label is not None}
        return np.array(list(named), np.int64), list(named.values())

    @property
    def is_done(self) -> bool:
        """Whether everything has been seen."""
        return bool(self.seen.all())

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was said, in order; another session about the same batch that takes these steps is equal."""
        return self._state.steps

    @property
    def said(self) -> Said:
        """What was said last about each item."""
        return self._state.said

    @property
    def looks(self) -> tuple[Look, ...]:
        """What the answers were evidence of: labels that a person looked at, and whether they were right."""
        return self._state.looks

    @property
    def calibration(self) -> Calibration:
        """What the answers taught about shown certainties, for the next batch of this catalogue."""
        return self.options.first_calibration.after(self._state.looks)

    @property
    def _state(self) -> State:
        return self._states[-1]

    @property
    def _known(self) -> set[Any]:
        return {*self.classes.tolist(), *self._state.said.new_classes}

    def _said_name(self, label: Any) -> Any:
        """Return a name that was said in this session."""
        named = plain_label(label.item() if isinstance(label, np.generic) else label)
        if named not in self._state.said.named:
            raise no_such_class("a step", named, list(self._state.said.named))
        return named

    def _items(self, items: Any) -> tuple[int, ...]:
        """Check positions of items, each once."""
        n_items = len(self._state.risk)
        listed = list(items) if isinstance(items, Iterable) and not isinstance(items, (str, bytes)) else [items]
        found = tuple(whole("an item", item, least=0, error=OptionError) for item in listed)
        if not found or len(set(found)) < len(found):
            raise OptionError(f"a step must be about one item or more, each once, got {items!r}")
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


def _offered(names: Any) -> tuple[Any, ...]:
    """Return names that may be offered, each once."""
    return tuple(dict.fromkeys(map(new_name, new_class_names(names))))
