"""`medexam serve`, with a package that calls itself vllm and serves nothing but `/health`."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from fake_vllm import call_it_the_cpu_build, free_port, write_fake_vllm, write_model_folder

from medexam.serve import Registry, read_key_file
from waiting import BACKSTOP_S


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder, and a Python whose vllm is not the real one."""
    write_fake_vllm(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MEDEXAM_VLLM_PYTHON", raising=False)
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    return write_model_folder(tmp_path)


@pytest.fixture
def cpu_build(model: Path, tmp_path: Path) -> Path:
    """The same, with a vllm that needs no GPU for each replica."""
    call_it_the_cpu_build(tmp_path / "site")
    return model


def start(*words: str) -> "subprocess.Popen[str]":
    # Under nohup a hang-up would be ignored, as it should.
    heard = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"
    command = [sys.executable, "-c", f"{heard}; from medexam.cli import run_command; run_command()", "serve", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, marks=pytest.mark.nightly),
    ],
)
def test_it_serves_until_a_signal_and_leaves_nothing(model: Path, tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    registry = Registry(tmp_path / "cache" / "servers.json")
    with start(str(model), "--port", str(port), "--log", str(tmp_path / "my.log")) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in range(2)]
        (entry,) = registry.read()
        assert httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        assert entry.key_file is not None
        key = read_key_file(entry.key_file)
        running.send_signal(number)
        _, errors = running.communicate(timeout=BACKSTOP_S)
    assert running.returncode == 0, errors
    assert lines == [f"http://127.0.0.1:{port}/v1\n", "medexam run headqa_v1 --set model.engine=vllm --limit 200\n"]
    assert (entry.address, entry.model) == (f"http://127.0.0.1:{port}/v1", "Tiny-1B")
    assert str(entry.key_file) in errors.replace("\n", "")
    assert key not in errors
    assert errors.endswith("stopped\n")
    assert registry.read() == ()
    assert not list(tmp_path.rglob("*.key"))
    log = (tmp_path / "my.log").read_text()
    assert "with a key" in log
    assert "asked to stop" in log


def test_replicas_in_a_registry_of_ones_own_with_the_users_key(
    cpu_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "my-own")
    registry = Registry(tmp_path / "shared" / "servers.json")
    words = ["--replicas", "2", "--registry", str(registry.path), "--log", str(tmp_path / "logs"), "--host", "0.0.0.0"]
    with start(str(cpu_build), "--port", str(free_port()), *words) as running:
        assert running.stdout is not None
        first, second, command = (running.stdout.readline().strip() for _ in range(3))
        entries = registry.read()
        assert [one.address for one in entries] == [first, second]
        assert command.endswith(f"--set 'model.endpoints=[registry:{registry.path}]' --limit 200")
        assert all(one.key_file and read_key_file(one.key_file) == "my-own" for one in entries)
        assert [httpx.URL(one.address).host for one in entries] == [os.uname().nodename] * 2
        running.terminate()
        _, errors = running.communicate(timeout=BACKSTOP_S)
    assert running.returncode == 0, errors
    assert len(list((tmp_path / "logs").glob("vllm-*.log"))) == 2
    assert registry.read() == ()


def test_a_server_that_dies_while_loading(model: Path, tmp_path: Path) -> None:
    with start(str(model), "--port", str(free_port()), "--log", str(tmp_path), "--", "--die", "all") as running:
        output, errors = running.communicate(timeout=BACKSTOP_S)
    assert (running.returncode, output) == (2, "")
    assert "medexam: the server ended with exit code 1; the last lines of" in errors
    assert "no weights: all" in errors
    assert not list(tmp_path.rglob("*.key"))


def test_print_shows_the_commands_alone(medexam, cpu_build: Path) -> None:
    code, output, errors = medexam(
        "serve", cpu_build, "--print", "--replicas", 2, "--port", 8123, "--", "--max-logprobs", 7
    )
    assert code == 0, errors
    first, second = output.splitlines()
    assert "--port 8123 " in first
    assert "--port 8124 " in second
    assert first.endswith("--max-logprobs 7")
    assert "KEY" not in output


def test_print_shows_a_jobs_script_without_slurm(medexam, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    words = "--nodes 2 --time 1-02:00:00 --partition gpu --account me --gpus-per-node 4 --registry shared/servers.json"
    more = "--slurm-option mem=200G --slurm-option exclusive --slurm-folder slurm"
    code, output, errors = medexam("serve", model, "--slurm", "--print", *words.split(), *more.split(), "--", "--x=a b")
    assert code == 0, errors
    lines = output.splitlines()
    wanted = "nodes=2 time=1560 partition=gpu account=me gpus-per-node=4 cpus-per-task=20 mem=200G exclusive requeue"
    assert {f"#SBATCH --{word}" for word in wanted.split()} <= set(lines)
    assert sum(line.startswith("#SBATCH --mem=") for line in lines) == 1
    assert len(lines) <= 40
    assert lines[0] == "#!/bin/bash"
    here = Path.cwd()
    command = output.partition("\nsrun ")[2].partition(" &\n")[0].replace("\\\n", "")
    assert shlex.split(command)[2:] == [
        *("serve", str(model), "--in-job", "--slurm-folder", f"{here}/slurm"),
        *("--registry", f"{here}/shared/servers.json", "--", "--x=a b"),
    ]
    assert errors == f"before sbatch: mkdir -p {here}/slurm, or Slurm has nowhere to write the job's log\n"
    assert not Path("slurm").exists()
    assert not Path("shared").exists()


@pytest.mark.parametrize(
    ("given", "replaced"),
    [("cpus_per_gpu=8", "cpus-per-task"), ("mem-per-cpu=4G", "mem"), ("gres=gpu:a100:2", "gpus-per-node")],
)
def test_an_option_of_slurms_replaces_what_sbatch_would_not_take_beside_it(medexam, given: str, replaced: str) -> None:
    words = ("llama-3.1-70b", "--slurm", "--print", "--nodes", 2, "--span", "--slurm-option", given)
    code, output, errors = medexam("serve", *words)
    assert code == 0, errors
    options = [line.removeprefix("#SBATCH --") for line in output.splitlines() if line.startswith("#SBATCH")]
    assert given.replace("_", "-") in options
    assert not [option for option in options if option.partition("=")[0] == replaced]
    assert len(options) == len({option.partition("=")[0] for option in options})


def test_sbatch_reads_a_value_with_spaces_whole(medexam, model: Path) -> None:
    words = ("--slurm-folder", "/my jobs", "--slurm-option", "comment=for exams", "--slurm-option", "no-requeue")
    code, output, errors = medexam("serve", model, "--slurm", "--print", *words)
    assert code == 0, errors
    assert {"#SBATCH --output='/my jobs/%j.log'", "#SBATCH --comment='for exams'"} <= set(output.splitlines())
    assert "#SBATCH --no-requeue" in output
    assert "#SBATCH --requeue" not in output
    _, output, _ = medexam("serve", model, "--slurm", "--print", "--requeues", 0)
    assert "#SBATCH --no-requeue" in output, "neither at the walltime nor after a preemption"
    assert "#SBATCH --requeue" not in output


def test_a_container_in_a_job_is_apptainers(medexam, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDEXAM_VLLM_PYTHON", "/somewhere/python")
    code, output, errors = medexam("serve", model, "--slurm", "--print", "--container", "vllm.sif")
    assert code == 0, errors
    assert "--container vllm.sif --container-runtime apptainer" in " ".join(output.replace("\\\n", "").split())
    assert "--python" not in output, "the container has its own"
    _, output, _ = medexam("serve", model, "--print", "--container", "vllm.sif")
    assert output.startswith("docker run ")


def test_the_script_of_every_profile_is_short_and_right_shell(medexam) -> None:
    listed = [line.split() for line in medexam("serve", "--list")[1].splitlines() if line.strip()]
    names = [words[0] for words in listed if words[0].startswith(("llama-", "qwen", "smollm2", "gemma", "mistral"))]
    assert "llama-3.1-70b" in names
    places = "--partition gpu --account me --registry /shared/me/servers.json --slurm-folder /shared/me/jobs"
    for name in names:
        code, output, errors = medexam("serve", name, "--slurm", "--print", "--nodes", 2, *places.split())
        assert code == 0, errors
        assert len(output.splitlines()) <= 40, name
        assert max(map(len, output.splitlines())) <= 120
    code, output, errors = medexam("serve", "llama-3.1-70b", "--slurm", "--print", "--nodes", 2, "--span")
    assert code == 0, errors
    assert "#SBATCH --gpus-per-node=2\n#SBATCH --cpus-per-task=12\n#SBATCH --mem=48000M\n" in output
    assert "35.3 GB of weights" in output
    assert subprocess.run(["bash", "-n"], input=output, text=True, check=False).returncode == 0


def test_submitting_where_no_slurm_is(refused, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "no sbatch is found here; submit from a machine of the cluster" in refused("serve", model, "--slurm")


def test_what_is_submitted_is_what_print_shows(medexam, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text(f'#!/bin/sh\ncp "$2" {tmp_path}/submitted\necho "77;cluster"\n', encoding="utf-8")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", f"{sbatch.parent}:/usr/bin:/bin")
    words = ("serve", "llama-3.1-70b", "--slurm", "--nodes", 2, "--span", "--slurm-folder", tmp_path / "jobs")
    code, output, errors = medexam(*words)
    assert code == 0, errors
    assert output.startswith("77\nmedexam run ")
    _, shown, _ = medexam(*words, "--print")
    assert (tmp_path / "submitted").read_text(encoding="utf-8") == shown


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90),
        ("90:30", 91),
        ("01:30:00", 90),
        ("00:00:01", 1),
        ("2-03", 3060),
        ("1-00:30", 1470),
        ("1-0:0:1", 1441),
    ],
)
def test_times_in_slurms_words(medexam, model: Path, text: str, minutes: int) -> None:
    code, output, errors = medexam("serve", model, "--slurm", "--print", "--time", text)
    assert (code, f"#SBATCH --time={minutes}\n" in output) == (0, True), errors
