"""Pictures of stored runs, data sets and corpora."""
