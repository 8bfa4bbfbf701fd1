"""Feature banks: features with labels and provenance, on disk or in memory."""

from handful.features.bank import FeatureBank, Provenance

__all__ = ["FeatureBank", "Provenance"]
