"""`medexam serve`: vLLM on this machine, as a Slurm job and on each of its nodes, and what runs start themselves."""
