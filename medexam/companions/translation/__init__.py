"""Translating exams with the engines of this framework: words, asking, choosing and measuring."""
