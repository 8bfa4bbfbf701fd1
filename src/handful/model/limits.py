"""Limits: block sizes, and guards against rounding, overflow and division by zero.

No answer should depend on them but for rounding.
"""

# Numbers of a stack of batches that are labelled as one, of a block of items, and of what is read before it is labelled
# or kept for a second look. [numbers; work]
IN_STACK = 2**21
IN_BLOCK = 2**21
IN_MEMORY = 2**23
# Items that are labelled at a time, at most and at least. [items; work]
BLOCK_ROWS = 2**12
FEWEST_AT_A_TIME = 16
# Densities of unknown items that are computed at a time. [densities; work]
DENSITIES = 1024
# Numbers that a second-level cache holds: scores of a fit are computed in blocks of this many. [numbers; work]
IN_CACHE = 2**19

# Exponents of likelihoods are not smaller: they count for nothing. [nats; convention]
LOWEST = -60.0
# Logarithms of the ratio of an item to be unknown, and of a cell of their posterior; smaller numbers take much longer.
# [nats; convention]
LEAST_LOG_RATIO = -40.0
MOST_LOG_RATIO = 60.0
LEAST_LOG_CELL = -80.0
# Steps to the total of the weights of sets: each is at least half of the way in logarithms. [steps; work]
TOTAL_STEPS = 30
# Log-odds of a pair whose exponential is taken. [nats; convention]
MOST_LOG_ODDS = 30.0

# A chance whose logarithm is taken differs from zero and from one by this, in single and in double precision.
# [chance; convention]
SMALL_CHANCE = 1e-6
SMALLEST_CHANCE = 1e-12
# Below this, `ln(1 - x)` is `-x`. [chance; convention]
LINEAR = 1e-3
# What is divided by is at least this: sums of weights, differences of variances, variances of a
# share, lengths, counts. [unit of what is divided by; convention]
LEAST_SUM = 1e-9
LEAST_DIFFERENCE = 1e-4
LEAST_VARIANCE = 1e-12
LEAST_LENGTH = 1e-12
LEAST_COUNT = 1e-30
# Numbers of examples are equal if their logarithms differ by less. [nats; convention]
EQUAL = 1e-6
# Steps end when a chance changes by this share of itself. [ratio; work]
CONVERGED = 1e-5
# Cells of a grid that are left out of the interval, by the largest of them. [ratio; convention]
NO_CELL = 1e-4
# With at most this many anchors, computing all products is faster than gathering those of the strongest links.
# [anchors; work]
MULTIPLIED_ANCHORS = 2**8
# Cosine above which two items are compared number by number. [cosine; work]
NEARLY_EQUAL = 0.999
# Steps of one in which chances to be unknown are counted, so that counts of parts of a batch add. [steps; work]
STEPS_OF_SHARE = 2**14
# Bins in which values are counted, before a line in log-odds is fitted to the counts. [bins; work]
LINE_BINS = 2**12
# It is fitted until its gradient is this share of what is counted. [ratio; work]
LINE_GRADIENT = 1e-9
# Steps that training takes at most, all of which L-BFGS remembers. Half and twice these change nothing: it
# stops earlier, by its gradient. [steps; work]
MOST_TRAINING_STEPS = 200
TRAINING_MEMORY = 5
# Chance of a pair of items to share a class: Newton steps to its maximum, of which there is one, start here, and stay
# below this. In a batch of one class, other bounds move probabilities by 5e-7. [chance; convention]
PAIR_START = 0.1
PAIR_MOST = 0.9
# Of more examples than this, some tell about where the temperature lies. In one catalogue above this size, half and
# twice its value changed nothing, as for the two numbers below. [examples; work]
TEMPERATURE_EXAMPLES = 1024
# All examples are then compared at this many values below and above it: the likelihood has one maximum. [values; work]
NEAR_TEMPERATURES = 3
# This many held-out examples choose the weight of names. [examples; work]
NAME_WEIGHT_EXAMPLES = 200
# Tables list classes that are present with at least this chance. No label and no chance depends on it.
# [chance; convention]
LEAST_LISTED = 0.02
# A class with a smaller expected count in a group, each item alone, is nobody's label, and far from being listed: where
# only labels and tables are wanted, such classes are counted together.
# [items; convention: a twentieth of LEAST_LISTED]
LEAST_NEAR = 1e-3
# Chances of one label that differ by less are the same. [chance; convention]
SAME_CHANCE = 1e-5
# ε, the share of wrong labels among the examples, is at least this. [chance; convention]
LEAST_WRONG_SHARE = 1e-4
# Ends of an interval are compared a little above a multiple, so that rounding does not decide. [ratio; convention]
ABOVE = 1e-5
# The normal distribution: `Φ(x) = ½ + ½ tanh(y + b y³)` with `y = a x`, to within 0.0002.
# [ratio; measured: the largest error is 0.0002]
NORMAL_SLOPE = 0.7988
NORMAL_CUBE = 0.0692
