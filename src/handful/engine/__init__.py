"""Engine: one model for the labels of a batch, the classes present and unknown items, in NumPy and SciPy alone.

A head gives `S_nk`, the nats by which class k describes item n under equal shares. Every part is a function of arrays:

1. `head` (with `logistic`, `left_out`, `named`, `class_means`): fitted once per catalogue, temperature by examples that
   were left out.
2. `place`: where the batch lies. A common offset of its items, and shares that follow the numbers of examples. `prior`:
   what is known about the shares in advance.
3. `presence`: spike and slab over the classes.
4. `positions`: class means move with the items given to them, as after more examples.
5. `levels`, `links`, `unknown`: whether two populations, one near and one far, explain how far items lie from their
   classes, and which unknown items belong together.
6. `model`: all of it, from a batch to its answer, or from a stack of batches of one size (`columns`).
"""
