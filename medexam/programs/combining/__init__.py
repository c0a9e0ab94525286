"""Several answers to a question made into one: floor 3, above the programs that they come from."""
