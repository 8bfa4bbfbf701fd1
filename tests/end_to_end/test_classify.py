"""The commands of docs/do/classify.md, run on real photographs and sentences of the names the page gives them."""

import gzip
import json
import shlex
import zipfile
from pathlib import Path

import numpy as np
import pytest

from handful.cli.main import main
from handful.datasets import load_clinc150
from tests.items_at_hand import shared_data

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
import pyarrow.parquet  # noqa: E402

pytestmark = pytest.mark.slow
PAGE = Path(__file__).resolve().parents[2] / "docs" / "do" / "classify.md"
COMMANDS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("handful ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Everything the page's commands mention; the truth about every batch beside it."""
    folder = tmp_path_factory.mktemp("classify")
    truth: dict[str, dict[str, str]] = {"new_photos": {}, "today.jsonl": {}, "today.parquet": {}}
    with zipfile.ZipFile(shared_data("images/caltech24.zip")) as archive:
        files = [name for name in archive.namelist() if name.endswith(".jpg")]
        for kind in sorted({name.split("/")[0] for name in files}):
            mine = [name for name in files if name.startswith(f"{kind}/")]
            for name in mine[:4]:
                (folder / "photos" / kind).mkdir(parents=True, exist_ok=True)
                (folder / "photos" / name).write_bytes(archive.read(name))
            if kind in ("beaver", "mandolin"):
                (folder / "new_photos").mkdir(exist_ok=True)
                for i, name in enumerate(mine[4:16]):
                    truth["new_photos"][f"{len(kind)}{i}.jpg"] = kind
                    (folder / "new_photos" / f"{len(kind)}{i}.jpg").write_bytes(archive.read(name))
    with gzip.open(shared_data("text/clinc.jsonl.gz"), "rt") as stream:
        sentences = [json.loads(line) for line in stream]
    examples, batch = [], []
    for intent in sorted({row["label"] for row in sentences})[:40]:
        mine = [row for row in sentences if row["label"] == intent]
        examples += [{"text": row["text"], "label": intent} for row in mine[:4]]
        batch += mine[10:25] if intent in ("apr", "calories", "balance") else []
    truth["today.jsonl"] = {f"row {i + 1}": row["label"] for i, row in enumerate(batch)}
    for name, rows in (("intents.jsonl", examples), ("today.jsonl", [{"text": row["text"]} for row in batch])):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    bank = load_clinc150()
    names = np.array(bank.class_names)[bank.labels]
    first = np.concatenate([np.flatnonzero(bank.labels == k)[:5] for k in range(150)])
    later = np.concatenate([np.flatnonzero(bank.labels == k)[20:40] for k in (5, 55)])
    pyarrow.parquet.write_table(
        pa.table({"vector": bank.take(first).astype("f4").tolist(), "intent": names[first]}),
        folder / "embeddings.parquet",
    )
    pyarrow.parquet.write_table(
        pa.table({"vector": bank.take(later).astype("f4").tolist(), "id": later}), folder / "today.parquet"
    )
    truth["today.parquet"] = {str(i): names[i] for i in later}
    return folder, truth


def test_the_page_has_commands():
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page(place, command, monkeypatch, capsys):
    folder, truth = place
    monkeypatch.chdir(folder)
    arguments = shlex.split(command)[1:]
    assert main(arguments) == 0, capsys.readouterr().err
    if arguments[0] != "classify":
        return
    written = [Path(value) for name, value in zip(arguments[3::2], arguments[4::2], strict=True) if name == "--out"]
    out = written[0]
    table = pandas.read_csv(out) if out.suffix == ".csv" else pandas.read_parquet(out)
    expected = truth[arguments[2].rstrip("/")]
    assert set(table["item"]) == set(expected)
    assert (table["label"] == table["item"].map(expected)).mean() > 0.85
    present = [line.split()[2] for line in capsys.readouterr().out.splitlines()]
    assert set(present) >= set(expected.values())
    for page in written[1:]:
        assert page.read_text(encoding="utf-8").count("<li") >= len(expected)
