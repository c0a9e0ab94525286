"""What predictions tell beside right and wrong: one file a kind, from predictions with golds to figures to tables."""
