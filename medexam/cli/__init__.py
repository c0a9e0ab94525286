"""Parse, call, print: floor 5."""
