"""The exceptions that handful raises; every message says what was expected, what was given and what to do."""


def printable(text: str) -> str:
    r"""Return text that takes one line of a terminal: characters that are not printable become escapes.

    Examples
    --------
    >>> printable("two\nlines")
    'two\\nlines'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class HandfulError(Exception):
    """Base class of all errors raised by handful.

    Examples
    --------
    >>> from handful.workers import here
    >>> try:
    ...     here(0)
    ... except HandfulError as error:
    ...     print(error)
    there must be at least 1 worker, got 0
    """

    def __init__(self, *said: object) -> None:
        """Keep the sentence as one line of text: what cannot be printed in names and contents of files is escaped."""
        super().__init__(*(printable(s) if isinstance(s, str) else s for s in said))


class TaskError(HandfulError, ValueError):
    """A task is invalid: shapes, labels or values are wrong."""


class OptionError(HandfulError, ValueError):
    """An option of a method has an unknown name or a value outside its range."""


class UnknownNameError(HandfulError, KeyError):
    """There is no method or transform with the given name."""

    def __str__(self) -> str:
        """Return the sentence itself; `KeyError` would return its repr."""
        return str(self.args[0])


class BankError(HandfulError, ValueError):
    """A feature bank, or a file of vectors, texts or images, cannot be read."""


class MissingExtraError(HandfulError, ImportError):
    """A part of handful needs optional packages that are not installed."""


class ExtractionError(HandfulError, RuntimeError):
    """Features cannot be extracted: the encoder does not fit the items, or no item is left."""


class FileFormatError(HandfulError, ValueError):
    """A file is damaged or not of the expected format, or something cannot be stored in the format."""


class StorageError(HandfulError, OSError):
    """A folder or a URL cannot be read or written."""


class BehindError(HandfulError):
    """Something was said since the state that an answer is about was shown."""


class PartitionsError(HandfulError, RuntimeError):
    """Some partitions of a run could not be labelled; `report` says which, and what was done."""

    def __init__(self, said: str, report: object = None) -> None:
        """Keep the report."""
        super().__init__(said)
        self.report = report


class ClusterError(HandfulError, RuntimeError):
    """A cluster has no node left that could do the work."""


class LabelError(HandfulError, ValueError):
    """Labels given to a classifier are of the wrong kind, or new where they must be known, or the reverse."""


class HandfulWarning(UserWarning):
    """Base class of all warnings about an answer; each says what was observed, what it means and what to do.

    Examples
    --------
    Once you know the reason for a warning, you can turn it off:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnlikeCatalogueWarning)
    ...     warnings.warn(UnlikeCatalogueWarning("these sentences are full of typing mistakes"))
    """


class SkippedRowsWarning(HandfulWarning):
    """Items of a catalogue or rows of a frame are left out: they cannot be read or have no label; they are counted."""


class TableWarning(HandfulWarning):
    """A table was read in a way that is worth a look: below a title, or from another sheet than the first."""


class SimilarNamesWarning(HandfulWarning):
    """Classes have names that differ only by case, inner blanks, dashes, underscores or the form of characters."""


class EqualClassesWarning(HandfulWarning):
    """Two classes have the same examples, so nothing can tell them apart."""


class UnlikeCatalogueWarning(HandfulWarning):
    """Labels are much less certain than those of held-out examples of the catalogue."""


class WeakFeaturesWarning(HandfulWarning):
    """The features barely separate the classes, even for held-out examples."""


class UnusedShareWarning(HandfulWarning):
    """Unknown items are expected, but the catalogue cannot tell which items these are."""


class OverturnedScoresWarning(HandfulWarning):
    """Items to which another model gave a high score for one class were given another."""
