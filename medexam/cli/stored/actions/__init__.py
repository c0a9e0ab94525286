"""What commands do, imported when one is called: a command's own module holds its options alone."""
