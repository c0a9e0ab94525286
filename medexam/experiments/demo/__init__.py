"""What `medexam demo` shows: the study's answers, which ship in the package, as runs and in sentences."""
