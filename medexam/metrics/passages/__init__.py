"""What retrieved passages say, and how good rankings are."""
