"""Real photographs and sentences to banks, through the command line: against the shared banks, over Ray."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from handful.banks import FeatureBank
from handful.extraction.encoders import load_encoder
from handful.extraction.extract import extract
from handful.extraction.items import list_items
from handful.workers import on_ray
from tests.items_at_hand import cosines, shared_data, slowly

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
HANDFUL = "import sys; from handful.cli.main import main; sys.exit(main())"


def started(items: Path, encoder: str, out: Path, *more: str) -> subprocess.Popen:
    arguments = ["--items", str(items), "--encoder", encoder, "--out", str(out), *more]
    return subprocess.Popen(
        [sys.executable, "-c", HANDFUL, "extract", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen, out: Path) -> FeatureBank:
    output, _ = process.communicate()
    assert process.returncode == 0
    bank = FeatureBank.load(out)
    assert output.endswith(f"{out}  bank, content hash {bank.verify()}\n")
    return bank


def test_photographs(tmp_path):
    archive = shared_data("images/caltech24.zip")
    whole = finished(
        started(archive, "efficientnet-lite0", tmp_path / "whole", "--shard-size", "64"), tmp_path / "whole"
    )

    folder = shared_data("caltech101-efflite0")
    classes = json.loads((folder / "classes.json").read_text())
    features, labels = np.load(folder / "features.npy"), np.load(folder / "labels.npy")
    assert whole.class_sizes.tolist() == [40] * 24
    for k, name in enumerate(whole.class_names):
        expected = features[labels == classes.index(name)][:40]
        assert cosines(whole.features[whole.labels == k], expected).min() > 0.99


def test_sentences(tmp_path):
    table, out = shared_data("text/clinc.jsonl.gz"), tmp_path / "bank"
    bank = finished(started(table, "minilm", out), out)
    folder = shared_data("clinc150-minilm")
    assert bank.labels.tolist() == np.load(folder / "labels.npy").tolist()
    assert list(bank.class_names) == json.loads((folder / "classes.json").read_text())
    assert cosines(bank.features, np.load(folder / "features.npy")).min() > 0.999


def test_photographs_over_two_nodes_one_of_which_dies(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    items, encoder = list_items(shared_data("images/caltech24.zip")), load_encoder("efficientnet-lite0")
    here = extract(items, encoder, tmp_path / "here", shard_size=32)
    book = tmp_path / "book"
    book.mkdir()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        doomed = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        killed = []

        def kill_in_the_middle(done, total):
            if not killed and done > total // 3 and (book / doomed.node_id).exists():
                cluster.remove_node(doomed, allow_graceful=False)
                killed.append(done)

        there = extract(
            items,
            slowly(encoder, book, seconds=0),
            tmp_path / "there",
            shard_size=32,
            workers=on_ray(),
            on_progress=kill_in_the_middle,
        )
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert killed
    assert killed[0] < len(items)
    assert there.content_hash == here.content_hash
