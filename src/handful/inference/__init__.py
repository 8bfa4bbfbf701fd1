"""What methods share: mixtures fitted to a batch, the scale of features, training on a support."""
