"""A person who knows the truth, and answers what a session asks."""

from collections.abc import Callable, Collection, Iterator, Sequence

from handful import Session
from handful.session import Request

# Whether an exception of a sheet is overlooked.
Overlooks = Callable[[], bool]


def reply(
    session: Session,
    request: Request,
    truth: Sequence[str | None],
    *,
    unnamed: Collection[str] = (),
    overlooks: Overlooks = lambda: False,
) -> Iterator[list[int]]:
    """Answer a request, one decision after another; yield the exceptions that were overlooked."""
    says = [None if truth[item] is None or truth[item] in unnamed else str(truth[item]) for item in request.items]
    if request.oddest and request.is_sheet:
        yield from _reply_to_mixed(session, request, says, overlooks)
        return
    most = max(dict.fromkeys(says), key=lambda label: (says.count(label), label == request.label))
    pairs = list(zip(request.items, says, strict=True))
    missed = [item for item, said in pairs if said != most and overlooks()]
    mine = [item for item, said in pairs if said == most or item in missed]
    others = [item for item in request.items if item not in mine]
    session.answer(mine, most, new=most is not None, wrong=others)
    yield missed
    yield from _name_each(session, [pair for pair in pairs if pair[0] in others])


def _reply_to_mixed(
    session: Session, request: Request, says: list[str | None], overlooks: Overlooks
) -> Iterator[list[int]]:
    shown = list(zip(request.items, request.labels, says, strict=True))
    not_named = session.not_named
    wrong = [item for item, label, said in shown if not_named[item] or label != said]
    missed = [item for item in wrong if not not_named[item] and overlooks()]
    wrong = [item for item in wrong if item not in missed]
    right = [item for item in request.items if item not in wrong]
    session.accept(right, wrong=wrong)
    yield missed
    yield from _name_each(session, [(item, said) for item, _, said in shown if item in wrong])


def _name_each(session: Session, pairs: list[tuple[int, str | None]]) -> Iterator[list[int]]:
    for item, said in pairs:
        session.answer(item, said, new=said is not None)
        yield []


def finished(session: Session, truth: Sequence[str | None], **how: Collection[str]) -> Session:
    """Answer until nothing is asked."""
    while (request := session.ask()) is not None:
        for _ in reply(session, request, truth, **how):
            pass
    return session
