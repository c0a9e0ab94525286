"""What a program asks with is told by content: a name, a place or a stamp counts for nothing, a changed word does."""

import json
from importlib import resources

import dspy
import pytest
import yaml

import medexam
from medexam.errors import SpecError
from medexam.programs import build_program, save_program
from medexam.specs import build_cells

WORDS = resources.files("medexam") / "signatures" / "words"


@pytest.fixture
def digest(spec):
    """`digest({"kind": "few_shot"})` -> the digest of a run of this program on the sample."""
    return lambda program: medexam.plan(spec | {"program": program}).cells[0]["spec_digest"]


@pytest.mark.parametrize(("key", "shipped"), [("prompt", "paper"), ("examples", "paper_examples")])
def test_a_files_name_and_line_breaks_count_for_nothing_and_its_words_do(digest, tmp_path, key, shipped) -> None:
    text = (WORDS / f"{shipped}.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    moved = yaml.safe_dump(dict(reversed(document.items())), allow_unicode=True)
    if key == "prompt":
        document["en"]["few_shot"] += " Take care."
    else:
        document["en"][0]["options"][0] += "!"
    contents = (text, text.replace("\n", "\r\n"), moved, yaml.safe_dump(document, allow_unicode=True))
    digests = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(content.encode())
        digests.append(digest({"kind": "few_shot", key: str(path)}))
    assert len({digest({"kind": "few_shot"}), *digests[:3]}) == 1
    assert digests[3] not in digests[:3]


@pytest.fixture
def save(question, tmp_path):
    """`save("first", said="Answer.")` -> the folder of a program that was saved with these instructions."""

    def write(name, said="Answer.", demos=2):
        spec = build_cells({"name": "x", "dataset": "headqa_sample"}, {})[1][0].program
        program = build_program(spec, "en")
        (predictor,) = program.predictors()
        predictor.signature = predictor.signature.with_instructions(said)
        others = [question.model_copy(update={"key": f"other/{number}"}) for number in range(demos)]
        predictor.demos = [dspy.Example(question=one, answer=2).with_inputs("question") for one in others]
        (tmp_path / name).mkdir()
        save_program(program, tmp_path / name / "program.json", spec, "en")
        return tmp_path / name

    return write


def test_a_loaded_program_counts_whole_and_a_damaged_one_is_refused(digest, save, tmp_path) -> None:
    def of(path, **more):
        return digest({"kind": "zero_shot", "load": str(path), **more})

    known = of(save("first"))
    state = json.loads((tmp_path / "first" / "program.json").read_text())
    state["metadata"]["dependency_versions"] = {"python": "9", "dspy": "9"}
    (name,) = [name for name in state if name != "metadata"]
    state[name]["demos"][0]["augmented"] = True
    moved = tmp_path / "renamed.json"
    moved.write_text(json.dumps(dict(reversed(state.items()))))
    assert of(moved) == known
    assert len({known, of(save("said", said="Answer!")), of(save("shown", demos=3))}) == 3
    # Of the prompt, whose turn the instructions are counts alone.
    own = tmp_path / "own.yaml"
    for turn, is_known in (("user", True), ("system", False)):
        own.write_text(yaml.safe_dump({"en": {"zero_shot": {"turn": turn, "instructions": "Unused. $form"}}}))
        assert (of(moved, prompt=str(own)) == known) is is_known
    del state[name]["signature"]
    moved.write_text(json.dumps(state))
    with pytest.raises(SpecError, match="is damaged"):
        of(moved)


def test_a_loaded_program_that_shows_an_exam_that_is_asked_is_refused(spec, save) -> None:
    spec |= {"dataset": {"name": "headqa_sample", "years": [2013]}, "program": "zero_shot"}
    with pytest.raises(SpecError, match="is from an exam that is asked"):
        medexam.plan(spec, program__load=str(save("first")))
