"""What compared runs say of questions in a model's training data."""
