"""The likeliest mistakes of a newcomer: each is answered by one line that names the way out."""

import pytest

FILES = {
    "ok.yaml": "name: s\ndataset: {name: headqa_sample, limit: 2}\nprogram: longest\n",
    "questions.csv": "question,a,b,answer\nWhat?,x,y,1\n",
    "empty.yaml": "",
    "list.yaml": "- a\n- b\n",
    "tab.yaml": "name: s\ndataset:\n\tname: headqa_sample\n",
    "matrix.yaml": "name: s\ndataset: headqa_sample\nmatrix: {program.kind: random}\n",
    "nameless.yaml": "dataset: headqa_sample\n",
    "twice.yaml": "name: s\nname: t\n",
}
SPEC = "name: s\ndataset: {name: headqa_sample, limit: 2}\nprogram: zero_shot\n"
MISTAKES = [
    # What was typed, and what the line must hold.
    ("rum ok.yaml", "Did you mean 'rm', 'run'"),
    ("quickstart", "write `medexam run quickstart`"),
    ("ok.yaml", "write `medexam run ok.yaml`"),
    ("run", "give a SPEC, or a run to continue with --resume RUN"),
    ("run ok.yml", "did you mean ok.yaml or"),
    ("run quickstrat", "did you mean quickstart?"),
    ("run headqav1", "did you mean headqa_v1"),
    ("run questions.csv", "`medexam data init questions.csv`"),
    ("run empty.yaml", "the file is empty; `medexam init` writes an example"),
    ("run list.yaml", "and this is none; `medexam init` writes an example"),
    ("run tab.yaml", "tab.yaml, line 3"),
    ("run twice.yaml", "line 2"),
    ("run elsewhere/plan-b.yaml", "`medexam init elsewhere/plan-b.yaml` writes one"),
    ("run nameless.yaml", "name: is missing; add a line such as name: mine"),
    ("run ok.yaml --dry-run", "`medexam plan` shows what would run"),
    ("run ok.yaml --engine vllm", "write --set model.engine=..."),
    ("run ok.yaml --top-p 1", "write --set model.top_p=..."),
    ("run zero.yaml --temperature hot", "--temperature hot: give a number"),
    ("run ok.yaml --years last", "a span such as 2013-2016"),
    ("run zero.yaml --program zeroshot", "did you mean 'zero_shot'?"),
    ("run zero.yaml --program zero_shot --samples 8", "set model.temperature, such as 0.7"),
    ("run zero.yaml --language en,fr", "published in en, es"),
    ("run zero.yaml --model gpt-4o-mini", "did you mean openai/gpt-4o-mini?"),
    ("run zero.yaml --model claude-sonnet-4-5", "did you mean anthropic/claude-sonnet-4-5?"),
    ("run zero.yaml --model embeded", "did you mean embedded?"),
    ("run zero.yaml --model llama-3.1-8", "did you mean llama-3.1-8b"),
    ("run zero.yaml --model opnai/gpt-4o-mini", "did you mean openai/gpt-4o-mini?"),
    ("run zero.yaml --model Qwen/Qwen3-0.6B", "hf:Qwen/Qwen3-0.6B is a model of the hub"),
    ("run zero.yaml --model http:/127.0.0.1:9/v1", "did you mean http://127.0.0.1:9/v1?"),
    ("run zero.yaml --model hf:", "hf:ORGANISATION/NAME"),
    ("run zero.yaml --model=", "--model is empty: give a value"),
    ("run zero.yaml --language=,", "--language is empty: give a value"),
    ("run zero.yaml --program gibberish", "no kind is called 'gibberish'"),
    ("run weights", "weights is a folder and no spec: name a file in it"),
    ("run zero.yaml --model http://127.0.0.1:9/v1", "start one with `medexam serve"),
    ("run zero.yaml --model ./nothere", "no such model folder or GGUF file"),
    ("run zero.yaml --model nothere.gguf", "no such model folder or GGUF file"),
    ("run zero.yaml --model weights", "did you mean ./weights?"),
    ("run zero.yaml --program longest --save ok.yaml", "name another file with --save"),
    ("run ok.yaml --limit many", "valid integer"),
    ("run ok.yaml --limit=-1", "greater than or equal to 1"),
    ("run ok.yaml --workers many", "give auto, or a number of at least 1"),
    ("run zero.yaml --set model.engine=embedded --workers 2", "leave --workers out"),
    ("run ok.yaml --ray-address 10.0.0.1:6379", "needs --executor ray"),
    ("run ok.yaml --set engine=vllm", "did you mean 'model.engine'?"),
    ("run ok.yaml --set temperature=0.3", "did you mean 'model.temperature'?"),
    ("run ok.yaml --set program.kind", "such as --set dataset.language=es"),
    ("run ok.yaml --set program.kind=zeroshot", "did you mean 'zero_shot'?"),
    ("run ok.yaml --set program.kind=cot", "did you mean 'chain_of_thought'?"),
    ("run ok.yaml --set program.temperature=1", "did you mean 'model.temperature'?"),
    ("run zero.yaml --set program.answer_format=json", "'free' or 'guided'"),
    ("run ok.yaml --set program.answer_format=guided", "the choices of program.longest are kind"),
    ("run ok.yaml --set program=few_shot --set program.shots=3", "did you mean 'examples'?"),
    ("run ok.yaml --set program=zero_shot --set program.samples=8", "set model.temperature, such as 0.7"),
    ("run ok.yaml --set dataset.name=headqa", "did you mean headqa_v"),
    ("run ok.yaml --set dataset.name=./nothere.csv", "`medexam data init ./nothere.csv`"),
    ("run ok.yaml --set dataset.year=2016", "did you mean 'years'?"),
    ("run ok.yaml --set dataset.years=[1999]", "there are years 2013"),
    ("run ok.yaml --set dataset.disciplines=[surgery]", "the disciplines are biology"),
    ("run ok.yaml --set dataset.language=fr", "published in en, es"),
    ("run ok.yaml --set dataset.limit=ten", "a whole number"),
    ("run matrix.yaml", "a list, such as [a, b]"),
    ("run ok.yaml --set name=my/run", "letters, digits, dots, hyphens and underscores"),
    ("run ok.yaml --set model.engine=vlm", "embedded, vllm, litellm, batch, scripted"),
    ("run zero.yaml --set model.engine=litellm", "needs a name, such as openai/gpt-4o-mini"),
    ("run zero.yaml --set model.engine=embedded --set model.name=./weights", "for a folder or file write path"),
    ("run zero.yaml --set model={engine: litellm, name: openai/gpt-4o-mini}", "needs a key: set OPENAI_API_KEY"),
    ("run zero.yaml --set model={engine: vllm, endpoints: [http://127.0.0.1:9/v1]}", "start one with `medexam serve"),
    ("run zero.yaml --set model={engine: embedded, path: nothere.gguf}", "no such model folder or GGUF file"),
    ("run ok.yaml --set program.kind=./nothere.py:Mine", "there is no file"),
    ("report", "no run at runs: give a run folder"),
    ("compare", "no run at runs: give a run folder"),
    ("report nothere", "give a run folder, or a folder that holds run folders"),
    ("rm nothere", "`medexam list` shows them"),
    ("watch nothere", "give a run folder, or a folder that holds run folders"),
    ("serve nothere", "no profile nothere; name a YAML file with one of your own or a hub id"),
    ("init nothere/a.yaml", "cannot write nothere/a.yaml: No such file or directory; choose another name"),
    ("data show headqa", "did you mean headqa_v"),
    ("optimize ok.yaml", "add `optimizer: {kind: random_search}`"),
    ("init ok.yaml", "choose another name"),
    ("reproduce headqa-v1/table-55", "did you mean headqa-v1/table-5"),
    ("doctor 127.0.0.1:9", "start one with `medexam serve"),
    ("ui --port 99999", "less than or equal to 65535"),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files, and no key, server or data of the machine's."""
    for name, text in {**FILES, "zero.yaml": SPEC}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "MEDEXAM_DATA", "MEDEXAM_RUNS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(("typed", "way_out"), MISTAKES, ids=[typed for typed, _ in MISTAKES])
def test_a_mistake_is_one_line_with_the_way_out(typed, way_out, medexam, here) -> None:
    before, braced, model = typed.partition("model={")
    code, out, err = medexam(*before.split(), *([f"{braced}{model}"] if braced else []))
    lines = [line for line in err.splitlines() if not line.startswith(("Preparing", "preparing"))]
    assert (code, out, len(lines)) == (2, "", 1), err
    assert lines[0].startswith("medexam: ")
    assert way_out in lines[0]
    assert "Traceback" not in err
    assert "pydantic" not in err.lower()


@pytest.mark.parametrize(
    ("option", "file", "way_out"),
    [("--markdown", "t.tex", "give --latex t.tex"), ("--latex", "t.md", "give --markdown t.md")],
)
def test_a_file_of_another_options_ending_is_refused(medexam, option, file, way_out) -> None:
    for command in ("report", "compare"):
        code, _, err = medexam(command, "runs", option, file)
        assert (code, way_out in err) == (2, True)
