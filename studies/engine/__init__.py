"""Engine, a candidate: one model for the labels of a batch and the classes present, in NumPy and SciPy alone.

A head gives `S_nk`, the nats by which class k describes item n under equal shares. The model has four parts, one file
each, and every part is a function of arrays:

1. `place`: where the batch lies. A common offset of its items, and shares that follow the numbers of examples.
2. `presence`: spike and slab over the classes. h classes are present, `P(h) ∝ 1/h`, with equal shares; an item is a
   stray of any class with a small chance; the evidence is tempered, because the items of a class are wrong together.
3. `positions`: class means move with the items given to them, as after more examples.
4. `unknown`: whether two populations, one near and one far, explain how far the items lie from their classes.

A candidate for the package's default, and no part of the package yet: `studies/one_model.py` measures it.
"""
