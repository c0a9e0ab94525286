"""What is said before anything is asked: a program that does not fit, and what its calls cost at a provider."""

import pytest
import yaml

import medexam
from command_line import medexam as command_line  # noqa: F401
from medexam.errors import SpecError
from table_cases import read_table


@pytest.fixture
def datasets(tmp_path):
    (words := tmp_path / "words.jsonl").write_text('{"question": "What is BPH?", "answer": "Hyperplasia."}\n')
    return {
        "options": {"name": "headqa_sample", "limit": 4},
        "words": {"kind": "short_answer", "path": str(words)},
    }


@pytest.mark.parametrize(
    ("dataset", "program", "said"),
    [
        ("options", "short_answer", "does not answer headqa_sample, an exam: set program.kind to zero_shot"),
        ("words", "zero_shot", "does not answer short_answer: set program.kind to"),
        ("words", "longest", "does not answer short_answer"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(spec, datasets, dataset, program, said) -> None:
    with pytest.raises(SpecError, match=said):
        medexam.plan(spec | {"dataset": datasets[dataset], "program": program})


@pytest.mark.parametrize(*read_table("longest_replies"))
def test_the_longest_reply_holds_the_thinking_of_the_price(command_line, spec, tmp_path, model, most) -> None:  # noqa: F811
    """Five questions, 100 tokens a reply, 8,192 more for the thinking, 1,000 dollars a million tokens of replies."""
    document = spec | {
        "dataset": {"name": "headqa_sample", "limit": 5},
        "model": {"engine": "litellm", "price": [0.0, 1000.0], **model},
        "program": {"kind": "zero_shot", "max_tokens": 100},
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))
    _, out, err = command_line("plan", "spec.yaml")
    assert f"at most {most} with the longest replies" in " ".join((out + err).split())


def test_a_prompt_of_ones_own_that_does_not_say_how_to_answer_is_told(command_line, spec, tmp_path) -> None:  # noqa: F811
    warned = []
    for words in ("Answer.", "Answer as $form."):
        (tmp_path / "mine.yaml").write_text(f"en: {{zero_shot: {{instructions: '{words}'}}}}")
        (tmp_path / "own.yaml").write_text(
            yaml.safe_dump(spec | {"program": {"kind": "zero_shot", "prompt": str(tmp_path / "mine.yaml")}})
        )
        warned.append("put $form" in " ".join(command_line("plan", "own.yaml")[1].split()))
    assert warned == [True, False]
