"""Mathematics that knows nothing of few-shot learning: tensors in, tensors out."""
