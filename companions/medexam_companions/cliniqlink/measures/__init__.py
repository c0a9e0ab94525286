"""The scorer of the ClinIQLink 2025 shared task: seven formats, the released code's rules and the paper's."""
