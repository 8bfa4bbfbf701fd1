"""The tables of a catalogue, as SQLite keeps them; docs/understand/catalogue_file.md explains each column."""

from __future__ import annotations

# "hand" in the header of the file, by which other programs tell what it is.
APPLICATION_ID = 0x68616E64
# PRAGMA user_version. A file of a later version is refused.
SCHEMA_VERSION = 1
# Bytes of a page: a vector of 1,280 numbers of 16 bits fits six times, and wastes less than in pages of 4,096.
PAGE_SIZE = 16_384

TABLES = (
    """CREATE TABLE about (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT""",
    """CREATE TABLE contents (
    content INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    text TEXT
) STRICT""",
    """CREATE TABLE encoders (
    encoder INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    weights TEXT NOT NULL,
    dim INTEGER NOT NULL,
    bits INTEGER NOT NULL,
    UNIQUE (name, version, weights)
) STRICT""",
    """CREATE TABLE vectors (
    content INTEGER NOT NULL REFERENCES contents,
    encoder INTEGER NOT NULL REFERENCES encoders,
    numbers BLOB NOT NULL,
    UNIQUE (content, encoder)
) STRICT""",
    """CREATE TABLE items (
    item INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    batch TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES contents,
    columns TEXT
) STRICT""",
    """CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    event TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    after TEXT NOT NULL,
    time TEXT NOT NULL,
    person TEXT NOT NULL,
    kind TEXT NOT NULL,
    about TEXT NOT NULL
) STRICT""",
    """CREATE TABLE event_items (
    number INTEGER NOT NULL REFERENCES events,
    item INTEGER NOT NULL REFERENCES items,
    place TEXT,
    answered INTEGER NOT NULL,
    offered TEXT,
    risk REAL,
    wrong REAL,
    support REAL,
    PRIMARY KEY (number, item)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE caches (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT""",
)
