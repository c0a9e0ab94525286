"""What commands show on standard error while they work."""
