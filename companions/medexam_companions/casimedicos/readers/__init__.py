"""Models that read passages as texts: where a span answers a question, and whether a sentence entails a hypothesis."""
