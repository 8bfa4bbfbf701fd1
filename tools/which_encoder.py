"""Write the outputs of docs/do/which_encoder.md: python tools/which_encoder.py [--photographs FILE].

Sentences are in the package. FILE is a .zip of photographs of Caltech 101, with one
folder per class, of which the first `PHOTOGRAPHS` of each class are compared; without it, that output stays.
"""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

import handful
from handful.datasets import load_clinc150, load_clinc150_sentences
from render_performance import with_parts

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "do" / "which_encoder.md"
NETWORKS = ["efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2"]
PHOTOGRAPHS = 6
INTENTS = 40
SENTENCES = 8


def photographs(file: Path) -> str:
    """Compare three networks on the first photographs of each class."""
    with tempfile.TemporaryDirectory() as work, zipfile.ZipFile(file) as archive:
        times = Counter[str]()
        for name in sorted(archive.namelist()):
            label, _, picture = name.rpartition("/")
            times[label] += bool(picture)
            if picture and times[label] <= PHOTOGRAPHS:
                archive.extract(name, work)
        return str(handful.compare_encoders(work, backbone=NETWORKS))


def sentences() -> str:
    """Compare MiniLM with counts of words, on the first sentences of some intents."""
    labels = load_clinc150().labels
    rows = np.concatenate([np.flatnonzero(labels == k)[:SENTENCES] for k in range(INTENTS)])
    names = load_clinc150().class_names
    every = load_clinc150_sentences()
    texts = [every[row] for row in rows.tolist()]
    frame = pd.DataFrame({"intent": [names[labels[row]] for row in rows.tolist()], "text": texts})
    frame["tfidf"] = list(TfidfVectorizer().fit_transform(texts).toarray())
    return str(handful.compare_encoders(frame, backbone="minilm", features="tfidf"))


def fenced(output: str) -> str:
    """Return an output as a block of the page."""
    return f"\n```\n{output}\n```\n"


def main() -> None:
    """Compare, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", type=Path)
    asked = parser.parse_args()
    parts = {"sentences": fenced(sentences())}
    if asked.photographs is not None:
        parts["photographs"] = fenced(photographs(asked.photographs))
    PAGE.write_text(with_parts(PAGE.read_text(encoding="utf-8"), parts), encoding="utf-8")


if __name__ == "__main__":
    main()
