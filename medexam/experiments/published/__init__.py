"""What papers publish: data files, read by `experiments/report/papers/`; each figure with its source."""
