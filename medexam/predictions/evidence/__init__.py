"""The kinds of evidence: what is kept beside an answer, one file a kind; floor 0."""
