"""From the pages of a PDF to numbered lines of text."""
