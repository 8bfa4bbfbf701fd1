"""The version of handful."""

__version__ = "0.4.0"
