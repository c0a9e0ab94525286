"""What people read of stored runs: tables and Markdown."""
