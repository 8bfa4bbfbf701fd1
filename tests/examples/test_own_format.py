"""examples/own_format adds a format from outside, for a program that registers it and for every program."""

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import handful
from handful.errors import BankError, OptionError
from handful.reading import Field, Reader, Writer, register_field
from handful.reading.registry import FIELDS

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_format"
MOST_LINES = 60
PRESENT = [2, 2, 2, 5, 5, 9, 2, 5]


@pytest.fixture(scope="module")
def barcodes():
    spec = importlib.util.spec_from_file_location("barcodes", EXAMPLE / "barcodes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def files(tmp_path):
    """Barcodes of twelve species with three examples each, and a sample of three species; a letter in 25 is misread."""
    rng = np.random.default_rng(0)
    letters = np.array(list("ACGT"))
    species = rng.choice(letters, (12, 300))

    def record(name, k):
        read = np.where(rng.random(300) < 0.04, rng.choice(np.array(list("ACGTN")), 300), species[k])
        return f">{name}\n{''.join(read[:150])}\n{''.join(read[150:]).lower()}\n"

    known = "".join(record(f"k{k}{n} species {k}", k) for k in range(12) for n in range(3))
    (tmp_path / "known.fasta").write_text(known)
    (tmp_path / "sample.fasta").write_text("".join(record(f"s{n}", k) for n, k in enumerate(PRESENT)))
    return tmp_path


def named(path):
    """The species of each barcode in a file."""
    return [line.split(" ", 1)[1] for line in path.read_text().splitlines() if line.startswith(">")]


EXPECTED = [f"species {k}" for k in PRESENT]


def test_the_example_is_short():
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLE.iterdir()) <= MOST_LINES


def test_a_program_registers_it(monkeypatch, barcodes, files):
    monkeypatch.setattr(FIELDS, "_values", dict(FIELDS))
    with pytest.raises(BankError, match="of an unknown kind"):
        handful.read(files / "known.fasta")
    register_field("barcodes", barcodes.FIELD)
    found = handful.classify(files / "known.fasta", files / "sample.fasta")
    assert found.labels.tolist() == EXPECTED
    handful.classification.write_predictions(found, files / "named.fasta")
    assert named(files / "named.fasta") == EXPECTED


def test_a_package_that_is_installed_adds_it_to_the_command_line(tmp_path, files):
    about = tmp_path / "barcodes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: barcodes\nVersion: 1.0\n")
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"[{group}]\n{name} = {value}\n" for group, named in points.items() for name, value in named.items()]
    (about / "entry_points.txt").write_text("".join(lines))
    source = Path(handful.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, EXAMPLE, source)))}
    command = ["classify", "known.fasta", "sample.fasta", "--out", "named.fasta"]
    subprocess.run([sys.executable, "-m", "handful", *command], cwd=files, env=environment, check=True)
    assert named(files / "named.fasta") == EXPECTED


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("barcodes.py", "must be a handful.reading.Field, got str"),
        (Field(readers={"fasta": Reader(None)}), r"lower case with a dot, such as '\.mgf', got 'fasta' in its readers"),
        (Field(writers={".FASTA": Writer(None)}), r"got '\.FASTA' in its writers"),
        (Field(readers={".csv": Reader(None)}), r"handful has readers of \.csv files already; choose another ending"),
        (Field(writers={".xlsx": Writer(None)}), r"handful has writers of \.xlsx files already"),
    ],
)
def test_what_cannot_be_a_field_is_refused(field, message):
    with pytest.raises(OptionError, match=message):
        register_field("barcodes", field)
    with pytest.raises(OptionError, match="'spectra' is already taken by handful"):
        register_field("spectra", Field())
