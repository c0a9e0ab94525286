"""Questions with numbered options."""
