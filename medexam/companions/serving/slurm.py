"""`medexam serve --slurm`, a job or its script, and `--in-job`, which the job runs on each node."""

import sys
from dataclasses import fields, replace

import typer

from medexam.companions.serving.cluster.addresses import every_address
from medexam.companions.serving.cluster.job_node import JobNode
from medexam.companions.serving.cluster.script import Job, job_script
from medexam.companions.serving.cluster.submission import check_signs, submit
from medexam.companions.serving.foreground import run_command, serve_until_signal
from medexam.companions.serving.launch.fleet import ClientAccess
from medexam.companions.serving.launch.ports import next_free
from medexam.companions.serving.launch.vllm_command import plan_servers
from medexam.toolkit.commands import refuse
from medexam.toolkit.files import host_name
from medexam.toolkit.servers import make_key

_OF_A_NODE = {"span", "folder"}
"""What a job's script tells each node of the allocation."""


def serve_job(context: typer.Context, job: Job, *, on_node: bool, show: bool) -> None:
    """Submit the job or print its script; `on_node`: serve as one of its nodes."""
    refuse(context, {"port", "host", "log"}, "a job's nodes choose port, address and logs themselves: leave it out")
    if job.servers.container is not None and job.servers.container_runtime is None:
        # Clusters let nobody run docker, which makes its users root.
        job = replace(job, servers=replace(job.servers, container_runtime="apptainer"))
    if on_node:
        allocated = {"show", *(field.name for field in fields(job.allocation))} - _OF_A_NODE
        refuse(context, allocated, "the job already has its nodes: leave it out")
        _serve_on_node(job)
    else:
        refuse(context, {"in_job"}, "the job's script sets it: leave it out")
        _submit(job, show=show)


def _submit(job: Job, *, show: bool) -> None:
    if show:
        sys.stdout.write(job_script(job))
        if not job.folder.is_dir():
            sys.stderr.write(f"before sbatch: mkdir -p {job.folder}, or Slurm has nowhere to write the job's log\n")
        return
    submitted = submit(job)
    number, registry = submitted.number, job.registry if job.fleet.registry else None
    sys.stdout.write(f"{number}\n{run_command(registry, wait=True)}\n")
    sys.stderr.write(
        f"submitted {submitted.script} as job {number}; `squeue --start --job {number}` says when it may start, "
        f"`scancel {number}` stops it\n"
        f"registry: {job.registry.path}\n"
        f"logs: {job.folder}/{number}.log, and vLLM's in {job.folder}/medexam-job-{number}/\n"
    )


def _serve_on_node(job: Job) -> None:
    job_node = JobNode.find()
    registry = job.registry
    check_signs((job.folder, registry.path.parent))
    node = job_node.meet(job.folder) if job.allocation.span else None
    host = every_address(host_name())
    port = None if node is not None and node.rank else next_free(host, job_node.first_port)
    launches = plan_servers(job.model, replace(job.servers, host=host, port=port), job.flags, node=node)
    for note in launches[0].notes:
        sys.stderr.write(f"{note}\n")
    answers = node is None or node.rank == 0
    key_file = registry.path.parent / "keys" / f"{job_node.job}-{job_node.rank}.key"
    access = ClientAccess(make_key(), key_file, registry if answers else None, job_node.job, host_name())
    # One node cannot restart a server that spans several.
    restarts = 0 if job.allocation.span else job.fleet.restarts
    settings = replace(job.fleet, log=job_node.folder(job.folder) / job_node.name, restarts=restarts)
    serve_until_signal(launches, access, settings, run_command(registry), f"scancel {job_node.job}")
