"""review: a page on which a person answers a few questions, and the labels of all other items follow."""
