"""A real Slurm on this machine alone, without systemd: munge, the controller and two nodes, all under one folder."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from fake_vllm import free_port

from waiting import BACKSTOP_S

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "squeue")
NODES = ("n1", "n2")
_SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1
MpiDefault=none
ReturnToService=2
SlurmdTimeout=8
KillWait=20
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL PriorityTier=9 MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """The programs of Slurm's that are not on this machine, in words; empty where none lacks."""
    return ", ".join(name for name in NEEDED if shutil.which(name, path=_SEARCHED) is None)


@dataclass
class Cluster:
    """A cluster that runs; its environment makes `sbatch` and its like speak to it."""

    folder: Path
    environment: dict[str, str]
    _daemons: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    _nodes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def ask(self, *command: str) -> str:
        """What one of Slurm's commands prints."""
        asked = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=BACKSTOP_S
        )
        return asked.stdout.strip()

    def state(self, job: str) -> str:
        """The job's state, such as `RUNNING`."""
        return self._field(job, "JobState")

    def exit_code(self, job: str) -> str:
        """The job's exit code and signal, such as `1:0`."""
        return self._field(job, "ExitCode")

    def wait_for(self, true: Callable[[], object], what: str, seconds: float = BACKSTOP_S) -> None:
        """Return once it is true; fails with the daemons' last words."""
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() > deadline:
                logs = [path.read_text(errors="replace")[-1500:] for path in sorted(self.folder.glob("slurm*.log"))]
                raise AssertionError("\n".join([f"not within {seconds:.0f} s: {what}", *logs]))
            time.sleep(0.1)

    def _field(self, job: str, name: str) -> str:
        try:
            words = self.ask("scontrol", "show", "job", job).split()
        except subprocess.CalledProcessError as error:
            if error.returncode != -signal.SIGPIPE:
                raise
            return ""  # a busy controller hung up; who waits asks again
        return next(word.partition("=")[2] for word in words if word.startswith(f"{name}="))

    def start_node(self, name: str) -> None:
        """Start a node; its own processes and those of its jobs' steps carry its name."""
        self._nodes[name] = self._start("slurmd", "-D", "-N", name, environment={"MEDEXAM_TEST_NODE": name})

    def cut_power(self, name: str) -> None:
        """Kill a node and everything that runs on it, without a word to anybody."""
        signs = (f"MEDEXAM_TEST_NODE={name}".encode(), f"SLURMD_NODENAME={name}".encode())
        # First Slurm's own, which would report the end of the tasks. By groups: vLLM's workers write their title over
        # their environment.
        for sign in signs:
            groups = set()
            for environment in Path("/proc").glob("[0-9]*/environ"):
                with contextlib.suppress(OSError):
                    if sign in environment.read_bytes().split(b"\0"):
                        groups.add(os.getpgid(int(environment.parent.name)))
            for group in groups:
                with contextlib.suppress(OSError):
                    os.killpg(group, signal.SIGKILL)
        self._nodes.pop(name).wait()

    def _start(
        self, name: str, *flags: str, environment: Mapping[str, str] = MappingProxyType({})
    ) -> "subprocess.Popen[bytes]":
        program = shutil.which(name, path=_SEARCHED)
        assert program is not None
        with (self.folder / f"{name}.out").open("ab") as out:
            daemon = subprocess.Popen(
                [program, *flags],
                env={**self.environment, **environment},
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._daemons.append(daemon)
        return daemon

    def cancel_all(self) -> None:
        """End every job, and wait until none is left."""
        if self.ask("squeue", "--noheader"):
            self.ask("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name)
            self.wait_for(lambda: not self.ask("squeue", "--noheader"), "an empty queue")

    def _stop(self) -> None:
        with contextlib.suppress(subprocess.SubprocessError):
            self.cancel_all()
        for daemon in reversed(self._daemons):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait()


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start it in a new folder, wait until its node is idle, and leave nothing behind."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    host = socket.gethostname()
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    configuration = folder / "slurm.conf"
    line = "NodeName={} NodeHostname={} NodeAddr=127.0.0.1 Port={} CPUs=1 RealMemory=2000"
    text = CONFIGURATION.format(
        host=host,
        controller=free_port(),
        nodes="\n".join(line.format(name, host, free_port()) for name in NODES),
        user=pwd.getpwuid(os.getuid()).pw_name,
        folder=folder,
    )
    configuration.write_text(text, encoding="utf-8")
    cluster = Cluster(folder, {**os.environ, "SLURM_CONF": str(configuration)})
    try:
        munge = {"key-file": key, "socket": "munge.socket", "pid-file": "munge.pid", "seed-file": "munge.seed"}
        flags = [f"--{name}={folder / value}" for name, value in munge.items()]
        cluster._start("munged", "--foreground", "--force", f"--log-file={folder / 'munge.log'}", *flags)
        cluster.wait_for((folder / "munge.socket").exists, "munge's socket")
        cluster._start("slurmctld", "-D")
        for name in NODES:
            cluster.start_node(name)
        cluster.wait_for(lambda: _idle(cluster), "idle nodes")
        yield cluster
    finally:
        cluster._stop()
        shutil.rmtree(folder, ignore_errors=True)


def _idle(cluster: Cluster) -> bool:
    try:
        return cluster.ask("sinfo", "--noheader", "--partition=main", "--format=%D %T") == f"{len(NODES)} idle"
    except subprocess.SubprocessError:
        return False
