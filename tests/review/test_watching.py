"""A page that is open before its batch is: what it asks about and when, what comes later, and what goes wrong."""

import threading

import pytest

from handful.errors import OptionError
from handful.progress import Progress
from handful.review.server import Page
from handful.review.watching import FIRST_ASKED, Watching
from tests.review.reviews import problem, under_review

# Seconds that a thread may take on a machine that others use.
PATIENCE = 60


class MadeUp:
    """A batch that comes in steps: some items have vectors, later others have; None for what nobody can read."""

    def __init__(self, page, review, steps, later=()):
        self.page, self.review, self.steps, self.later = page, review, steps, list(later)
        self.ready, self.asked_about, self.is_closed = 0, [], False
        self.looked = threading.Event()

    def bring(self, on_progress):
        if not self.asked_about:
            for ready in self.steps:
                self.ready = ready
                on_progress(Progress("images", ready, self.steps[-1], 1.0, None))
            return []
        if not self.later:
            self.looked.set()
            return []
        news = self.later.pop(0)
        if news is None:
            raise OptionError("the folder is gone")
        return [news]

    def n_ready(self):
        return self.ready

    def opened(self, notes):
        self.asked_about.append(self.ready)
        return self.review

    def is_watched(self):
        return True

    def close(self):
        self.is_closed = True


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Watch a made-up source until it has nothing new; the page, the source, and what the terminal was told."""
    monkeypatch.setattr("handful.review.watching.SECONDS", 0.01)

    def watches(steps, later=()):
        page, told = Page(None, "photos"), []
        with under_review(tmp_path, problem()[0]) as review:
            source = MadeUp(page, review, steps, later)
            watching = Watching(page, source)
            watching.start(PATIENCE, told.append)
            assert source.looked.wait(PATIENCE)
            watching.check(told.append)
            watching.stop()
        assert source.is_closed
        return page, source, told

    return watches


def test_it_asks_about_ten_sheets_then_about_twice_as_many_and_in_the_end_about_all(watched):
    page, source, _ = watched([100, FIRST_ASKED, 300, 2 * FIRST_ASKED, 600, 4 * FIRST_ASKED, 1000])
    assert source.asked_about == [FIRST_ASKED, 2 * FIRST_ASKED, 4 * FIRST_ASKED, 1000]
    assert page.is_open


def test_a_small_batch_is_asked_about_once_it_is_there(watched):
    _, source, _ = watched([20, 60])
    assert source.asked_about == [60]


def test_what_comes_later_is_shown_and_told_and_a_folder_that_is_gone_for_a_while_ends_nothing(watched):
    page, source, told = watched([60], ["30 photographs are new.", None, "2 photographs are gone."])
    assert source.asked_about == [60, 60, 60]
    assert told == ["30 photographs are new.", "2 photographs are gone."]
    assert "the folder is gone" in page.state()["notices"]
    assert page.review.generation == 2  # a window that shows the items from before is behind


def test_what_is_wrong_before_anything_is_there_is_raised(tmp_path):
    class Wrong(MadeUp):
        def bring(self, on_progress):
            raise OptionError("no photographs")

    source = Wrong(None, None, [])
    with pytest.raises(OptionError, match="no photographs"):
        Watching(Page(None, "photos"), source).start(PATIENCE)
    assert source.is_closed
