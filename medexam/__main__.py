"""What `python -m medexam` runs: the same as the script `medexam`."""

import sys

from medexam.cli.script import run_script

if __name__ == "__main__":
    # Hints name the command as it was typed.
    sys.argv[0] = "python -m medexam"
    run_script()
