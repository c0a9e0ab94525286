"""Programs that look up or read passages."""
