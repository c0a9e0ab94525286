"""ClinIQLink as its organisers run it: containers, submissions, feedback and a board."""
