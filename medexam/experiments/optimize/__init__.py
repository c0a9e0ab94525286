"""`medexam optimize`: DSPy's optimizers over our programs, engines and run folders."""
