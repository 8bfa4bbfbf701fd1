"""The few exceptions we raise; every message says what was expected, what came and what to do."""


class HandfulError(Exception):
    """Parent of all errors raised on purpose by handful.

    Examples
    --------
    >>> import handful
    >>> try:
    ...     handful.ShotsPerClass(0)
    ... except HandfulError as error:
    ...     print(error)
    shots must be a whole number of at least 1, got 0
    """


class TaskError(HandfulError, ValueError):
    """A task cannot be posed as given: shapes, labels or values are wrong."""


class OptionError(HandfulError, ValueError):
    """An option of a method has an unknown name or a value outside its range."""


class TransformError(HandfulError, ValueError):
    """A transform was called without a parameter it needs, or with one it cannot use."""


class UnknownNameError(HandfulError, KeyError):
    """A method or transform was asked for by a name that is in no table."""

    def __str__(self) -> str:
        """Print the sentence itself; `KeyError` would print its repr."""
        return str(self.args[0])


class UndefinedError(HandfulError, LookupError):
    """A quantity was asked for that the method at hand does not have."""


class BankError(HandfulError, ValueError):
    """A feature bank, or a file meant to become one, is not what it should be."""


class MissingExtraError(HandfulError, ImportError):
    """A part of handful was asked for whose optional packages are not installed."""


class ItemsError(HandfulError, ValueError):
    """What was given to extract features from cannot be listed."""


class ExtractionError(HandfulError, RuntimeError):
    """Features cannot be extracted as asked: the backbone does not fit the items, or nothing is left of them."""


class PlanError(HandfulError, ValueError):
    """A benchmark plan, or the run made of it, is not what it should be."""


class FileFormatError(HandfulError, ValueError):
    """A file of tensors is damaged, or holds what the format cannot."""


class CheckpointError(HandfulError, ValueError):
    """A file meant to hold a trained network does not, or holds another one."""


class TrainingError(HandfulError, RuntimeError):
    """A network cannot be trained as asked: the images, the classes or the folder of the run do not allow it."""


class LabelError(HandfulError, ValueError):
    """Labels given to a classifier are of the wrong kind, unknown where they should be known, or the reverse."""


class HandfulWarning(UserWarning):
    """Parent of all warnings about an answer; each says what was seen, what it means and what to do.

    Examples
    --------
    Once you know why one of them comes, it can be turned off:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", CalibrationBorderWarning)
    ...     warnings.warn(CalibrationBorderWarning("classes are far apart"))
    """


class NotConvergedWarning(HandfulWarning):
    """The answer was still changing when the iterations ran out."""


class CollapseWarning(HandfulWarning):
    """Nearly all items got the label of one class, which few of them would have got alone."""


class CalibrationBorderWarning(HandfulWarning):
    """The examples could not fix the scale of the features."""


class UnlikeSupportWarning(HandfulWarning):
    """The batch lies far from every class of the catalogue."""
