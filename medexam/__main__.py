"""What `python -m medexam` runs: the same as the script `medexam`."""

from medexam.cli.script import run_script

if __name__ == "__main__":
    run_script()
