"""Draw the picture of an answer: python tools/draw_pictures.py. Writes docs/images/plot.png.

A batch of 75 sentences with five intents (CLINC150), of which one, `exchange_rate`, is not in the catalogue of the
other 149 with five examples each.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np

import handful
from handful.estimators import Answer

PLACE = Path(__file__).resolve().parents[1] / "docs" / "images" / "plot.png"
PRESENT = ("lost_luggage", "recipe", "exchange_rate", "ingredients_list", "flight_status")
MISSING = "exchange_rate"


def answer() -> Answer:
    """Label the batch."""
    bank = handful.datasets.load_clinc150()
    X, y = bank.features, np.array(bank.class_names)[bank.labels]
    rows = [np.flatnonzero(y == name) for name in bank.class_names]
    catalogue = np.concatenate([of_class[:5] for of_class in rows if y[of_class[0]] != MISSING])
    batch = np.concatenate([of_class[5:20] for of_class in rows if y[of_class[0]] in PRESENT])
    return handful.BatchClassifier().fit(X[catalogue], y[catalogue]).infer(X[batch])


def main() -> None:
    """Write the picture."""
    answer().plot().figure.savefig(PLACE, dpi=110)
    print(PLACE)


if __name__ == "__main__":
    main()
