"""A model of transformers in this process."""
