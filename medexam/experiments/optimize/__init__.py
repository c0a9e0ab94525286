"""`medexam optimize`: DSPy's optimisers over our programs, engines and run folders."""
