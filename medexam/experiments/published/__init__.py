"""What exam boards publish: a data file, read by `experiments/report/papers/`; each figure with its source."""
