"""handful: say which few of many classes occur in a batch, and label the whole batch at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from handful.version import __version__ as __version__

if TYPE_CHECKING:
    from handful.banks import FeatureBank
    from handful.classification import classify, label, rescore
    from handful.estimators import BatchClassifier, TopScores, infer_scores
    from handful.reading import read, read_bank
    from handful.review.open_catalogue import open
    from handful.session import Session

__all__ = [
    "BatchClassifier",
    "FeatureBank",
    "Session",
    "TopScores",
    "classify",
    "infer_scores",
    "label",
    "open",
    "read",
    "read_bank",
    "rescore",
]

# Where each name is. A module is imported when a name of it is first used: `handful --help` and `import handful` need
# neither torch nor scikit-learn.
_HOMES = {
    "banks": ("FeatureBank",),
    "classification": ("classify", "label", "rescore"),
    "estimators": ("BatchClassifier", "TopScores", "infer_scores"),
    "reading": ("read", "read_bank"),
    "session": ("Session",),
}
_HOME = {name: f"handful.{home}" for home, names in _HOMES.items() for name in names}
_HOME["open"] = "handful.review.open_catalogue"
# Modules that are there after `import handful` alone.
_PARTS = frozenset({*_HOMES, "catalogue", "datasets", "errors", "extraction", "review", "scale"})


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"handful.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'handful' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS, "__version__"})
