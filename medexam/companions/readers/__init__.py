"""Models that read passages: where a span answers a question, and whether a sentence entails a hypothesis.

They know passages as texts only, and nothing of exams.
"""
