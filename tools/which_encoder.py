"""Write the output of docs/do/which_encoder.md, about sentences that come with the package.

python tools/which_encoder.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

import handful
from handful.datasets import load_clinc150, load_clinc150_sentences
from render_performance import with_parts

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "do" / "which_encoder.md"
INTENTS = 40
SENTENCES = 8


def sentences() -> str:
    """Compare MiniLM with counts of words, on the first sentences of some intents."""
    labels = load_clinc150().labels
    rows = np.concatenate([np.flatnonzero(labels == k)[:SENTENCES] for k in range(INTENTS)])
    names = load_clinc150().class_names
    every = load_clinc150_sentences()
    texts = [every[row] for row in rows.tolist()]
    frame = pd.DataFrame({"intent": [names[labels[row]] for row in rows.tolist()], "text": texts})
    frame["tfidf"] = list(TfidfVectorizer().fit_transform(texts).toarray())
    return str(handful.compare_encoders(frame, encoder="minilm", features="tfidf"))


def fenced(output: str) -> str:
    """Return an output as a block of the page."""
    return f"\n```\n{output}\n```\n"


def main() -> None:
    """Compare, and write."""
    parts = {"sentences": fenced(sentences())}
    PAGE.write_text(with_parts(PAGE.read_text(encoding="utf-8"), parts), encoding="utf-8")


if __name__ == "__main__":
    main()
