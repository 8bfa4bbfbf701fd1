"""Limits: block sizes, and guards against rounding, overflow and division by zero.

No answer should depend on them but for rounding. On 18 batches of 75 items of three banks, none changed a probability
by more than 2e-6 (`python studies/model_figures.py DATA --only limits`). Block sizes act on larger batches and on
stacks, which that did not try.
"""

# Numbers of a stack of batches that are labelled as one, of a block of items, and of what is read before it is labelled
# or kept for a second look.
IN_STACK = 2**20
IN_BLOCK = 2**21
IN_MEMORY = 2**23
# Items that are labelled at a time, at most and at least.
BLOCK_ROWS = 2**12
FEWEST_AT_A_TIME = 16
# Densities of unknown items that are computed at a time.
DENSITIES = 256
# Numbers that a second-level cache holds: scores of a fit are computed in blocks of this many.
IN_CACHE = 2**19
# Data through which a line is fitted: how many are looked at a time, how many at least tell where to start, and the
# gradient, by their weight, at which they have.
ON_LINE = 2**14
FIRST_ON_LINE = 2**12
FIRST_GRADIENT = 1e-3
# The gradient, by the number of pairs, at which it is known how often two items have the same class.
ENOUGH_PER_PAIR = 1e-6

# Exponents of likelihoods are not smaller: they count for nothing.
LOWEST = -60.0
# Logarithms of the ratio of an item to be unknown, and of a cell of their posterior; smaller numbers take much longer.
LEAST_LOG_RATIO = -40.0
MOST_LOG_RATIO = 60.0
LEAST_LOG_CELL = -80.0
# The log of the likelihood ratio of a class, per item, in single precision.
MOST_LOG_GAIN = 25.0
# The weight of a class in a state of the sampler: without any class no item has a likelihood.
LEAST_STATE = 1e-16
# Log-odds of a pair whose exponential is taken.
MOST_LOG_ODDS = 30.0

# A chance whose logarithm is taken differs from zero and from one by this, in single and in double precision.
SMALL_CHANCE = 1e-6
SMALLEST_CHANCE = 1e-12
# Below this, `ln(1 - x)` is `-x`.
LINEAR = 1e-3
# What is divided by is at least this: sums of weights, counts of typical items, weights of unknown items, differences
# of variances, variances of a share, lengths.
LEAST_SUM = 1e-9
LEAST_TYPICAL = 1e-3
LEAST_WEIGHT = 1e-3
LEAST_DIFFERENCE = 1e-4
LEAST_VARIANCE = 1e-12
LEAST_LENGTH = 1e-12
LEAST_COUNT = 1e-30
# Numbers of examples are equal if their logarithms differ by less.
EQUAL = 1e-6
# Steps end when a chance changes by this share of itself.
CONVERGED = 1e-5
# Cells of a grid that are left out of the interval, by the largest of them.
NO_CELL = 1e-4
# Cosine above which two items are compared number by number.
NEARLY_EQUAL = 0.999
# A line in log-odds is fitted until its gradient is shorter than LINE_GRADIENT, in at most MOST_LINE_STEPS steps.
# Losses whose relative difference is below LINE_ROUNDING are equal.
LINE_GRADIENT = 1e-8
MOST_LINE_STEPS = 200
LINE_ROUNDING = 1e-14
# Training takes at most MOST_TRAINING_STEPS steps. A step is halved, at most MOST_HALVINGS times, until the loss falls
# by LEAST_DECREASE of what its slope promises. Half and twice these change nothing: training stops earlier, and the
# first length of nearly every step is short enough.
MOST_TRAINING_STEPS = 200
MOST_HALVINGS = 20
LEAST_DECREASE = 1e-4
# Chance of a pair of items to share a class: Newton steps to its maximum, of which there is one, start here, and stay
# below this. In a batch of one class, other bounds move probabilities by 5e-7.
PAIR_START = 0.1
PAIR_MOST = 0.9
# Of more examples than this, some tell about where the temperature lies, and all are then compared at this many values
# below and above it: the likelihood has one maximum. And this many left-out examples choose the weight of names. In
# one catalogue above each of these sizes, half and twice their values changed nothing.
TEMPERATURE_EXAMPLES = 1024
NEAR_TEMPERATURES = 3
NAME_WEIGHT_EXAMPLES = 200
# Tables list classes that are present with at least this chance. No label and no chance depends on it.
LEAST_LISTED = 0.02
# ε, the share of wrong labels among the examples, is at least this.
LEAST_WRONG_SHARE = 1e-4
# Ends of an interval are compared a little above a multiple, so that rounding does not decide.
ABOVE = 1e-5
# The normal distribution: `Φ(x) = ½ + ½ tanh(y + b y³)` with `y = a x`, to within 0.0002.
NORMAL_SLOPE = 0.7988
NORMAL_CUBE = 0.0692
