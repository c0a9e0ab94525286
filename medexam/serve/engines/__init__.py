"""The engines, one for each `model.engine`."""
