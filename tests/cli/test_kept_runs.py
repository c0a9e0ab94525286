"""Runs that are kept: listed, shown, meant by the beginning of an id, and removed."""

import json
import shutil

import pytest

import medexam as package
from medexam.errors import RunFolderError
from medexam.experiments import RunFolder


@pytest.fixture(scope="module")
def four_runs(tmp_path_factory):
    """A folder of four runs."""
    folder = tmp_path_factory.mktemp("four")
    spec = {"name": "kept", "dataset": {"name": "headqa_sample", "limit": 6}}
    spec["matrix"] = {"program": ["longest", "random"], "dataset.language": ["en", "es"]}
    package.run(spec, runs_dir=folder / "runs", track=False)
    return folder / "runs"


@pytest.fixture
def kept(four_runs, tmp_path):
    """Four runs in ./runs, by their ids."""
    shutil.copytree(four_runs, tmp_path / "runs")
    return [path.parent.name for path in sorted(four_runs.glob("*/spec.json"))]


def test_runs_are_listed_and_found_without_being_named(medexam, kept, tmp_path) -> None:
    code, out, _ = medexam("list")
    assert (code, "4 runs in runs" in out) == (0, True)
    assert all(run.rpartition("-")[2] in out for run in kept)
    assert {run["run_id"] for run in json.loads(medexam("list", "--json")[1])} == {*kept}
    assert len(json.loads(medexam("report", "--json")[1])) == 4
    assert medexam("compare")[0] == 0
    code, out, err = medexam("list", "--runs-dir", tmp_path / "none")
    assert (code, out, "no runs in" in err) == (0, "", True)


def test_the_beginning_of_an_id_or_of_its_digest_is_enough(medexam, kept) -> None:
    for run in kept:
        for short in (run[:-6], run.rpartition("-")[2][:6]):
            assert json.loads(medexam("report", short, "--json")[1])[0]["run_id"] == run
    assert medexam("compare", kept[0][:-4], kept[1][:-4])[0] == 0
    assert medexam("run", "--resume", kept[0].rpartition("-")[2])[0] == 0


def test_what_is_not_clear_is_refused_with_the_way_out(refused, kept) -> None:
    for command in (("report", "kept"), ("run", "--resume", "kept"), ("rm", "kept")):
        assert "kept may be 4 runs in runs: kept-" in refused(*command)
    assert "no run at" in refused("report", kept[0].replace("longest", "longst"))


def test_a_run_is_removed_unless_it_is_written_or_a_link(medexam, kept, tmp_path) -> None:
    first, second, third, _ = (tmp_path / "runs" / run for run in kept)
    with RunFolder(second).locked():
        code, out, err = medexam("rm", first, second, "--yes")
    assert (code, out) == (2, "")
    assert f"run {second.name} is being written by another process" in err
    assert first.exists()
    link = third.with_name("linked")
    link.symlink_to(third.name)
    code, _, err = medexam("rm", link, "--yes")
    assert (code, f"cannot remove {link}" in err) == (2, True)
    assert third.exists()
    link.unlink()
    code, _, err = medexam("rm", first.name.rpartition("-")[2], second, "--yes")
    assert (code, err.splitlines()[-1]) == (0, "medexam: removed 2 runs")
    assert len(json.loads(medexam("list", "--json")[1])) == 2
    assert not first.exists()


def test_a_run_that_is_asked_now_is_said_to_run(medexam, kept, tmp_path) -> None:
    folder = RunFolder(tmp_path / "runs" / kept[0])
    answers = folder.path / "predictions.jsonl"
    answers.write_text("".join(answers.read_text().splitlines(keepends=True)[:4]))
    (folder.path / "metrics.json").unlink()
    with folder.locked():
        for command in ("show", "report"):
            _, out, said = medexam(command, folder.path)
            assert "unning: 4 of 6 questions answered" in out + said
            assert "--resume" not in out + said
        _, out, said = medexam("list")
    assert ("4 of 6, running" in out, "damaged" in out + said) == (True, False)


def test_answers_that_a_killed_run_left_in_shards_are_listed(medexam, kept, tmp_path) -> None:
    path = tmp_path / "runs" / kept[0]
    lines = (path / "predictions.jsonl").read_text().splitlines(keepends=True)
    (path / "predictions.jsonl").write_text("".join(lines[:4]))
    (path / "metrics.json").unlink()
    assert "4 of 6" in medexam("list")[1]
    (path / "parts").mkdir()
    (path / "parts" / "0.jsonl").write_text("".join(lines[4:]))
    assert "4 of 6" not in medexam("list")[1]


@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_run_whose_file_is_gone_stops_at_its_next_flush(kept, tmp_path, how) -> None:
    folder = RunFolder(tmp_path / "runs" / kept[0])
    answer = next(iter(folder.scan_predictions()))

    def write_and_lose() -> None:
        with folder.appending() as log:
            log.append(answer)
            log.flush()
            if how == "moved":
                folder.path.rename(tmp_path / "elsewhere")
            else:
                (folder.path / "predictions.jsonl").unlink()
                (folder.path / "predictions.jsonl").touch()
            log.append(answer)
            log.flush()

    with pytest.raises(RunFolderError, match="moved while answers were written to it, so the run stops: 1 "):
        write_and_lose()


@pytest.mark.parametrize("schema", [None, 2, 99])
def test_a_run_of_another_version_is_refused_and_its_files_stay(refused, kept, tmp_path, schema) -> None:
    path = tmp_path / "runs" / kept[0] / "spec.json"
    path.write_text(text := json.dumps({**json.loads(path.read_text()), "schema": schema}))
    assert "was made by another version of medexam: run its spec again with --fresh" in refused("show", kept[0])
    assert path.read_text() == text


@pytest.fixture
def shown(run, spec):
    """The document of a run of 24 questions, all of which the script answers with 1."""
    return run(spec(dataset={"name": "headqa_sample", "limit": 24}))[0]


def test_show_begins_with_the_score_and_ends_with_the_origin(medexam, shown) -> None:
    code, out, err = medexam("show", shown["run_id"][-12:])
    assert (code, err) == (0, "")
    lines = out.splitlines()
    score = next(at for at in range(len(lines)) if "of 24 questions right" in " ".join(lines[at : at + 2]))
    assert score <= 4 < next(at for at, line in enumerate(lines) if "spec digest" in line)
    for said in ("Complete: 24 questions", "dataset.limit", "scripted", "predictions.jsonl", shown["spec_digest"]):
        assert said in out
    assert json.loads(medexam("show", shown["run_dir"], "--json")[1]) == shown


def test_show_of_a_question_has_the_prompt_and_the_reply(medexam, refused, shown, tmp_path) -> None:
    keys = json.loads((tmp_path / shown["run_dir"] / "spec.json").read_text())["questions"]
    code, out, err = medexam("show", shown["run_id"], keys[3].partition("/")[2])
    assert (code, err, out.startswith(keys[3])) == (0, "", True)
    assert (
        out.index("user:") < out.index("Provide the answer in the following JSON format") < out.index("\nreply: {Ans")
    )
    assert out.count("\n* ") == 1, "the right option is marked"
    document = json.loads(medexam("show", shown["run_id"], keys[3], "--json")[1])
    assert (document["question"], document["answer"]) == (keys[3], 1)
    assert f"the run asked no question {keys[0]}9: give a key such as" in refused(
        "show", shown["run_id"], f"{keys[0]}9"
    )
    ends = [key.rpartition("/")[2] for key in keys]
    twice = next(end for end in ends if ends.count(end) > 1)
    assert f"{twice} may be {ends.count(twice)} questions" in refused("show", shown["run_id"], twice)
