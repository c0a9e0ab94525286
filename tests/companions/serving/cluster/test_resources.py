"""What a job asks of a node: the share that its GPUs are of a node, out of a `sinfo` that is a script."""

from pathlib import Path

import pytest

A100S = "128|1000000|gpu:a100:8(S:0-3)"


@pytest.mark.parametrize(
    ("rows", "gpus", "profile", "cores", "mib"),
    [
        ([A100S], 4, "llama-3.1-70b", 64, 475_000),
        ([A100S], 8, "llama-3.1-70b", 128, 950_000),
        ([A100S, "32|256000|gpu:4", "16|64000|gpu:a30:1"], 2, "llama-3.1-8b", 16, 121_600),
        (["64+|500000+|gpu:4", "96|250000|(null)"], 2, "llama-3.1-8b", 32, 237_500),
        (["32|100000|gpu:a30:2,gpu:v100:2,shard:8"], 4, "llama-3.1-70b", 32, 95_000),
        (["16|64000|gpu:1"], 4, "llama-3.1-70b", 20, 80_000),
        (["slurm_load_partitions: Unable to contact"], 4, "llama-3.1-70b", 20, 80_000),
        (["8|32000|(null)"], 0, "smollm2-cpu", 8, 30_400),
    ],
)
def test_the_share_that_the_gpus_are_of_a_node(
    medexam, tmp_path: Path, monkeypatch, rows: list[str], gpus: int, profile: str, cores: int, mib: int
) -> None:
    script = tmp_path / "sinfo"
    script.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(rows) + "\nEND\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    words = ("--slurm", "--print", "--partition", "gpu", "--gpus-per-node", gpus)
    code, out, err = medexam("serve", profile, *words)
    assert code == 0, err
    assert {f"#SBATCH --cpus-per-task={cores}", f"#SBATCH --mem={mib}M"} <= set(out.splitlines())


def test_the_job_is_started_with_the_words_that_were_given(medexam) -> None:
    given = ["--replicas", "2", "--gpus", "0,3", "--python", "/a b/python", "--served-model-name", "my model"]
    given += ["--max-model-len", "4096", "--timeout", "90.5", "--restarts", "0", "--registry", "/shared/servers.json"]
    code, out, err = medexam("serve", "llama-3.1-8b", "--slurm", "--print", *given, "--slurm-folder", "/jobs")
    assert code == 0, err
    command = " ".join(out.replace("\\\n", " ").split())
    assert all(
        word.replace("/a b/python", "'/a b/python'").replace("my model", "'my model'") in command for word in given
    )
