"""Reading log-probabilities of continuations."""
