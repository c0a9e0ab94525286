"""Options that do not apply are errors: each command line here would otherwise drop what its user asked for."""

import pytest

NEEDS = [
    ("run quickstart --limit 5 --set dataset.limit=7", "--limit and --set dataset.limit"),
    ("run --resume RUNS --runs-dir elsewhere", "outside --runs-dir elsewhere"),
    ("optimize quickstart --plan --tracking-uri sqlite:///x.db", "leave out --tracking-uri"),
    ("ui --runs-dir RUNS --tracking-uri sqlite:///x.db", "--runs-dir: --tracking-uri names another store"),
    ("index map . --tracking-uri sqlite:///x.db", "RUN"),
    ("data show headqa_sample --key headqa-v1/2013/biology/1 --limit 2 --year 2013", "--limit, --year: --key names"),
    ("finetune --model M --train T --out O --intermediate-epochs 3", "--intermediate FILE"),
    ("finetune --model M --train T --out O --answer-tokens 3", "--validation FILE"),
    ("serve --list --replicas 2", "--replicas: --list shows the profiles"),
    ("serve smollm2 --container-runtime podman", "--container IMAGE"),
    ("serve smollm2 --container I --python P", "--python: the container"),
    (
        "serve smollm2 --nodes 1 --partition gpu --account me",
        "--nodes, --partition, --account: this belongs to a Slurm",
    ),
    ("serve smollm2 --time 01:00:00 --requeues 3 --gpus-per-node 1 --slurm-folder S", "add --slurm"),
    ("serve smollm2 --slurm --host 127.0.0.1", "--host: a job's nodes choose"),
    ("serve smollm2 --print --restarts 3", "--restarts: --print shows"),
    ("doctor registry:none --api-key-env A --api-key-file B", "give one of them"),
    ("data quality", "name a FOLDER"),
    ("data quality F --reviews R", "FOLDERS: --reviews reads"),
    ("data quality --reviews R --no-bert --seed 1", "--bert, --seed: --reviews reads"),
    ("data quality F --sheet S --reference --json", "--reference, --json: --sheet writes"),
    ("data quality F --seed 1", "--seed: it chooses the questions of a sheet"),
    (
        "data quality F --no-back --only-selected --back-setup one_shot",
        "--back-setup, --only-selected: it is for translating back",
    ),
    ("data quality F --no-bert --bert-layer 3", "--bert-layer: it is for BERTScore"),
    ("data quality F --no-back --bert-model M", "--bert-model: nothing is scored"),
    ("data translate headqa_sample --limit 2 --set dataset.limit=3", "leave out --set dataset.limit"),
    ("data translate headqa_sample --set dataset.name=headqa_v1", "leave out --set dataset.name"),
]


@pytest.mark.parametrize(("line", "said"), NEEDS, ids=[line for line, _ in NEEDS])
def test_an_option_that_would_be_ignored_is_an_error(medexam, tmp_path, line: str, said: str) -> None:
    (tmp_path / "runs").mkdir()
    code, out, err = medexam(*line.replace("RUNS", str(tmp_path / "runs")).split())
    assert (code, out) == (2, "")
    assert (err.startswith("medexam: "), err.count("\n")) == (True, 1), err
    assert said in err
