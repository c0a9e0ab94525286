"""The page: stored runs as one HTML file that opens from the disk, with tables, pictures and every single question."""
