"""The exceptions and warnings that only this package raises; those that it shares are in `handful.errors`."""

from handful.errors import HandfulError, HandfulWarning


class TransformError(HandfulError, ValueError):
    """A transform was called without a parameter it needs, or with one it cannot use."""


class UndefinedError(HandfulError, LookupError):
    """The method does not have the requested quantity."""


class PlanError(HandfulError, ValueError):
    """A benchmark plan, or a run of it, is invalid."""


class CheckpointError(HandfulError, ValueError):
    """A file does not contain a trained network, or contains a different one."""


class TrainingError(HandfulError, RuntimeError):
    """A network cannot be trained with these images, classes or run folder."""


class NotConvergedWarning(HandfulWarning):
    """The answer was still changing when the iterations ran out."""


class CollapseWarning(HandfulWarning):
    """Nearly all items were given the same class, although few of them would get it if labelled on their own."""
