"""What retrieved passages say of the answers that were given after them."""
