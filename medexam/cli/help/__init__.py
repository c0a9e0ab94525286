"""What a reader is helped with while typing: examples, and words that a shell completes."""
