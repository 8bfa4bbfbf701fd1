"""The version of handful."""

__version__ = "0.6.0"
