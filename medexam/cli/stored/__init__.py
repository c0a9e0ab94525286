"""Commands on stored runs: list, show and remove them."""
