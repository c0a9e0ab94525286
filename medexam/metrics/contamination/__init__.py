"""Statistics of what is consistent with questions in a model's training data."""
