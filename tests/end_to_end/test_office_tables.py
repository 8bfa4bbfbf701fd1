"""200 made-up tables as people write them: each is read as it was meant, or refused with a sentence about the cause.

Then the same tables with measurements instead of numbered columns, and one more column each, of running numbers, years
or dates: it is never a feature, and always in the labels.

`python -m tests.end_to_end.test_office_tables` prints how many of each oddity were read and refused, and how many of
the added columns were used as features.
"""

import csv
import io
import random
import re
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from handful import classify
from handful.errors import BankError, SkippedRowsWarning, TableWarning
from handful.extraction.items import list_items
from handful.reading import read, read_bank

N_TABLES = 200
LABELS = ["Käse", "Brot & Butter", "Wein, rot", "007", 'the "best"', "São Paulo", "NA", "ß-Carotin"]
TEXTS = [
    "wo ist mein Koffer",
    "wake me, please",
    "5 € – or; less",
    'he said "no"',
    "déjà vu",
    "line one\nline two",
    "-1",
    "1,5",
]
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252")
# What may be odd about a table, and how often; a word of the message where such a table is refused.
ODD = {
    "blanks in labels": (0.4, None),
    "blanks in names of columns": (0.2, None),
    "blank rows at the end": (0.3, None),
    "blank rows inside": (0.2, None),
    "blank rows before the header": (0.1, None),
    "blank columns": (0.2, None),
    "separators at the end of rows": (0.2, None),
    "one row cut short": (0.1, None),
    "blank texts": (0.15, None),
    "odd numbers": (0.3, None),
    "title row": (0.12, None),
    "decimal commas": (0.1, "with a decimal comma; export the table with decimal points"),
    "two columns of one name": (0.07, "two columns of the same name, 'note'"),
    "table on sheet 2": (0.3, None),
    "many rows cut short": (0.07, "cannot be read, more than 5%; the first is .*the header has"),
}
ONLY = {
    "csv": {"separators at the end of rows", "one row cut short", "many rows cut short"},
    "xlsx": {"table on sheet 2"},
    "texts": {"blank texts"},
    "vectors": {"odd numbers", "decimal commas"},
}


def has_openpyxl():
    try:
        import openpyxl  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def numbers(rng, odd):
    value = rng.choice([0.0, -1.0, 1.5, 2.25, 1e-3, 12345.5, -0.125])
    written = [f"{value}", f"{value:e}", f"{value:+}", f" {value} "] if odd else [f"{value}"]
    return value, rng.choice(written)


class Table:
    """A made-up table: what is odd about it, its cells, and what it means."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.form = "xlsx" if has_openpyxl() and rng.random() < 0.3 else "csv"
        self.of_texts = rng.random() < 0.5
        unfit = ONLY["xlsx" if self.form == "csv" else "csv"] | ONLY["vectors" if self.of_texts else "texts"]
        self.odd = {name for name, (share, _) in ODD.items() if name not in unfit and rng.random() < share}
        if "one row cut short" in self.odd:
            self.odd.discard("many rows cut short")
        self.separator, self.ending = rng.choice(",;\t"), rng.choice(["\n", "\r\n"])
        self.encoding, self.quoting = rng.choice(ENCODINGS), rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        self.labels, self.values, self.rows = [], [], []
        for number in range(rng.randint(4, 25)):
            self.add_row(number)
        self.header = ["id", *(["text"] if self.of_texts else ["emb_0", "emb_1"]), "label", "note"]

    def has(self, name):
        return name in self.odd

    def add_row(self, number):
        rng, label = self.rng, self.rng.choice(LABELS)
        written = label
        if self.has("blanks in labels") and rng.random() < 0.5:
            written = rng.choice([f" {label}", f"{label}  ", f"{label}\xa0"])
        if self.of_texts:
            value = rng.choice(TEXTS)
            blank = self.has("blank texts") and rng.random() < 0.3 and number > 0
            cells = [rng.choice(["", "  "]) if blank else value]
        else:
            pairs = [numbers(rng, self.has("odd numbers")) for _ in range(2)]
            value, cells, blank = [v for v, _ in pairs], [text for _, text in pairs], False
            if self.has("decimal commas"):
                cells = [f"{v:.3f}".replace(".", ",") for v in value]
        self.rows.append([f"T{number}", *cells, written, rng.choice(["", "x"])])
        if not blank:
            self.labels.append(label)
            self.values.append(value)

    def sheet(self):
        """Rows of cells as they are written."""
        rng, header, rows = self.rng, list(self.header), [list(row) for row in self.rows]
        if self.has("blanks in names of columns"):
            header = [rng.choice([name, f" {name}", f"{name} "]) for name in header]
        if self.has("two columns of one name"):
            header, rows = [*header, "note"], [[*row, "y"] for row in rows]
        if self.has("many rows cut short"):
            rows = [row[:-2] if at % 2 == 0 else row for at, row in enumerate(rows)]
        if self.has("one row cut short"):
            at = rng.randrange(1, len(rows))
            self.forget(at)
            rows[at] = rows[at][:-1]
        if self.has("blank columns"):
            header, rows = [*header, "", ""], [[*row, "", ""] if len(row) >= len(self.header) else row for row in rows]
        if self.has("separators at the end of rows"):
            rows = [[*row, "", "", ""] if len(row) >= len(self.header) else row for row in rows]
        blank = [""] * len(header)
        if self.has("blank rows inside"):
            rows.insert(rng.randrange(1, len(rows)), blank)
        above = [blank] if self.has("blank rows before the header") else []
        above += [["Umfrage der Abteilung", *blank[1:]], []] if self.has("title row") else []
        return [*above, header, *rows, *([blank] * rng.randint(1, 30) if self.has("blank rows at the end") else [])]

    def forget(self, at):
        """A row that cannot be read has no place in what the table means."""
        kept = [row for row in range(len(self.rows)) if not (self.of_texts and not self.rows[row][1].strip())]
        if at in kept:
            del self.labels[kept.index(at)], self.values[kept.index(at)]

    def write(self, folder):
        rows = self.sheet()
        if self.form == "xlsx":
            return self.write_book(folder / "table.xlsx", rows)
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self.separator, lineterminator=self.ending, quoting=self.quoting)
        writer.writerows(rows)
        path = folder / f"table.{'tsv' if self.separator == chr(9) else 'csv'}"
        path.write_bytes(text.getvalue().encode(self.encoding))
        return path

    def write_book(self, path, rows):
        import openpyxl

        book = openpyxl.Workbook()
        sheet = book.active
        if self.has("table on sheet 2"):
            sheet.append(["made by the office"])
            sheet = book.create_sheet("Daten")
        decimal = self.has("decimal commas")
        for row in rows:
            sheet.append([self.cell(value, at, decimal) for at, value in enumerate(row)])
        book.save(path)
        return path

    def cell(self, value, at, decimal):
        """Spreadsheets hold numbers as numbers, unless they could not read them."""
        if value == "":
            return None
        if not self.of_texts and at in (1, 2) and not decimal:
            try:
                return float(value)
            except ValueError:
                return value
        return value

    @property
    def refused(self):
        """Words of the message, if the table is to be refused: those of the first thing that is noticed."""
        return [ODD[name][1] for name in ODD if name in self.odd and ODD[name][1]]


def shuffled(rng, values):
    values = list(values)
    rng.shuffle(values)
    return values


# Columns that people have beside their measurements: a name, and the values of n rows.
BESIDE = [
    ("Nr", lambda rng, n: range(1, n + 1)),
    ("Proben-Nr", lambda rng, n: range(20_240_001, 20_240_001 + n)),
    ("lfd. Nr.", lambda rng, n: shuffled(rng, range(1, n + 1))),
    ("No.", lambda rng, n: shuffled(rng, range(417, 417 + n))),
    ("Unnamed: 0", lambda rng, n: range(n)),
    ("ProbenNr", lambda rng, n: [1 + row // 2 for row in range(n)]),
    ("Messung", lambda rng, n: shuffled(rng, range(90, 90 + n)) if n > 5 else [f"M{row}" for row in range(n)]),
    ("Jahr", lambda rng, n: [rng.randint(19, 24) for _ in range(n)]),
    ("year", lambda rng, n: [rng.randint(1850, 2024) for _ in range(n)]),
    ("Baujahr", lambda rng, n: [rng.randint(1850, 2024) for _ in range(n)]),
    ("aufgenommen", lambda rng, n: [rng.randint(2019, 2024) for _ in range(n)]),
    ("Datum", lambda rng, n: [45_000 + rng.randint(0, 300) for _ in range(n)]),
    ("collected", lambda rng, n: [20_240_100 + rng.randint(1, 31) for _ in range(n)]),
    ("Messdatum", lambda rng, n: [f"2024-01-{rng.randint(10, 31)}" for _ in range(n)]),
]


class NumberedTable(Table):
    """A table of two measurements, or of texts, with a column that must not be a feature."""

    def __init__(self, seed):
        super().__init__(seed)
        self.beside, values = BESIDE[seed % len(BESIDE)]
        if not self.of_texts:
            self.header[1:3] = ["Länge", "Breite"]
        self.header.append(self.beside)
        for row, value in zip(self.rows, values(self.rng, len(self.rows)), strict=True):
            row.append(str(value))

    def cell(self, value, at, decimal):
        if at == self.header.index(self.beside) and value.isdigit():
            return int(value)
        return super().cell(value, at, decimal)


def used_as_feature(table, folder):
    """Return whether the added column is a feature; fail if it, or a measurement, is not in the labels."""
    path = table.write(folder)
    with warnings.catch_warnings(action="ignore"):
        found = read(path)
        batch = classify(path, path, labels="label").about.batch if found.vectors is not None else None
    assert {table.beside, *table.header} <= set(map(str.strip, found.columns))
    if batch is None:
        return False
    assert set(table.header) <= set(batch.columns.by_name)
    assert {*table.header[1:3]} <= set(batch.features)
    return table.beside in {*found.features, *batch.features}


def meaning(path):
    """Labels, and texts or vectors, as they are read."""
    with warnings.catch_warnings(action="ignore", category=SkippedRowsWarning):
        warnings.simplefilter("ignore", TableWarning)
        if read(path).vectors is None:
            items = list_items(path)
            return [items.class_names[k] for k in items.labels], list(items.source)
        bank = read_bank(path)
        return [bank.class_names[k] for k in bank.labels], bank.features.tolist()


def outcome(table, folder):
    """Return "read" or "refused"; fail if the table is read as something else, or refused without naming the cause."""
    path = table.write(folder)
    try:
        labels, values = meaning(path)
    except BankError as error:
        sentence = str(error)
        assert table.refused, (sorted(table.odd), sentence)
        causes = [*table.refused, *(["is another"] if "table on sheet 2" in table.odd else [])]
        assert any(re.search(words, sentence) for words in causes), (sorted(table.odd), sentence)
        return "refused"
    # Decimal commas are read where they cannot be thousands.
    assert not table.refused or "decimal commas" in table.odd, sorted(table.odd)
    assert labels == table.labels
    expected = table.values if table.of_texts else np.array(table.values, np.float32).tolist()
    assert values == expected
    return "read"


@pytest.mark.parametrize("part", range(10))
def test_each_table_is_read_as_it_was_meant_or_refused_with_the_cause(tmp_path, part):
    for seed in range(part, N_TABLES, 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome(Table(seed), folder)


@pytest.mark.parametrize("part", range(10))
def test_running_numbers_years_and_dates_are_never_features_and_all_columns_are_kept(tmp_path, part):
    n_read = 0
    for seed in range(part, N_TABLES, 10):
        table = NumberedTable(seed)
        if table.refused:
            continue
        folder = tmp_path / str(seed)
        folder.mkdir()
        n_read += 1
        assert not used_as_feature(table, folder), (table.beside, seed)
    assert n_read > 5


def test_every_oddity_occurs_and_most_tables_are_read():
    tables = [Table(seed) for seed in range(N_TABLES)]
    forms = {"csv"} | ({"xlsx"} if has_openpyxl() else set())
    assert {table.form for table in tables} == forms
    missing = set(ODD) - set().union(*(table.odd for table in tables))
    assert missing <= (ONLY["xlsx"] if forms == {"csv"} else set())
    assert sum(not table.refused for table in tables) > N_TABLES / 3


if __name__ == "__main__":
    counts = Counter()
    for seed in range(N_TABLES):
        table = Table(seed)
        with tempfile.TemporaryDirectory() as place:
            found = outcome(table, Path(place))
        about = [table.form, "texts" if table.of_texts else "vectors", *table.odd]
        about += [table.encoding, {",": "comma", ";": "semicolon", "\t": "tab"}[table.separator]] * (
            table.form == "csv"
        )
        counts.update((name, found) for name in ("all", *about))
    for name in dict.fromkeys(name for name, _ in counts):
        print(f"{name:32}{counts[name, 'read']:5} read{counts[name, 'refused']:5} refused")
    used = Counter()
    for seed in range(N_TABLES):
        table = NumberedTable(seed)
        with tempfile.TemporaryDirectory() as place:
            if not table.refused:
                used[table.beside, used_as_feature(table, Path(place))] += 1
    for name, _ in BESIDE:
        print(f"column {name:25}{used[name, False]:5} kept{used[name, True]:5} used as a feature")
