"""Other scores for items of no class, each computed from a catalogue and one batch; larger means more likely unknown.

- `distance`: squared distance to the nearest class mean.
- `relative`: the same, divided by the squared distance from the mean of all examples.
- `calibrated`: log-odds of a logistic regression on distance, relative distance and the gaps to the next two classes.
  Its training data are the examples: known, compared with their class without them, and unknown, with their class left
  out.
- `distance_averaged`, `relative_averaged`, `calibrated_averaged`: the same, averaged over an item and its three nearest
  neighbours in the batch.
- `background`: chance of one more column in EM for the proportions, `-0.7 c² q`, where classes have `-½ c² d` and q is
  the 95 % quantile of the squared distance of an example from the mean of the others of its class.
- `doubt`: one minus the largest probability in the closed answer.
- `oslo`, `ostim`, `eol`: the published methods with their own options and transforms; where a transform needs the mean
  of base classes, it gets the mean of all examples.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from sklearn.linear_model import LogisticRegression

from handful import fewshot
from harm_conditions import sharpness
from side_by_side import Floats, Ints, proportions_by_em

Numbers = npt.NDArray[np.float64]

QUICK = (
    "distance",
    "relative",
    "calibrated",
    "distance_averaged",
    "relative_averaged",
    "calibrated_averaged",
    "background",
    "doubt",
)
PUBLISHED = ("oslo", "ostim", "eol")
TRIAL = "calibrated_averaged"
NEIGHBOURS, MOST_LOG_ODDS = 3, 8.0
QUANTILE, LOWER = 0.95, 0.7


class OtherScores:
    """Scores against one catalogue, whose labels count from zero."""

    def __init__(self, examples: Floats, codes: Ints) -> None:
        self.examples, self.codes, self.n_classes = examples, codes, int(codes.max()) + 1
        shots = np.bincount(codes)
        sums = np.zeros((self.n_classes, examples.shape[1]))
        np.add.at(sums, codes, examples)
        self.means, self.centre = sums / shots[:, None], examples.mean(0)
        rows = np.flatnonzero(shots[codes] > 1)
        x, own, n = examples[rows], codes[rows], shots[codes[rows]]
        without = (sums[own] - x) / (n - 1)[:, None]
        from_own = ((x - without) ** 2).sum(1)
        known, unknown = self._squares(x), self._squares(x)
        known[np.arange(len(rows)), own] = from_own * (1 - 1 / n**2)
        unknown[np.arange(len(rows)), own] = np.inf
        about = self._from_centre(x)
        table = np.concatenate([_described(known, about), _described(unknown, about)])
        self.middle, self.scale = table.mean(0), table.std(0) + 1e-9
        truth = np.repeat([0, 1], len(rows))
        regression = LogisticRegression(C=10, tol=1e-7, max_iter=500)
        self.regression = regression.fit((table - self.middle) / self.scale, truth)
        self.factor = sharpness().factor
        self.level = float(-LOWER * self.factor**2 * np.quantile(from_own, QUANTILE))

    def quick(self, points: Floats) -> dict[str, Numbers]:
        """Return all scores of one batch that take little time, except `doubt`."""
        squares, about = self._squares(points), self._from_centre(points)
        table = _described(squares, about)
        log_odds = self.regression.decision_function((table - self.middle) / self.scale)
        apart = _apart(points)
        np.fill_diagonal(apart, np.inf)
        near = np.argsort(apart, 1)[:, :NEIGHBOURS]

        def averaged(values: Numbers) -> Numbers:
            found: Numbers = (values + values[near].sum(1)) / (near.shape[1] + 1)
            return found

        columns = np.concatenate([np.full((len(points), 1), self.level), -0.5 * self.factor**2 * squares], 1)
        return {
            "distance": table[:, 0],
            "relative": table[:, 1],
            "calibrated": log_odds,
            "distance_averaged": averaged(table[:, 0]),
            "relative_averaged": averaged(table[:, 1]),
            "calibrated_averaged": averaged(log_odds.clip(-MOST_LOG_ODDS, MOST_LOG_ODDS)),
            "background": proportions_by_em(torch.from_numpy(columns)[None])[0, :, 0].numpy(),
        }

    def published(self, points: Floats) -> dict[str, Numbers]:
        """Return the scores of OSLO, OSTIM and EOL of one batch."""
        support, codes = torch.from_numpy(self.examples)[None], torch.from_numpy(self.codes)[None]
        task = fewshot.TaskBatch(support, codes, torch.from_numpy(points)[None], self.n_classes)
        found = {}
        for name in PUBLISHED:
            transform = fewshot.METHODS[name].transform
            about = {"base_mean": self.centre} if transform == "cl2n" else {}
            unknown = fewshot.solve(name, fewshot.transform(transform, task, **about)).unknown
            assert unknown is not None
            found[name] = unknown[0].double().numpy()
        return found

    def _squares(self, points: Floats) -> Numbers:
        found: Numbers = (points**2).sum(1)[:, None] + (self.means**2).sum(1) - 2 * points @ self.means.T
        return found

    def _from_centre(self, points: Floats) -> Numbers:
        found: Numbers = ((points - self.centre) ** 2).sum(1)
        return found


def _described(squares: Numbers, about: Numbers) -> Numbers:
    """Distance, relative distance, and the gaps to the second and third class."""
    nearest = np.sort(squares, 1)[:, :3]
    first = nearest[:, 0]
    return np.stack([first, first / about, nearest[:, 1] - first, nearest[:, 2] - first], 1)


def _apart(points: Floats) -> Numbers:
    lengths = (points.astype(np.float64) ** 2).sum(1)
    found: Numbers = lengths[:, None] + lengths - 2 * points.astype(np.float64) @ points.T
    return found
