"""The pictures that questions refer to, read from data sets and made ready to be shown to a model."""
