"""The tables and figures of papers: declared, made anew by one command, and filled with stored runs."""
