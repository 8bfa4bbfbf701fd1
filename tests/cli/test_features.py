import json

import numpy as np
import pytest

pytest.importorskip("typer")
from handful import FeatureBank, read_bank
from handful.banks import Provenance
from handful.cli.main import main
from tests.banks_at_hand import random_bank


@pytest.fixture
def npz(tmp_path):
    bank = random_bank()
    np.savez(tmp_path / "x.npz", z=bank.features, k=bank.labels, names=bank.class_names)
    return tmp_path / "x.npz"


def test_import_writes_a_bank_and_prints_its_hash(npz, tmp_path, capsys):
    place = tmp_path / "bank"
    arguments = ["features", "import", str(npz), str(place), "--features", "z", "--labels", "k", "--licence", "CC0"]
    assert main(arguments) == 0
    streams = capsys.readouterr()
    bank = FeatureBank.load(place)
    assert streams.out == f"{random_bank().content_hash}  {place}\n"
    assert streams.err == ""
    assert bank.provenance == Provenance(licence="CC0")
    assert main(arguments) == 1
    assert "already exists" in capsys.readouterr().err


def test_import_keeps_the_provenance_it_finds(tmp_path):
    random_bank(provenance=Provenance("set", "MIT", notes="kept")).save(tmp_path / "a")
    assert main(["features", "import", str(tmp_path / "a"), str(tmp_path / "b"), "--licence", "CC0"]) == 0
    assert FeatureBank.load(tmp_path / "b").provenance == Provenance("set", "CC0", notes="kept")


def test_info_prints_what_there_is(tmp_path, capsys):
    bank = random_bank(splits={"test": [1, 2]}, provenance=Provenance("set", versions={"torch": "2"}, notes="a\nb"))
    bank.save(tmp_path / "bank")
    assert main(["features", "info", str(tmp_path / "bank")]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        f"rows            {bank.n_rows}",
        "classes         4",
        f"shots available {bank.class_sizes.min() - 1}",
        "splits          test 2 classes",
        f"content hash    {bank.content_hash}",
        "dataset         set",
        "versions        torch 2",
        "notes           a",
        "                b",
    ):
        assert line in lines
    assert main(["features", "info", str(tmp_path / "bank"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    norms = np.linalg.norm(bank.features, axis=1)
    assert facts["norms"] == pytest.approx(
        {"from": norms.min(), "to": norms.max(), "mean": norms.mean(), "of rows": bank.n_rows}, abs=1e-4
    )
    assert facts["rows per class"]["median"] == np.median(bank.class_sizes)


def test_verify_tells_a_sound_bank_from_a_damaged_one(tmp_path, capsys):
    bank = random_bank().save(tmp_path / "bank")
    assert main(["features", "verify", str(tmp_path / "bank")]) == 0
    assert capsys.readouterr().out == f"{bank.content_hash}  {tmp_path / 'bank'}: as written\n"
    file = tmp_path / "bank" / "labels.npy"
    data = bytearray(file.read_bytes())
    data[-4] ^= 1
    file.write_bytes(data)
    assert main(["features", "verify", str(tmp_path / "bank")]) == 1
    streams = capsys.readouterr()
    assert "changed or damaged" in streams.err
    assert streams.out == ""


def test_export_writes_parquet(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    bank = random_bank().save(tmp_path / "bank")
    assert main(["features", "export", str(tmp_path / "bank"), str(tmp_path / "x.parquet")]) == 0
    assert read_bank(tmp_path / "x.parquet").content_hash == bank.content_hash
    assert capsys.readouterr().out == f"{tmp_path / 'x.parquet'}\n"
