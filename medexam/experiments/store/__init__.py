"""What lies on disk: run folders, their predictions, and what is known of both."""
