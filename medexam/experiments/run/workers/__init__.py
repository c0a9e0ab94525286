"""A run whose questions several workers ask, wherever these are."""
