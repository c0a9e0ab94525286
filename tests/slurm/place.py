"""Where one test's jobs live, and what it asks of them."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from medexam.serve import RegisteredServer, Registry
from slurm.cluster import Cluster
from waiting import BACKSTOP_S


@dataclass
class Place:
    """Where one test's jobs live."""

    cluster: Cluster
    folder: Path
    environment: dict[str, str]

    @property
    def registry(self) -> Registry:
        return Registry(self.folder / "registry" / "servers")

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def command(self, *words: str) -> list[str]:
        main = "from medexam.cli import run_command; run_command()"
        return [sys.executable, "-c", main, *words]

    def serve(self, *words: str, before: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        """Submit; standard output's first line is the job's id."""
        folders = ["--registry", str(self.registry.path), "--folder", str(self.logs)]
        small = ["--slurm-option", "cpus-per-task=1", "--slurm-option", "mem=1G"]
        command = self.command("serve", *words[:1], "--slurm", *folders, *small, *words[1:])
        return subprocess.run([*before, *command], env=self.environment, capture_output=True, text=True, check=True)

    def registered(self, job: str, seconds: float = BACKSTOP_S) -> RegisteredServer:
        """The job's only server, once it is there."""
        (entry,) = self.all_registered(job, 1, seconds)
        return entry

    def all_registered(self, job: str, count: int, seconds: float = BACKSTOP_S) -> tuple[RegisteredServer, ...]:
        """The job's servers, once all are there."""

        def all_there() -> bool:
            assert self.cluster.state(job) not in ("FAILED", "COMPLETED"), self.told(job)
            return len(self.registry.read()) == count

        self.cluster.wait_for(all_there, f"job {job} in the registry", seconds)
        entries = self.registry.read()
        assert {str(entry.job).partition(".")[0] for entry in entries} == {job}
        return entries

    def told(self, job: str) -> str:
        return (self.logs / f"{job}.log").read_text()

    def warn(self, job: str) -> None:
        """What Slurm sends before the walltime."""
        self.cluster.ask("scancel", "--batch", "--signal=USR1", job)

    def processes(self) -> list[str]:
        """Commands that run with this test's environment: the job's Python, guards, servers and workers."""
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"MEDEXAM_CACHE={self.folder}".encode() in environment.read_bytes():
                    found.append((environment.parent / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def leaves_registry(self) -> None:
        """Wait until no server is registered."""
        self.cluster.wait_for(lambda: not self.registry.read(), "the registry to be empty")

    def cancel(self, job: str) -> None:
        """Cancel the job: it is out of the registry then, and no process or key is left."""
        self.cluster.ask("scancel", job)
        self.cluster.wait_for(lambda: self.cluster.state(job) == "CANCELLED", f"job {job} cancelled")
        self.cluster.wait_for(lambda: not self.cluster.ask("squeue", "--noheader"), "an empty queue")
        self.cluster.wait_for(lambda: not self.processes(), "no process left")
        assert self.registry.read() == ()
        assert not list(self.registry.path.glob("*"))
