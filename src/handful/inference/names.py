"""Names: a class may also be known by a vector of its name or description, for example from a text encoder.

Names and items need not lie in the same place: vectors of names and of photographs are far apart, and a name says less
than it varies. Over the classes that have both, with m their mean examples and t their names,

    name among examples = centre of m + a (t - centre of t),    a = Σ⟨m - centre, t - centre⟩ / Σ|t - centre|².

There it is one more example, of weight w. Names of a catalogue say something if Σ⟨m - centre, t - centre⟩ is larger
than for names dealt to the classes at random, by two standard deviations; else only classes without examples have
theirs. w is the worth under which left-out examples are most likely. If the name of a class is not used and its only
example is left out, nothing is left of the class, and the chance of the example is that of any class, 1/K.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from handful.inference.left_out import TEMPERATURES, Unseen, joined, likelihood
from handful.numerics.logistic import Linear
from handful.shapes import Bool, Float, Int

# a where no class has both, and the number of classes that it weighs against those that have. On clinc150 a is 0.5.
USUAL_SLOPE, SLOPE_CLASSES = 0.5, 2.0
# Standard deviations beyond chance, and the classes with both below which names are trusted: there is no telling.
SAYING, FEWEST_TESTED = 2.0, 4
# Worth of a name in examples: what is tried, in this order, until the next is less likely; what is used if examples
# cannot tell; and the least for a class without examples.
WORTHS, USUAL_WORTH, LEAST_WORTH = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0), 1.0, 1.0

# Trains on points, codes, number of classes and weights.
Train = Callable[[Tensor, Tensor, int, "Tensor | None"], Linear]


@dataclass(frozen=True, eq=False)
class Names:
    """Vectors of the names of some classes, at most one per class.

    Attributes
    ----------
    points : Float[Tensor, "name dim"]
        The vectors, about the origin of the examples.
    codes : Int[Tensor, "name"]
        Their classes.

    Examples
    --------
    Names are twice as far apart as the classes, and elsewhere:

    >>> means = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5], [0.0, 0.0]])
    >>> names = Names(2 * means + 5, torch.arange(6))
    >>> shots = torch.tensor([30.0, 30.0, 30.0, 30.0, 30.0, 30.0])
    >>> names.say_something(means, shots)
    True
    >>> (names.among(means, shots) - means).abs().max() < 0.1
    tensor(True)
    """

    points: Float[Tensor, "name dim"]
    codes: Int[Tensor, "name"]

    def among(self, means: Float[Tensor, "class dim"], shots: Float[Tensor, "class"]) -> Float[Tensor, "name dim"]:
        """Return the names on the side of the examples; `shots` of zero mark classes without any."""
        m, t, centre, of_names = self._both(means, shots)
        usual = SLOPE_CLASSES * float((self.points - of_names).square().sum(1).mean())
        found, size = float((m * t).sum(dtype=torch.float64)), float(t.square().sum(dtype=torch.float64))
        slope = max(found + USUAL_SLOPE * usual, 0.0) / (size + usual) if size + usual > 0 else 0.0
        return centre + slope * (self.points - of_names)

    def say_something(self, means: Float[Tensor, "class dim"], shots: Float[Tensor, "class"]) -> bool:
        """Whether names go with the examples of their classes; True if there are too few classes to tell."""
        m, t, _, _ = self._both(means, shots)
        if len(m) < FEWEST_TESTED:
            return True
        products = (m @ t.T).double()
        deviation = float((products.square().sum() / (len(m) - 1)).sqrt())
        return float(products.diagonal().sum()) > SAYING * deviation

    def blended(
        self, means: Float[Tensor, "class dim"], shots: Float[Tensor, "class"]
    ) -> tuple[Float[Tensor, "class dim"], Float[Tensor, "class"]]:
        """Return means and numbers of examples with every name as one more example, or if it is the only one."""
        saying = self.say_something(means, shots)
        weights = torch.zeros_like(shots)
        weights[self.codes] = USUAL_WORTH if saying else LEAST_WORTH * (shots[self.codes] == 0).to(shots)
        sums = means * shots.unsqueeze(1)
        sums.index_add_(0, self.codes, self.among(means, shots) * weights[self.codes].unsqueeze(1))
        return sums / (shots + weights).unsqueeze(1), shots + weights

    def _both(
        self, means: Float[Tensor, "class dim"], shots: Float[Tensor, "class"]
    ) -> tuple[Tensor, Tensor, Float[Tensor, "dim"], Float[Tensor, "dim"]]:
        """Means and names of classes that have both, each about their centre, and the two centres."""
        both = shots[self.codes] > 0
        m, t = means[self.codes[both]], self.points[both]
        if len(m) == 0:  # examples of some classes, names of others
            centre = means[shots > 0].mean(0) if bool((shots > 0).any()) else means.new_zeros(means.shape[1])
            return m, t, centre, self.points.mean(0)
        centre, of_names = m.mean(0), t.mean(0)
        return m - centre, t - of_names, centre, of_names


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a head is trained on: examples, and names as further examples of their classes.

    Attributes
    ----------
    points, codes : Float[Tensor, "point dim"], Int[Tensor, "point"]
        The examples and their classes.
    n_classes : int
        K.
    names : Names or None
        Names of some of the classes.
    worth : float
        How many examples a name is worth.
    """

    points: Float[Tensor, "point dim"]
    codes: Int[Tensor, "point"]
    n_classes: int
    names: Names | None = None
    worth: float = 0.0

    @property
    def shots(self) -> Float[Tensor, "class"]:
        """Number of examples of each class."""
        return torch.bincount(self.codes, minlength=self.n_classes).to(self.points)

    @property
    def named(self) -> Float[Tensor, "class"]:
        """Weight of the name of each class; at least one for a class without examples."""
        weights = torch.zeros_like(self.points[:1, 0]).expand(self.n_classes).clone()
        if self.names is not None:
            weights[self.names.codes] = self.worth
            alone = self.names.codes[self.shots[self.names.codes] == 0]
            weights[alone] = max(self.worth, LEAST_WORTH)
        return weights

    def mass(self, of_examples: Float[Tensor, "class"]) -> Float[Tensor, "class"]:
        """Effective number of examples of each class, its name included."""
        return of_examples + self.named

    def means(self, right: Float[Tensor, "point"], mass: Float[Tensor, "class"]) -> Float[Tensor, "class dim"]:
        """`(Σ_n r_n x_n + w t)/mass` of each class, t its name among the examples."""
        sums = self.points.new_zeros(self.n_classes, self.points.shape[1])
        sums.index_add_(0, self.codes, self.points * right.unsqueeze(1))
        if self.names is not None:
            named = self._among(torch.ones_like(self.codes, dtype=torch.bool))
            sums.index_add_(0, self.names.codes, named * self.named[self.names.codes].unsqueeze(1))
        return sums / mass.unsqueeze(1)

    def fit(self, train: Train, kept: Bool[Tensor, "point"], right: Float[Tensor, "point"] | None) -> Linear:
        """Train on some of the examples and on the names."""
        points, codes = self.points[kept], self.codes[kept]
        if self.names is None:
            return train(points, codes, self.n_classes, right)
        weights = self.named[self.names.codes]
        used = weights > 0
        return train(
            torch.cat([points, self._among(kept)[used]]),
            torch.cat([codes, self.names.codes[used].to(codes)]),
            self.n_classes,
            torch.cat([torch.ones_like(points[:, 0]) if right is None else right, weights[used]]),
        )

    def unseen(self, train: Train, out: Bool[Tensor, "point"]) -> Unseen:
        """Train without some of the examples."""
        rows = out.nonzero()[:, 0]
        mass = torch.bincount(self.codes[~out], minlength=self.n_classes).to(self.points) + self.named
        linear = self.fit(train, ~out, None)
        # Nothing is left of a class: its logits say nothing, see `evidence`.
        log_shots = mass.log() if bool((mass > 0).all()) else mass.where(mass > 0, 1).log()
        return Unseen(rows, self.points[rows], self.codes[rows], linear, log_shots)

    def evidence(self, train: Train, left_out: list[Bool[Tensor, "point"]]) -> float:
        """Mean log-likelihood of left-out examples, at the best temperature; classes weigh alike."""
        compared = joined([self.unseen(train, out).compared(1.0, TEMPERATURES) for out in left_out])
        own = torch.cat([self.codes[out] for out in left_out])
        left = [torch.bincount(self.codes[~out], minlength=self.n_classes) + self.named for out in left_out]
        gone = torch.cat([mass[self.codes[out]] == 0 for mass, out in zip(left, left_out, strict=True)])
        behind = compared.behind.masked_fill(gone, math.log(self.n_classes))
        likelihoods, _ = likelihood(compared._replace(behind=behind), 1 / self.shots[own], self.n_classes)
        return float(likelihoods.max())

    def of_best_worth(self, train: Train, left_out: list[Bool[Tensor, "point"]]) -> TrainingRows:
        """Return the same rows with the worth of names under which left-out examples are most likely."""
        best, highest = self, -math.inf
        for worth in WORTHS:
            tried = replace(self, worth=worth)
            found = tried.evidence(train, left_out)
            if found <= highest:
                break
            best, highest = tried, found
        return best

    def _among(self, kept: Bool[Tensor, "point"]) -> Float[Tensor, "name dim"]:
        """Return the names among the examples that are kept."""
        assert self.names is not None
        codes = self.codes[kept]
        shots = torch.bincount(codes, minlength=self.n_classes).to(self.points)
        sums = self.points.new_zeros(self.n_classes, self.points.shape[1]).index_add_(0, codes, self.points[kept])
        return self.names.among(sums / shots.clamp(min=1).unsqueeze(1), shots)
