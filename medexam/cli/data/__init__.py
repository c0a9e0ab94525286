"""`medexam data`."""
