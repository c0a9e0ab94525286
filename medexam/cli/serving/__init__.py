"""How `medexam serve` runs servers: on this machine, as a Slurm job, and on each node of that job."""
