"""The options of `medexam serve`, each declared once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

_SLURM = "Slurm"

Model = Annotated[
    str | None, typer.Argument(help="A profile, a hub id, a model folder, or smollm2.", metavar="PROFILE|MODEL")
]
ListProfiles = Annotated[bool, typer.Option("--list", help="List the profiles and the GPUs they take.")]
Replicas = Annotated[int, typer.Option(min=1, help="Servers of the same model, each with its own GPUs.")]
Gpus = Annotated[str | None, typer.Option(metavar="0,1", help="GPUs to use; every one by default.")]
Python = Annotated[
    Path | None, typer.Option(help="The Python that has vLLM; $MEDEXAM_VLLM_PYTHON or this one by default.")
]
Container = Annotated[str | None, typer.Option(metavar="IMAGE", help="Run vLLM from a container.")]
Runtime = Annotated[Literal["docker", "podman", "apptainer"], typer.Option(help="What runs the container.")]
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Port to serve on; the first free one from 8000 by default.")
]
Host = Annotated[str, typer.Option(help="Address to serve on; 0.0.0.0 is every one.")]
ServedName = Annotated[str | None, typer.Option(help="Name that clients ask for.")]
MaxContext = Annotated[int | None, typer.Option(min=1, help="Tokens of prompt and reply together.")]
Log = Annotated[Path | None, typer.Option(help="Folder for vLLM's output, or a file that ends in .log; ./ by default.")]
Timeout = Annotated[float, typer.Option(min=1, help="Seconds that it may take to load.")]
Restarts = Annotated[int, typer.Option(min=0, help="How often a server that crashed is started again.")]
RegistryFile = Annotated[
    Path | None, typer.Option(help="File that tells runs where servers are; this machine's own by default.")
]
Show = Annotated[bool, typer.Option("--print", help="Print the command, or the job's script.")]

Slurm = Annotated[bool, typer.Option("--slurm", help="Submit a Slurm job.", rich_help_panel=_SLURM)]
Nodes = Annotated[int, typer.Option(min=1, help="Nodes of the job; each serves the model.", rich_help_panel=_SLURM)]
Span = Annotated[bool, typer.Option("--span", help="One server over all nodes of the job.", rich_help_panel=_SLURM)]
Partition = Annotated[str | None, typer.Option(help="Where the job runs.", rich_help_panel=_SLURM)]
Time = Annotated[
    str, typer.Option(metavar="HH:MM:SS", help="Then the job ends and comes back.", rich_help_panel=_SLURM)
]
Requeues = Annotated[int, typer.Option(min=0, help="How often it comes back.", rich_help_panel=_SLURM)]
Account = Annotated[str | None, typer.Option(help="Who pays.", rich_help_panel=_SLURM)]
GpusPerNode = Annotated[int | None, typer.Option(min=0, help="GPUs to ask for.", rich_help_panel=_SLURM)]
SlurmOption = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Another option of sbatch's.", rich_help_panel=_SLURM)
]
SlurmFolder = Annotated[
    Path, typer.Option(help="Scripts and logs, on storage that all nodes see.", rich_help_panel=_SLURM)
]

OF_SLURM = frozenset(
    {"nodes", "span", "partition", "time", "requeues", "account", "gpus_per_node", "slurm_option", "slurm_folder"}
)
"""Options that only a Slurm job has."""
OF_NODES = frozenset({"port", "host", "log"})
"""Options that each node of a job chooses for itself."""
OF_FLEET = frozenset({"log", "timeout", "restarts", "registry"})
"""Options that a printed command of vLLM does not have."""
