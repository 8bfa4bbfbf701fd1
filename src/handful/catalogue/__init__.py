"""Catalogue: one SQLite file that holds a person's work: items, vectors, and everything that was said about them."""
