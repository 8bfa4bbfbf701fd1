"""The version of handful."""

__version__ = "0.5.1"
