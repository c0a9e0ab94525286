"""Commands on stored runs: list, show, watch and remove them."""
