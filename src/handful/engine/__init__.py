"""Engine: one model for the labels of a batch, the classes present and unknown items, in NumPy and SciPy alone.

A head gives `S_nk`, the nats by which class k describes item n under equal shares. Every part is a function of arrays:

1. `head` (with `linear`, `left_out`, `names`): fitted once per catalogue, temperature by examples that were left out.
2. `tilt`: a common offset of the items of a batch, shares that follow the numbers of examples, and what is known about
   the shares in advance.
3. `presence`: spike and slab over the classes.
4. `linear`: class means move with their items, as after more examples.
5. `links`, `unknown`: whether two populations, one near and one far, explain how far items lie from their classes, and
   which unknown items belong together.
6. `model`: all of it, from a batch to its answer, or from a stack of batches of one size; `scores`: the same from the
   scores of another model or from names alone.
7. `pooling`, `questions`: what batches say about their siblings, and which items a person should look at first.
"""
