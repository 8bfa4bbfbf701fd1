"""The tables: numbers in the header by which programs know the file, and types that SQLite checks."""

import random
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from handful.catalogue.events import ANSWERS, KINDS, NEEDED
from handful.catalogue.file import CatalogueFile
from handful.catalogue.schema import APPLICATION_ID, PAGE_SIZE, SCHEMA_VERSION, TABLES
from handful.catalogue.vectors import EncoderId
from tests.catalogue.people import arrives_somehow, items_of, photographs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "understand" / "catalogue_file.md"


@pytest.fixture
def connection(tmp_path):
    CatalogueFile.open(tmp_path / "a.handful").close()
    connection = sqlite3.connect(tmp_path / "a.handful")
    yield connection
    connection.close()


def test_the_header_says_what_the_file_is(connection, tmp_path):
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
    assert found == [APPLICATION_ID, SCHEMA_VERSION]
    assert (tmp_path / "a.handful").read_bytes()[68:72] == b"hand"
    assert connection.execute("PRAGMA page_size").fetchone() == (PAGE_SIZE,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_the_file_has_these_tables_and_nothing_else(connection):
    kept = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rootpage")]
    assert sorted(kept) == sorted(TABLES)
    kinds = {kind for (kind,) in connection.execute("SELECT type FROM sqlite_master")}
    assert kinds == {"table", "index"}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO events VALUES (1, 'a', 'first', '[]', '', '', 'open', '{}')",
        "INSERT INTO contents VALUES (1, 'text', 'image', NULL)",
        "INSERT INTO encoders VALUES (1, 'a', '1', 'b', 'many', 16)",
        "INSERT INTO items VALUES (1, x'00', NULL, 1, NULL)",
    ],
)
def test_values_of_other_types_are_refused_by_sqlite_itself(connection, statement):
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)


def test_the_page_explains_every_table_every_column_and_every_kind_of_event(connection):
    page = PAGE.read_text(encoding="utf-8")
    assert str(APPLICATION_ID) in page
    assert f"the version of the tables, {SCHEMA_VERSION};" in page
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert sorted(tables) == sorted(re.findall(r"^### (\w+)$", page, re.MULTILINE))
    for table in tables:
        section = page.partition(f"\n### {table}\n")[2].partition("\n##")[0]
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        assert columns == re.findall(r"^- `(\w+)`: ", section, re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*?) ?\|$", page, re.MULTILINE)
    assert {kind: re.findall(r"`(\w+)`", needed) for kind, needed in rows[1:]} == {
        kind: list(NEEDED.get(kind, {})) for kind in KINDS
    }
    assert all(f"`{kind}`" in page.partition("An answer about an item (")[2] for kind in ANSWERS)


def queries():
    return re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_queries_of_the_page_run_and_say_what_handful_says(tmp_path):
    rng = random.Random(0)
    with CatalogueFile.open(tmp_path / "b.handful") as catalogue:
        catalogue.arrive("monday", photographs(6))
        catalogue.put_vectors(EncoderId("minilm", "1", "5d41"), [1, 2], np.ones((2, 3)))
        for _ in range(30):
            shown = [one._replace(offered="fox", risk=rng.random()) for one in items_of(rng.randint(1, 6))]
            kind = rng.choice(("named", "named", "none", "bad", "open"))
            catalogue.append(kind, {"label": rng.choice(("fox", "owl"))} if kind == "named" else {}, shown)
            if rng.random() < 0.3:
                arrives_somehow(catalogue, rng)
    connection = sqlite3.connect(f"file:{tmp_path / 'b.handful'}?mode=ro", uri=True)
    found = [connection.execute(query).fetchall() for query in queries()]
    connection.close()
    assert len(found) > 5
    assert all(found)
    happened, said, last, places, *_ = found
    assert sum(n for _, n, *_ in happened) == len(catalogue.history.events)
    assert len(said) == 30
    assert {item: (kind, label) for item, kind, label, _ in last} == {
        item: (one.kind, one.label) for item, one in catalogue.said.answers.items()
    }
    assert {(item, batch, place) for item, batch, place in places} == {
        (item, batch, place) for batch, here in catalogue.said.places.items() for item, place in here.items()
    }
