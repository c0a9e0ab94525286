"""Results of other harnesses as runs, and runs as the files of other harnesses."""
