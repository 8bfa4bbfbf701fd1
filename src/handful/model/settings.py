"""Settings: every number of the model that can change an answer, with its meaning, its unit and where it comes from.

There is one default, `DEFAULT`, and nobody who uses handful chooses another: studies do, with `dataclasses.replace`, to
find out what depends on a number (`studies/sensitivity.py`). Steps take the settings as an argument.

**Units.** A `chance` lies between zero and one. `nats` are natural logarithms of odds or of likelihood ratios. Numbers
of `items`, `examples`, `classes`, `groups`, `steps` are whole; a `ratio` compares two quantities of one kind.

**Origins.** *tuned* on the tuning banks of the studies, and left alone since; *measured* there, with the figure; a
*convention* that another value would serve as well; a limit of *work*: more would take longer and change little.

Numbers that no answer depends on, block sizes and guards against rounding, are in `handful.model.limits`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


def _number(
    default: Any, unit: str, origin: str, meaning: str, *, acts_on: str = "any batch", fitted: bool = False
) -> Any:
    """Return a number; if the study of sensitivity finds no change, `acts_on` says what else it acts on by the code."""
    about = {"unit": unit, "origin": origin, "meaning": meaning, "acts_on": acts_on, "fitted": fitted}
    return field(default=default, metadata=about)


def _fitted(default: Any, unit: str, origin: str, meaning: str, *, acts_on: str = "any batch") -> Any:
    """Return a number that is used when a catalogue is fitted."""
    return _number(default, unit, origin, meaning, acts_on=acts_on, fitted=True)


@dataclass(frozen=True, eq=False)
class Settings:
    """Numbers of the model; `dataclasses.fields(Settings)` has the unit, the origin and the meaning of each.

    Examples
    --------
    >>> from dataclasses import fields, replace
    >>> replace(DEFAULT, strays=0.04).strays
    0.04
    >>> fields(Settings)[0].metadata["meaning"]
    'C: inverse of the penalty on W, for rows of unit length'
    """

    def __reduce__(self) -> Any:
        """Return what a pickle says: the default is one in every process, so that what is made of it is made once."""
        return "DEFAULT" if self is DEFAULT else super().__reduce__()

    # -- the head, trained on examples: `head` -----------------------------------------------------------------------

    inverse_ridge: float = _fitted(
        30.0, "inverse penalty", "tuned", "C: inverse of the penalty on W, for rows of unit length"
    )
    head_tolerance: float = _fitted(
        1e-3,
        "ratio",
        "measured: logits differ from converged ones by less than 1%",
        "training stops when the gradient is this share of that at zero",
    )
    fewest_for_spread: float = _fitted(
        10.0,
        "examples",
        "convention",
        "beyond one of each class, with fewer of which the spread is not known",
        acts_on="catalogues of fewer than 20 examples beyond one of each class",
    )
    refit_share: float = _fitted(
        0.25,
        "ratio",
        "work",
        "part of examples or classes that are new, above which all of a head is fitted again",
        acts_on="catalogues that grow",
    )
    full_work: int = _fitted(
        2**33,
        "products",
        "work: 20 s on one core",
        "N·K·d beyond which an example is compared with near classes only",
        acts_on="catalogues of about 1,000 classes or more",
    )
    near_classes: int = _fitted(64, "classes", "work", "near classes of an example, its own included")
    near_slope: float = _fitted(
        20.0, "nats", "tuned", "β of the class means from which training against near classes starts, at unit length"
    )
    near_cost: int = _fitted(
        8,
        "ratio",
        "work",
        "cost of a comparison with one of the near classes, over that with one of all: rows are gathered",
        acts_on="catalogues of about 1,000 classes or more",
    )
    folded_work: int = _fitted(
        2**30,
        "products",
        "work",
        "N·K·d beyond which one fold is left out and not every one",
        acts_on="catalogues of about 1,000 classes or more",
    )
    trained_numbers: int = _fitted(
        2**23,
        "numbers",
        "work",
        "of all examples beyond which a head is made of class means",
        acts_on="catalogues of millions of numbers",
    )

    # -- what held-out examples tell about the head: `left_out` ------------------------------------------------------

    folds: int = _fitted(5, "folds", "convention", "in which examples are held out")
    fewest_left_out: int = _fitted(
        20,
        "examples",
        "convention",
        "with fewer to leave out, T and ε are not fitted, and nothing is unknown",
        acts_on="catalogues of fewer than 40 examples that can be held out",
    )
    chance_nats: float = _fitted(
        1.5,
        "nats",
        "tuned",
        "deviation of the scores that class means have of other classes, if nothing can be held out",
        acts_on="catalogues of fewer than 40 examples that can be held out",
    )
    usual_temperature: float = _fitted(
        0.37,
        "ratio",
        "measured: 0.12 to 0.47 with one example per class of 10 to 200 classes of four banks",
        "T of catalogues of very few classes, if nothing can be held out",
    )
    usual_classes: float = _fitted(
        10.0,
        "classes",
        "convention",
        "as which the usual T counts",
        acts_on="catalogues of fewer than 40 examples that can be held out",
    )
    temperatures: tuple[float, ...] = _fitted(
        tuple(np.logspace(-1, 1, 55).tolist()), "ratio", "work", "values of T that are tried"
    )
    wrong_share_start: float = _fitted(0.05, "chance", "work", "ε from which steps start")
    wrong_share_steps: int = _fitted(15, "steps", "work", "steps of expectation maximisation for ε")

    # -- the head of very large catalogues, made of class means: `linear` --------------------------------------------

    nats_of_means: float = _fitted(
        14.0,
        "nats",
        "measured: 11 to 16 at one shot on three banks",
        "β times the mean squared distance of the class means from their centre, at T = 1",
    )
    share_of_excess: float = _fitted(
        0.7,
        "ratio",
        "measured: 0.5 to 0.75 on three banks",
        "share of V/s, by which a mean of s examples lies too far from its items, that is taken off",
    )
    shrinkages: tuple[float, ...] = _fitted(
        (1.0, 0.9, 0.8, 0.6),
        "ratio",
        "work",
        "values of δ that are tried; at one the space stays as it is",
        acts_on="class means of items that vary along few directions",
    )
    compared_scores: int = _fitted(
        2**24,
        "scores",
        "work",
        "that held-out examples have for this at most",
        acts_on="catalogues of millions of numbers",
    )

    # -- the offset of a batch, and shares that follow the numbers of examples: `offset` ---------------------------

    offset_chance: float = _number(
        2.0, "ratio", "tuned", "an offset counts as far as it exceeds this many times what chance gives"
    )
    offset_steps: int = _number(6, "steps", "work", "steps in which offset, η and shares follow from one another")
    eta_sd: float = _number(1.0, "exponent", "tuned", "deviation of η, the exponent of the numbers of examples")
    eta_least: float = _number(-0.5, "exponent", "convention", "η is at least this")
    eta_most: float = _number(1.5, "exponent", "convention", "η is at most this")
    newton_steps: int = _number(4, "steps", "work", "Newton steps to the mode of η and of γ")

    # -- weights of the classes that are known in advance: `prior` --------------------------------------------------

    prior_concentration: float = _number(300.0, "items", "tuned", "c: items that weights of a user count as")
    gamma_sd: float = _number(0.5, "exponent", "tuned", "deviation of γ, the exponent of the weights, from one")
    gamma_steps: int = _number(8, "steps", "work", "steps of expectation maximisation for γ")
    prior_steps: int = _number(8, "steps", "work", "steps in which counts and tilts of a prior follow from one another")

    # -- which classes are present: `presence` ----------------------------------------------------------------------

    strays: float = _number(0.02, "chance", "tuned", "φ: share of items of classes that are otherwise absent")
    shared_error: float = _number(
        0.4, "odds", "tuned", "correlation of the errors of two items of a class with one example, as odds"
    )
    even: int = _number(10, "Dirichlet parameter", "tuned", "α of even batches; that of uneven ones is one")
    uneven_log_odds: float = _number(-1.0, "nats", "tuned", "log-odds of an uneven batch before anything is seen")
    taken_off: float = _number(0.5, "items", "convention", "taken off the count of each class where the search begins")
    share_steps: int = _number(20, "steps", "work", "of expectation maximisation to the shares where the search begins")
    chains: int = _number(16, "chains", "work", "chains of the search for sets")
    sweeps: int = _number(6, "sweeps", "work", "sweeps of a chain")
    warm_up: int = _number(2, "sweeps", "work", "first sweeps, which do not count")
    seed: int = _number(0, "seed", "convention", "of the noise of the chains")
    candidate_count: float = _number(
        0.3, "items", "work", "expected count below which a class is absent but for strays"
    )
    candidate_items: float = _number(75.0, "items", "work", "of a batch beyond which that count grows with it")
    sized_count: float = _number(
        0.1,
        "items",
        "work",
        "expected count above which a class of a large batch has a size of its own",
        acts_on="large batches of uneven shares",
    )

    # -- class means that move: `means` -----------------------------------------------------------------------------

    pull: float = _number(2.0, "examples", "tuned", "what an item of a class counts in its mean")
    believed: float = _number(0.5, "ratio", "tuned", "share of the gain of a moved mean that is added to a score")

    # -- which items belong together: `links` -----------------------------------------------------------------------

    links: int = _number(10, "items", "work", "links that an item keeps")
    most_anchors: int = _number(512, "items", "work", "items of a batch that all others are linked with")
    pair_least: float = _number(
        1e-4,
        "chance",
        "convention",
        "chance of a pair to share a class, at least",
        acts_on="batches of very many classes",
    )
    pair_steps: int = _number(12, "steps", "work", "Newton steps to the chance of a pair to share a class")
    smallest_group: int = _number(
        3, "items", "convention", "different items that make a proposal", acts_on="proposals of new classes"
    )
    most_gathered: int = _number(
        2**11,
        "items",
        "work",
        "rejected items of a batch that are gathered into groups",
        acts_on="large batches with many rejected items",
    )
    few_classes: float = _number(
        1.5, "nats", "tuned", "by which two items that a person called none of these share a class more likely"
    )

    # -- what the catalogue tells about unknown items: `unknown_of_catalogue` ------------------------------------------

    score_counts: float = _fitted(0.5, "ratio", "tuned", "weight of the score in t, over that of the distance")
    common: float = _fitted(
        0.1,
        "ratio",
        "tuned",
        "share of the variance of t that all items of a class have in common; and the least unit of f, in V",
    )
    near_part: float = _fitted(
        0.25, "chance", "convention", "part of the items, the nearest ones, that tells how far a batch is"
    )
    pairs_per_class: int = _fitted(32, "examples", "work", "examples of a class that make pairs of one class")
    pairs_apart: int = _fitted(512, "examples", "work", "examples that make pairs of two classes")
    pair_weight: float = _fitted(1000.0, "pairs", "convention", "of either kind, against the ridge of A and B")
    pair_ridge: float = _fitted(
        1e-3, "penalty", "convention", "on A and B: a threshold may separate pairs of one class from others"
    )

    # -- which items of a batch are unknown: `unknown_in_batch` ------------------------------------------------------

    nothing_unknown: float = _number(0.5, "chance", "convention", "that nothing is unknown, before anything is seen")
    elsewhere: float = _number(0.5, "chance", "convention", "that a batch comes from elsewhere")
    home_shift: float = _number(0.2, "t", "tuned", "deviation of κ of a batch from the source of the catalogue")
    other_shift: float = _number(1.0, "t", "tuned", "scale of κ of a batch from elsewhere, a Cauchy distribution")
    other_width: float = _number(1.6, "octaves", "tuned", "deviation of log₂ ω of a batch from elsewhere")
    wrong_label: float = _number(0.05, "chance", "tuned", "that a label of a person is wrong")
    shifts: tuple[float, ...] = _number(
        tuple(k / 4 - 0.5 for k in range(31)), "t", "work", "values of κ that are summed over"
    )
    widths: tuple[float, ...] = _number((1.0, 2.0, 4.0), "ratio", "work", "values of ω that are summed over")
    shares: int = _number(12, "values", "work", "values of ρ that are summed over, beside none")
    least_source: float = _number(
        1e-8, "ratio", "work", "chance of a source over that of the likeliest one, below which it is not summed over"
    )
    interval_tail: float = _number(
        0.05,
        "chance",
        "convention",
        "that the share of unknown items is below its interval",
        acts_on="the interval of the share of unknown items",
    )
    interval_parts: int = _number(
        60,
        "parts",
        "convention",
        "of one, to which the ends of the interval are rounded",
        acts_on="the interval of the share of unknown items",
    )
    rejected: float = _number(0.5, "chance", "convention", "to be unknown, above which an item is rejected")
    most_known_rejected: float = _number(
        0.15, "chance", "tuned", "share of the known items that is expected to be rejected where a share is told"
    )

    # -- classes without a name: `unnamed` --------------------------------------------------------------------------

    unnamed: float = _number(0.4, "nats", "tuned", "by which a class without a name is less likely")
    unnamed_elsewhere: float = _number(
        3.0, "nats", "tuned", "the same for each factor of e by which a batch is farther than held-out examples"
    )
    unnamed_first: float = _number(6.0, "nats", "tuned", "the same while that distance is estimated")
    ruled_out: float = _number(
        40.0, "nats", "convention", "by which a class without a name that a person gave rules out others"
    )

    # -- labels: `labels` -------------------------------------------------------------------------------------------

    less_certain: float = _number(
        0.25, "exponent", "tuned", "labels of a batch that is f times as far are raised to the power of 1/f to this"
    )

    # -- large batches: `stream` ------------------------------------------------------------------------------------

    most_deciding: int = _number(2**10, "items", "work", "of a large batch that decide")
    deciding_scores: int = _number(
        2**25,
        "scores",
        "work",
        "that the deciding items have at most",
        acts_on="catalogues of tens of thousands of classes",
    )
    most_counted: int = _number(
        2**13, "items", "work", "of a large batch that are counted", acts_on="batches of more than 4,096 items"
    )
    counted_scores: int = _number(
        2**29,
        "scores",
        "work",
        "that the counted items have at most",
        acts_on="catalogues of tens of thousands of classes",
    )
    fewest_rows: int = _number(
        16,
        "items",
        "work",
        "that decide or are counted, however many classes there are",
        acts_on="catalogues of millions of classes",
    )

    # -- names of classes: `names` ----------------------------------------------------------------------------------

    name_slope: float = _fitted(
        0.5, "ratio", "measured: 0.5 on clinc150", "a, from names to examples, where no class has both"
    )
    name_slope_weight: float = _fitted(2.0, "classes", "convention", "that this slope counts as")
    name_weights: tuple[float, ...] = _fitted(
        (0.0, 0.5, 1.0, 2.0, 4.0, 8.0), "examples", "work", "weights of a name that are tried"
    )
    usual_name_weight: float = _fitted(
        1.0,
        "examples",
        "convention",
        "weight of a name if examples cannot tell",
        acts_on="names beside class means, or where nothing can be held out",
    )
    fewest_named: int = _fitted(
        4, "classes", "convention", "that tell whether names go with examples", acts_on="names of few classes"
    )
    informative_sds: float = _fitted(
        2.0,
        "deviations",
        "convention",
        "by which names must go with their examples more than at random",
        acts_on="names that hardly go with their examples",
    )

    # -- scores of another model, and names alone: `scores` ---------------------------------------------------------

    nats_per_unit: float = _number(2.0, "nats", "tuned", "c: per unit of another model's scores")
    log_factor_sd: float = _number(
        0.25,
        "nats",
        "tuned",
        "deviation of the logarithm of the factor on c among models",
        acts_on="items with scores that a person labelled",
    )
    listed_scores: int = _number(5, "scores", "convention", "best scores of an item that tell the unit")
    examples_of_scores: float = _number(1.0, "examples", "tuned", "that a class counts as where only scores are known")
    examples_of_several: float = _number(
        5.0, "examples", "tuned", "the same where an item may have several classes, each scored by itself"
    )
    alone_per_class: float = _number(
        1.0, "items", "convention", "of each class present that are labelled alone where only scores are known"
    )
    most_counted_scores: int = _number(
        0,
        "items",
        "work",
        "of a large batch that are counted where only scores are known; none of them",
        acts_on="large batches by scores",
    )
    several_power: float = _number(4.0, "exponent", "tuned", "of a count compared with that of a class that is present")
    several_least: float = _number(1.5, "items", "tuned", "expected count below which a class is not raised")
    several_start: float = _number(0.1, "chance", "work", "share of items that have a class from which steps start")
    several_steps: int = _number(30, "steps", "work", "steps of expectation maximisation for these shares")

    # -- siblings: `pooling` ----------------------------------------------------------------------------------------

    concentrations: tuple[float, ...] = _number(
        tuple(2.0**power for power in range(-2, 13)), "items", "work", "concentrations of pools that are tried"
    )
    forgetting: tuple[float, ...] = _number(
        (1.0, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35),
        "ratio",
        "work",
        "rates of forgetting that are tried",
        acts_on="pools in an order",
    )
    least_gain: float = _number(
        3.0,
        "nats",
        "convention",
        "that a pool has to gain: a Bayes factor of twenty",
        acts_on="pools that hardly help",
    )
    follow: float = _number(
        10.0, "ratio", "tuned", "how much closer batches follow their pool than counts with errors suggest"
    )

    # -- questions to a person: `questions` -------------------------------------------------------------------------

    most_compared: int = _number(2048, "items", "work", "among which questions are chosen", acts_on="questions")
    most_paired: int = _number(
        512, "items", "work", "whose pairs tell when two items share a class", acts_on="questions"
    )


DEFAULT = Settings()
