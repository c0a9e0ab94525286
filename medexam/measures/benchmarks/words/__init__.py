"""Questions that are answered in words."""
