"""Make the part of CLINC150 that ships with the package.

    python tools/make_clinc150.py FOLDER

FOLDER holds `sentences.txt` (one per line), `features.npy` (22,500 x 384: all-MiniLM-L6-v2, attention-masked mean of
the last hidden states, at most 128 tokens, not normalised), `labels.npy`, `classes.json` and `original_split.npy` (0
test, 1 train, 2 validation), rows in the order of CLINC150's data_full.json without its out-of-scope part. The test and
validation sentences are kept, 50 of each of the 150 intents. A row is stored as 8-bit integers and one scale, x ≈ scale
· code with scale = max|x| / 127; the smallest cosine between a row and what is stored for it is printed, with the size
of the file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from handful import read_bank

TARGET = Path(__file__).resolve().parents[1] / "src" / "handful" / "datasets" / "clinc150.npz"
SENTENCES = TARGET.with_suffix(".txt")
TRAIN = 1


def main() -> None:
    """Read, quantise, write."""
    parser = argparse.ArgumentParser(description="Make the part of CLINC150 that ships with the package.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    bank = read_bank(folder)
    kept = np.flatnonzero(np.load(folder / "original_split.npy") != TRAIN)
    rows = bank.take(kept).astype(np.float32)
    scales = np.abs(rows).max(axis=1) / np.float32(127)
    codes = np.round(rows / scales[:, None]).astype(np.int8)
    labels = bank.labels[kept].astype(np.uint8)
    sentences = (folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    SENTENCES.write_text("".join(f"{sentences[row]}\n" for row in kept), encoding="utf-8")
    np.savez_compressed(TARGET, codes=codes, scales=scales, labels=labels, class_names=np.array(bank.class_names))
    again = codes * scales[:, None]
    cosines = (rows * again).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(again, axis=1)
    print(f"{len(kept)} rows, {TARGET.stat().st_size:,} bytes, smallest cosine {cosines.min():.6f}")


if __name__ == "__main__":
    main()
