"""Which servers run where, and what each of them honours."""
