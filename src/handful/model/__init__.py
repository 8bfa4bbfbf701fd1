"""Model: one for the labels of a batch, the classes present and unknown items, in NumPy and SciPy alone.

A head gives `S_nk`, the nats by which class k describes item n under equal shares. Every step is a function from values
to one small value, over arrays with the axes `[batch, item, class]`:

1. `head` (with `linear`, `left_out`, `names`): fitted once per catalogue, temperature by examples that were left out;
   `unknown_of_catalogue`: what the catalogue tells about unknown items; both are the `reference`.
2. `scores`: by vectors, by names, or of another model; `knowledge`: what is known in advance.
3. `offset`, `prior`, `tilts`: constants per class, of the batch as a whole and of what is known about its shares.
4. `presence`: which classes are present, and labels given that.
5. `links`, `evidence`, `unknown_in_batch`, `unnamed`: which items belong to no class.
6. `means`: class means move with their items.
7. `labels`, `summary`, `rejected`, `answer`: what is said about items and about the batch.
8. `batch`: **the algorithm, from end to end**. `labelling`: batches in memory; `stream`: large ones; `several`: several
   classes per item.
9. `pooling`, `questions`: what batches say about their siblings, and which items a person should look at first.

`settings` has every number that can change an answer, `limits` those that cannot.
"""
