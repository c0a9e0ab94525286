"""The prompts of the translation set-ups, as data."""
