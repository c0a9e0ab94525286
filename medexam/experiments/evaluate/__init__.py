"""DSPy modules, models and metrics as Python objects, and the evaluation of any examples with them."""
