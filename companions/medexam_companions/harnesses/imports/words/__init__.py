"""Results of questions that are answered in words."""
